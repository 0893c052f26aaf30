"""What the pictures read off a fitted model: one feature with the densities that make it, and classes by number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.model import GenerativeModel, reject_outside
from posteriori.tables import Batch, Column, Schema, quote, read_labels, read_table
from posteriori.typing import Array


@dataclass(frozen=True)
class Feature:
    """A column of a fitted model, with its density when the other columns are unknown.

    Its cells are numbers or codes, (n,); NaN where missing.
    """

    model: GenerativeModel
    position: int

    @classmethod
    def of(cls, model: Any, feature: str | int) -> Feature:
        """Find a feature by its name or index; raise ValueError if there is none such."""
        return cls(model.model_.heeding(()), _position(model.model_.schema, feature))

    @property
    def column(self) -> Column:
        """Its name, kind and categories."""
        return self.model.schema.columns[self.position]

    @property
    def categorical(self) -> bool:
        """Whether its cells are codes."""
        return self.column.kind == "categorical"

    @cached_property
    def whole(self) -> bool:
        """Whether its cells are whole numbers, each with a probability of its own."""
        return self.categorical or bool(self.outside(np.array([0.5]))[0])

    def outside(self, cells: Array) -> Array:
        """Return which cells the model cannot produce, (n,)."""
        return self.model.cannot_hold(self.position, cells)

    def densities(self, cells: Array) -> Array:
        """Return p(x_j | y), (n, C)."""
        return np.exp(self.model.log_marginal(self.position, cells))

    def sample(self, component: Array) -> Array:
        """Draw a cell for each component, (n,), the same ones each time."""
        return self.model.sample(component, np.random.default_rng(0))[self.position]

    def read(self, model: Any, X: Any) -> Array:
        """Return the cells of some rows; raise ValueError where the density cannot produce one."""
        blocks = [block for block in self.model.blocks if self.position in block.columns]

        def read_batch(batch: Batch) -> Array:
            for block in blocks:
                reject_outside(block, batch)
            if self.categorical:
                codes = batch.codes.values[:, batch.schema.coded.index(self.position)]
                return np.where(codes == 0, np.nan, codes)
            return batch.numbers.values[:, batch.schema.of_kind("continuous").index(self.position)]

        return model._source(X).map(read_batch)


def _position(schema: Schema, feature: Any) -> int:
    n_features = len(schema.names)
    if feature in schema.names:
        return schema.names.index(feature)
    if isinstance(feature, int | np.integer) and -n_features <= feature < n_features:
        return int(feature) % n_features
    raise ValueError(f"{feature!r} is neither a feature nor the index of one; there are {quote(schema.names)}")


def class_number(classes: Array, label: Any) -> int:
    """Return the place of a label among the classes; raise ValueError if it has none."""
    if label not in classes.tolist():
        raise ValueError(f"{label!r} is not a class; the classes are {classes.tolist()}")
    return classes.tolist().index(label)


def class_numbers(classes: Array, y: Any, X: Any) -> Array:
    """Return the place of each row's label among the classes, (n,); y may be the name of a column of X."""
    table = read_table(X)
    column = Column("y", "categorical", tuple(classes.tolist()))
    return read_labels(y, table).components(column, slice(0, table.n_rows))
