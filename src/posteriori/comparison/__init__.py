"""Comparison of models: cross-validation, and learning curves of generative and discriminative models.

It also compares a drawn table with a real one. It is apart from `model_selection/` because it makes classifiers, and
classifiers import `model_selection/`.
"""

from posteriori.comparison.cross_validation import CrossValidation, cross_validate
from posteriori.comparison.discriminative import DiscriminativeClassifier, DiscriminativeRegressor, discriminative
from posteriori.comparison.models import training_sizes
from posteriori.comparison.result import Comparison
from posteriori.comparison.running import compare
from posteriori.comparison.tables import TableComparison, compare_tables

__all__ = [
    "Comparison",
    "CrossValidation",
    "DiscriminativeClassifier",
    "DiscriminativeRegressor",
    "TableComparison",
    "compare",
    "compare_tables",
    "cross_validate",
    "discriminative",
    "training_sizes",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
