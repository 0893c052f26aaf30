"""The laws that densities and models obey, for authors of new ones: `check_density` and `check_model`.

They hold for densities and models of the library and for those of anybody else, and raise AssertionError with what is
wrong. The tests begin with them.
"""

from posteriori.checks.densities import check_density
from posteriori.checks.models import check_model

__all__ = ["check_density", "check_model"]
