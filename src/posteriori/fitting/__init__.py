"""From what parameters ask and rows show to what is learned: recipes, rows to learn from, and fitted values."""
