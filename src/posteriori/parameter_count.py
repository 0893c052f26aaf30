"""The number of free parameters of a model.

The count needs no rows: it shows what the independence of columns given the class saves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ParameterCount:
    """Free parameters with and without the assumption that features are independent given the class.

    Attributes
    ----------
    naive : int
        With conditional independence.
    full_joint : int
        Without conditional independence.
    """

    naive: int
    full_joint: int


def count_parameters(
    n_classes: int, *, categorical: Sequence[int] = (), gaussian: int = 0, poisson: int = 0
) -> ParameterCount:
    r"""Count the free parameters of a classifier before any row is seen.

    With C classes and d features of k categories each, the full joint has :math:`C (k^d - 1) + (C - 1)` and naive
    Bayes :math:`C d (k - 1) + (C - 1)`.

    Parameters
    ----------
    n_classes : int
        C ≥ 1.
    categorical : sequence of int
        The number of categories of each categorical feature, each ≥ 1; binary ones have 2.
    gaussian : int
        The number D of Gaussian features: 2·D per class if independent; without independence a mean and a
        covariance, D + D·(D + 1)/2, for each class and each cell of the categorical features.
    poisson : int
        The number of Poisson features: one rate per class, or, without independence, per class and cell of the
        categorical features. (Counts stay independent of other counts and of Gaussian features: there is no
        unrestricted multivariate Poisson family.)

    Returns
    -------
    ParameterCount

    Raises
    ------
    ValueError
        A number is out of range.

    Examples
    --------
    Twenty binary features and two classes:

    >>> import posteriori as po
    >>> po.parameter_count.count_parameters(2, categorical=[2] * 20)
    ParameterCount(naive=41, full_joint=2097151)
    """
    if n_classes < 1 or gaussian < 0 or poisson < 0 or any(k < 1 for k in categorical):
        raise ValueError(
            "n_classes and every number of categories must be at least 1, and gaussian and poisson at least 0; got "
            f"n_classes={n_classes}, categorical={list(categorical)}, gaussian={gaussian}, poisson={poisson}"
        )
    naive = sum(k - 1 for k in categorical) + 2 * gaussian + poisson
    full = count_full_joint(n_classes, categorical, n_unrestricted_gaussian(gaussian) + poisson)
    return ParameterCount(n_classes * naive + n_classes - 1, full)


def count_full_joint(n_classes: int, categorical: Sequence[int], n_numeric: int) -> int:
    """Return the number of free parameters of a classifier without independence given the class.

    Each class has a probability per combination of categories, and each combination has the parameters of the numbers.

    Parameters
    ----------
    n_classes : int
    categorical : sequence of int
        The number of categories of each categorical feature.
    n_numeric : int
        The parameters of the joint density of the numbers per class and combination.
    """
    combinations = math.prod(categorical)
    return n_classes * (combinations - 1 + combinations * n_numeric) + n_classes - 1


def n_unrestricted_gaussian(n_columns: int) -> int:
    """Return the size d + d(d + 1)/2 of a mean vector and of a symmetric covariance of d columns."""
    return n_columns + n_columns * (n_columns + 1) // 2
