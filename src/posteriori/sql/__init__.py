"""A fitted model as an SQL SELECT.

The program of the model (`posteriori.program`) runs on arrays of expressions about one row, `expressions`, whose terms
are written as columns in steps, `writing`. Densities with many terms of a row are joins of tables, `dependence` and
`forests`. Numbers stand as exact literals, so a database answers with the posterior of Python.
"""

from posteriori.sql.numbers import select_number
from posteriori.sql.translation import select_posterior

__all__ = ["select_number", "select_posterior"]
