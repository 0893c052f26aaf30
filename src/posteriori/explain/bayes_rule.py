"""Bayes' rule for one row, written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from posteriori.explain.sums import Explanation
from posteriori.model import GenerativeModel
from posteriori.support.lazy_polars import pl
from posteriori.support.typing import Array
from posteriori.tables import quote


class ExplainableModel(Protocol):
    """A fitted classifier that explains its predictions, such as `NaiveBayes` or `GaussianDiscriminant`."""

    @property
    def classes_(self) -> Array:
        """The class labels, (C,)."""

    @property
    def model_(self) -> GenerativeModel:
        """The fitted prior and densities."""

    def explain(self, X: Any) -> Explanation:
        """Return the log prior and the log factor of each feature, per row and class."""


def bayes_table(model: ExplainableModel, x: Any) -> str:
    """Return Bayes' rule for one row as a table of text.

    Parameters
    ----------
    model : fitted estimator of posteriori
    x : sequence of d cells, mapping from column to cell, or a table of one row
        A cell that is None or NaN is missing, and so is a column that a mapping lacks: its factor is 1.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        x is a table of several rows; give one row, or use ``model.explain(X).bayes_table(row)``.

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.NaiveBayes.from_parameters(
    ...     priors={"a": 0.2, "b": 0.5, "c": 0.3}, gaussian={"x": {"mean": [2, 3, 4], "sd": [1, 2, 1]}}
    ... )
    >>> print(po.explain.bayes_table(model, [3.4]))
    given class                  a          b          c
    ────────────────────────────────────────────────────
    prior p(class)             0.2        0.5        0.3
    × p(x = 3.4)          0.149727   0.195521   0.333225
    ────────────────────────────────────────────────────
    = joint p(x, class)  0.0299455  0.0977607  0.0999674
    evidence p(x) = 0.227674, the sum of the joint; posterior = joint / evidence
    ────────────────────────────────────────────────────
    posterior             0.131528   0.429390   0.439082
    """
    explanation = model.explain(_one_row(model, x))
    if len(explanation.values) > 1:
        raise ValueError(
            f"x has {len(explanation.values)} rows; give one row, or use model.explain(X).bayes_table(row)"
        )
    return explanation.bayes_table()


def _one_row(model: ExplainableModel, x: Any) -> Any:
    names = model.model_.schema.names
    if isinstance(x, Mapping):
        unseen = [key for key in x if key not in names]
        if unseen:
            raise ValueError(f"x has {quote(unseen)}, which the model does not have; its features are {quote(names)}")
        cells = [x.get(name) for name in names]
    elif isinstance(x, list | tuple | np.ndarray) and np.ndim(np.asarray(x, dtype=object)) == 1:
        cells = list(x)
    else:
        return x
    if len(cells) != len(names):
        raise ValueError(f"x has {len(cells)} cells but the model has {len(names)} features: {quote(names)}")
    return pl.DataFrame([pl.Series(name, [_plain(cell)]) for name, cell in zip(names, cells, strict=True)])


def _plain(cell: Any) -> Any:
    cell = cell.item() if isinstance(cell, np.generic) else cell
    return None if isinstance(cell, float) and cell != cell else cell
