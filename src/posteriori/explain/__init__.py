"""Explanations of predictions: exact sums of log factors, Bayes' rule written out, weights and biases.

They read a fitted model and change nothing. The terms are exact: they add up to the log-odds that the model predicts.
"""

from posteriori.explain.bayes_rule import bayes_table
from posteriori.explain.forms import LinearForm, QuadraticForm, linear_form
from posteriori.explain.sums import Explanation, LogOdds
from posteriori.explain.tree_outline import TreeNode, TreeOutline
from posteriori.explain.words import WordFactors

__all__ = [
    "Explanation",
    "LinearForm",
    "LogOdds",
    "QuadraticForm",
    "TreeNode",
    "TreeOutline",
    "WordFactors",
    "bayes_table",
    "linear_form",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
