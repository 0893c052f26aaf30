"""Posteriors of one row at a time, given as a dict: columns and parameters are prepared once, and no table is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from posteriori.model import Posterior
from posteriori.reading.opening import RecordTable, warn_of_unknown_keys
from posteriori.sources.table_source import Labelling, RowReader, warn_of_unseen
from posteriori.support.formatting import plural
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.user_warnings import warn

_ROW = slice(0, 1)
_NO_LABELS = Labelling()


class RowPosterior(Protocol):
    """Computes the posterior of one row for `Scorer`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the training table, which are keys of a row."""

    def log_posterior(self, row: Mapping[str, Any]) -> Array:
        """Return log p(y | x) in nats, (C,); NaN, with a warning, for a row that no class can produce."""


@dataclass(frozen=True)
class RowsOfDicts:
    """Reads one row, a dict from column name to cell, without a table."""

    schema: Schema
    model: str  # the name of the model in messages
    method: str  # that takes several rows

    @cached_property
    def _known(self) -> frozenset[str | None]:
        return frozenset({*self.schema.given, self.schema.target})

    def batch(self, row: Mapping[str, Any]) -> Batch:
        """Return a row as a batch; warn of keys that are no columns, and of unseen categories."""
        schema = self.schema
        if type(row) is not dict and not isinstance(row, Mapping):
            raise TypeError(
                f"the row is a {type(row).__name__}; give one row as a dict from column name to cell, and several rows "
                f"to {self.method}"
            )
        if not row.keys() <= self._known:
            warn_of_unknown_keys([row], schema.given, self.model, schema.target)
        reader = RowReader(RecordTable((row,), schema.given), schema, schema.places)
        batch = reader.batch(_ROW, _NO_LABELS)
        if batch.unseen:
            warn_of_unseen(batch.unseen, reader.misspelt(batch.unseen))
        return batch


@dataclass(frozen=True)
class ModelRows:
    """Rows under generative models."""

    posterior: Posterior
    model: str  # the name of the model in messages

    @cached_property
    def schema(self) -> Schema:
        """The columns."""
        return self.posterior.schema

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the training table, which are keys of a row."""
        return self.schema.given

    @cached_property
    def _rows(self) -> RowsOfDicts:
        return RowsOfDicts(self.schema, self.model, "predict_proba")

    def log_posterior(self, row: Mapping[str, Any]) -> Array:
        """Return log p(y | x) in nats, (C,); NaN, with a warning, for a row that no class can produce."""
        log_posterior: Array = np.asarray(self.posterior.log_posterior(self._rows.batch(row))[0])
        if np.isnan(log_posterior[0]):
            warn(
                "no class can produce the row, so its posterior is undefined (NaN); set alpha > 0, or correct a number "
                "that lies far from all others"
            )
        return log_posterior


@dataclass(frozen=True)
class Scorer:
    """p(y | x) of one row, from a dict to a dict, for services that score row by row.

    The numbers are those of `predict_proba`. No data frame is made, and the object can be pickled: it holds the model,
    without the statistics it was learned from. A key that the row lacks, None and NaN are missing cells. Keys that are
    not columns are ignored, and unseen categories count as missing, both with a UserWarning. A row that no class can
    produce gives NaN, with a UserWarning.

    Attributes
    ----------
    classes : tuple
        The classes, as Python values, in the order of `classes_`.
    rows : RowPosterior
        The model.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> score = po.NaiveBayes().fit(load_penguins(), "species").scorer()
    >>> row = {"bill_length_mm": 50.0, "bill_depth_mm": 15.5, "island": None}
    >>> {label: round(p, 3) for label, p in score(row).items()}
    {'Adelie': 0.0, 'Chinstrap': 0.023, 'Gentoo': 0.977}
    >>> round(score.log_odds(row)["Gentoo"], 2)
    3.77
    """

    classes: tuple[Any, ...]
    rows: RowPosterior

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the training table, which are keys of a row."""
        return self.rows.names

    def __repr__(self) -> str:
        return f"<Scorer: {plural(len(self.names), 'column')}, {plural(len(self.classes), 'class')}>"

    def __call__(self, row: Mapping[str, Any]) -> dict[Any, float]:
        """Return p(y | x) of each class.

        Parameters
        ----------
        row : mapping from column name to cell
            Cells are numbers, strings or booleans; where the model has dates, Python dates or ISO strings. A model that
            was trained on an array has the columns x0, x1, ….

        Raises
        ------
        ValueError
            A cell has the wrong kind, is infinite, or is outside the support of its density. Correct it.
        TypeError
            A cell is no number, string or boolean.
        """
        return dict(zip(self.classes, np.exp(self.rows.log_posterior(row)).tolist(), strict=True))

    def log_odds(self, row: Mapping[str, Any]) -> dict[Any, float]:
        """Return log p(y | x) − log (1 − p(y | x)) of each class in nats, which keeps its digits near 0 and 1.

        Parameters and errors are those of `__call__`.
        """
        log_posterior = self.rows.log_posterior(row)
        others = np.where(np.eye(len(log_posterior), dtype=np.bool_), -np.inf, log_posterior)
        with np.errstate(invalid="ignore"):  # NaN of an impossible row
            odds = log_posterior - np.logaddexp.reduce(others, axis=1)
        return dict(zip(self.classes, odds.tolist(), strict=True))
