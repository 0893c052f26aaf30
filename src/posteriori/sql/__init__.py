"""A fitted model as an SQL SELECT."""

from posteriori.sql.translation import select_posterior

__all__ = ["select_posterior"]
