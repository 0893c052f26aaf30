"""One distribution of all columns of a table, of which any column can be the question."""
