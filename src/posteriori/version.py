"""The version of the library, which pyproject.toml reads."""

__version__ = "0.1.0"
