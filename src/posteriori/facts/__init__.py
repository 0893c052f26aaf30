"""Facts about a fitted model, collected once for the terminal, JSON, reports and the explorer."""
