"""What a report is about: a fitted classifier, and labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.validation import labels_to_learn
from posteriori.model import GenerativeModel
from posteriori.reporting.writing import cell_text
from posteriori.tables import read_labels, read_table
from posteriori.typing import Array


@dataclass(frozen=True)
class ReportData:
    """A fitted classifier with rows and their labels.

    Attributes
    ----------
    estimator : fitted classifier
    main_member : fitted classifier
        One that is a product of densities, so that Bayes' rule can be written out: the estimator, or of a pool the
        member of most weight.
    lens_name : str or None
        What that member is called in the pool.
    X : table (n, d)
    components : ndarray (n,)
        The number of each row's class, −1 where it has no label.
    """

    estimator: Any
    main_member: Any
    lens_name: str | None
    X: Any
    components: Array

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any) -> ReportData:
        """Read the labels of the rows.

        Raises
        ------
        TypeError
            The estimator is no classifier of this library.
        ValueError
            A label is none of the classes, or is missing where the estimator does not allow for that.
        """
        check_is_fitted(estimator)
        members = dict(getattr(estimator, "members_", {}))
        name = max(members, key=lambda one: float(estimator.weights_[one])) if members else None
        main_member = estimator if name is None else members[name]
        if not (hasattr(estimator, "classes_") and isinstance(getattr(main_member, "model_", None), GenerativeModel)):
            raise TypeError(f"a {type(estimator).__name__} cannot be reported on; give a classifier of posteriori")
        table = read_table(X)
        unlabelled = getattr(estimator, "unlabelled", "error")
        labels = labels_to_learn(read_labels(y, table), unlabelled, True, True)
        return cls(estimator, main_member, name, X, labels.components(main_member.target_, slice(0, table.n_rows)))

    @property
    def model(self) -> GenerativeModel:
        """The model of the lens."""
        return self.main_member.model_

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return self.model.schema.names

    @property
    def target(self) -> str:
        """What the classes are called."""
        return self.model.schema.target or "class"

    @cached_property
    def labels(self) -> list[str]:
        """The classes as text."""
        return [cell_text(label) for label in self.estimator.classes_.tolist()]

    @cached_property
    def spoken(self) -> list[str]:
        """The classes as text within a sentence: a number after what it is a value of."""
        labels = self.estimator.classes_.tolist()
        return [
            text if isinstance(label, str) else f"{self.target} = {text}"
            for label, text in zip(labels, self.labels, strict=True)
        ]

    @cached_property
    def entropy(self) -> float:
        """What there is to know of the class before any column is known, in nats."""
        prior = np.exp(self.model.class_log_prior)
        return -float(prior[prior > 0] @ np.log(prior[prior > 0]))

    @property
    def labelled(self) -> Array:
        """The places of the rows that have a label."""
        return np.flatnonzero(self.components >= 0)

    @cached_property
    def log_evidence(self) -> Array:
        """Log p(x) of each row in nats, (n,)."""
        return np.asarray(self.estimator.score_samples(self.X))

    def sampled(self, most: int) -> Array:
        """Return the places of some rows that have a label, drawn by chance where there are more, ascending."""
        rows = self.labelled
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        return rows

    def member_with(self, *attributes: str) -> Any:
        """Return the estimator, or the weightiest of the pool's members, that has any of some attributes; or None."""
        members = dict(getattr(self.estimator, "members_", {}))
        ranked = sorted(members, key=lambda name: -float(self.estimator.weights_[name]))
        for one in [members[name] for name in ranked] or [self.estimator]:
            if any(hasattr(one, attribute) for attribute in attributes):
                return one
        return None


def take_rows(X: Any, rows: Sequence[int] | Array) -> Any:
    """Return some rows of a table of any kind, in the order given.

    Examples
    --------
    >>> take_rows([[1, "a"], [2, "b"]], [1])
    [[2, 'b']]
    """
    positions = [int(row) for row in rows]
    if isinstance(X, np.ndarray):
        return X[positions]
    if hasattr(X, "iloc"):  # pandas, whose columns need no name that is a string
        return X.iloc[positions]
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[positions].to_native()
    return [X[row] for row in positions]
