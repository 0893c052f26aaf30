"""Facts about a fitted model, collected once for the terminal, JSON, reports and the explorer.

They are the model and its scores, its columns and their ranges, the members of a pool, and clusters. Whoever shows a
model reads them here, so that all pages show the same numbers.
"""
