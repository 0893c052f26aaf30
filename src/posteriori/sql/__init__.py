"""A fitted model as an SQL SELECT."""

from posteriori.sql.numbers import select_number
from posteriori.sql.translation import select_posterior

__all__ = ["select_number", "select_posterior"]
