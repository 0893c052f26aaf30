"""A fitted model in the language of databases."""

from posteriori.sql.translation import select_posterior

__all__ = ["select_posterior"]
