"""A fitted model as an SQL SELECT.

The query is built in steps: cells, log factors, messages along trees, and posteriors. Numbers stand as exact literals,
so a database answers with the posterior of Python.
"""

from posteriori.sql.numbers import select_number
from posteriori.sql.translation import select_posterior

__all__ = ["select_number", "select_posterior"]
