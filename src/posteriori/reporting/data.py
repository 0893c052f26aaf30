"""Input of a report: a fitted classifier, labelled rows, and links to rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.classifier import Classifier
from posteriori.facts.members import main_member
from posteriori.fitting.fitted import Fitted
from posteriori.fitting.label_parameters import labels_to_learn
from posteriori.model import GenerativeModel
from posteriori.model_selection.held_out_predictions import HeldOut
from posteriori.reading import read_labels, read_table
from posteriori.reading.known_columns import KnownColumns
from posteriori.registry import Subject
from posteriori.support.formatting import cell_text
from posteriori.support.typing import Array
from posteriori.tables.rows import take_rows
from posteriori.tables.writing import decode


@dataclass(frozen=True)
class ReportData:
    """Fitted classifier with rows and their labels."""

    estimator: Classifier
    # a model whose joint density is a product, so that Bayes' rule can be written out: that of the estimator, or the
    # member of a pool with the greatest weight
    main_member: Fitted
    lens_name: str | None  # name of that member in the pool; None if the estimator is not a pool
    X: Any
    components: Array  # (n,): index of the class of each row, −1 if it has no label

    @classmethod
    def of(cls, estimator: Classifier, X: Any, y: Any) -> ReportData:
        """Read the labels of the rows.

        Raises
        ------
        TypeError
            The estimator is not a classifier of this library.
        ValueError
            A label is not one of the classes, or is missing and the estimator does not learn from rows without label.
        """
        name, member = check_classifier(estimator)
        table = read_table(X, KnownColumns.of_model(member.schema, member.target))
        unlabelled = estimator.recipe.labels.unlabelled
        labels = labels_to_learn(read_labels(y, table), unlabelled, True, True)
        return cls(estimator, member, name, X, labels.components(member.target, slice(0, table.n_rows)))

    def of_held_out_rows(self, out_of_fold: Any) -> ReportData:
        """Return the rows with labels where predictions are given, or the fit of a pool has made some: of a part."""
        made = self.estimator.fitted_.out_of_fold if out_of_fold is None else out_of_fold
        place = made.place if isinstance(made, HeldOut) else None
        if place is None or len(place) >= len(self.labelled) or place.max() >= len(self.components):
            return self
        judged = np.full(len(self.components), -1)
        judged[place] = self.components[place]
        return replace(self, components=judged)

    @property
    def model(self) -> GenerativeModel:
        """Model of the main member."""
        return self.main_member.model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.model.schema.names

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.model.schema.target or "class"

    @cached_property
    def labels(self) -> list[str]:
        """Class names as text."""
        return class_texts(self.estimator)

    @cached_property
    def label_phrases(self) -> list[str]:
        """Class names for use in a sentence: "target = 1" for a class that is not a string."""
        labels = self.estimator.classes_.tolist()
        return [
            text if isinstance(label, str) else f"{self.target} = {text}"
            for label, text in zip(labels, self.labels, strict=True)
        ]

    @cached_property
    def entropy(self) -> float:
        """Entropy of the class prior, in nats."""
        prior = np.exp(self.model.class_log_prior)
        return -float(prior[prior > 0] @ np.log(prior[prior > 0]))

    @property
    def labelled(self) -> Array:
        """Positions of the labelled rows."""
        return np.flatnonzero(self.components >= 0)

    @cached_property
    def log_evidence(self) -> Array | None:
        """Log p(x) of each row in nats, (n,); None if the model has none."""
        return np.asarray(self.estimator.score_samples(self.X)) if self.estimator._posterior.has_density else None

    def sampled(self, most: int) -> Array:
        """Return positions of at most `most` labelled rows, sampled without replacement, ascending."""
        rows = self.labelled
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        return rows


def class_texts(estimator: Classifier) -> list[str]:
    """Return the classes of a classifier as text."""
    return [cell_text(label) for label in estimator.classes_.tolist()]


def check_classifier(estimator: Classifier) -> tuple[str | None, Fitted]:
    """Return the name and the model of the main member of a pool, or None and the estimator itself.

    Raises
    ------
    TypeError
        The estimator is not a classifier of this library.
    """
    check_is_fitted(estimator)
    if getattr(estimator, "subject", None) is not Subject.CLASS:
        raise TypeError(
            f"a {type(estimator).__name__} cannot be reported on; give a classifier or regressor of posteriori"
        )
    return main_member(estimator.fitted_)


def target_of(estimator: Classifier, X: Any) -> str | None:
    """Return the name of the column of a table that holds the target of a classifier; None if it has none."""
    target: str | None = estimator.schema_.target
    return target if target is not None and target in read_table(X).names else None


_SCHEMES = ("", "file", "http", "https")


def check_address(explorer: str) -> str:
    """Return the address of an explorer.

    Raises
    ------
    ValueError
        It is not an address of a file or of the web.
    """
    if not explorer or urlsplit(explorer).scheme.lower() not in _SCHEMES:
        raise ValueError(f'explorer is {explorer!r}; give the address of a page, such as "explorer.html"')
    return explorer


def case_links(estimator: Classifier, X: Any, rows: Sequence[int] | Array, explorer: str | None) -> list[str | None]:
    """Return for each of the rows the address of the explorer with its cells; None without an explorer."""
    if explorer is None or not len(rows):
        return [None] * len(rows)
    cells = estimator._source(take_rows(X, rows)).map(decode)
    names = estimator._posterior.schema.names
    return [_address(explorer, dict(zip(names, row, strict=True))) for row in cells.tolist()]


def _address(explorer: str, row: dict[str, Any]) -> str:
    """Return the address with the state that the page reads: the cells that are present, as JSON."""
    cells = {name: cell.item() if isinstance(cell, np.generic) else cell for name, cell in row.items()}
    known = {name: cell for name, cell in cells.items() if isinstance(cell, bool | int | float | str)}
    return f"{explorer.split('#')[0]}#{quote(json.dumps({'row': known}, ensure_ascii=False), safe='')}"
