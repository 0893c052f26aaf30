"""How models are learned, and how well they predict rows they have not seen."""
