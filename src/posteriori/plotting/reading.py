"""What the pictures read off a fitted model: one feature with the densities that make it, and classes by number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

<<<<<<< HEAD
from posteriori.model import GenerativeModel, reject_outside
=======
from posteriori.model import Block, GenerativeModel, reject_outside
>>>>>>> binning
from posteriori.tables import Batch, Column, Schema, quote, read_labels, read_table
from posteriori.typing import Array


@dataclass(frozen=True)
class Feature:
<<<<<<< HEAD
    """A column of a fitted model, with its density when the other columns are unknown.
=======
    """A column of a fitted model and the densities that make it, met through the protocol they all follow.
>>>>>>> binning

    Its cells are numbers or codes, (n,); NaN where missing.
    """

    model: GenerativeModel
    position: int
<<<<<<< HEAD
=======
    blocks: tuple[Block, ...]
    parameters: tuple[Any, ...]
>>>>>>> binning

    @classmethod
    def of(cls, model: Any, feature: str | int) -> Feature:
        """Find a feature by its name or index; raise ValueError if there is none such."""
<<<<<<< HEAD
        return cls(model.model_, _position(model.model_.schema, feature))
=======
        fitted = model.model_
        position = _position(fitted.schema, feature)
        pairs = zip(fitted.blocks, fitted.parameters, strict=True)
        blocks, parameters = zip(*(pair for pair in pairs if position in pair[0].columns), strict=True)
        return cls(fitted.schema, position, blocks, parameters)
>>>>>>> binning

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
<<<<<<< HEAD
        """Return which cells the model cannot produce, (n,)."""
        return self.model.cannot_hold(self.position, cells)

    def densities(self, cells: Array) -> Array:
        """Return p(x_j | y), (n, C)."""
        return np.exp(self.model.log_marginal(self.position, cells))

    def sample(self, component: Array) -> Array:
        """Draw a cell for each component, (n,), the same ones each time."""
        return self.model.sample(component, np.random.default_rng(0))[self.position]
=======
        """Return which cells the density cannot produce, (n,)."""
        batch = self._batch(cells)
        return np.any(
            [block.density.outside(block.tile(batch))[:, self._place(block)] for block in self.blocks], axis=0
        )

    def densities(self, cells: Array) -> Array:
        """Return p(x_j | y), (n, C)."""
        batch = self._batch(cells)
        pairs = zip(self.blocks, self.parameters, strict=True)
        return np.exp(sum(block.density.log_density(parameters, block.tile(batch)) for block, parameters in pairs))

    def sample(self, component: Array) -> Array:
        """Draw a cell for each component, (n,), the same ones each time."""
        model = GenerativeModel(self.schema, self.blocks, np.zeros(1), self.parameters)
        return model.sample(component, np.random.default_rng(0))[self.position]
>>>>>>> binning

    def read(self, model: Any, X: Any) -> Array:
        """Return the cells of some rows; raise ValueError where the density cannot produce one."""
        kind = self.column.kind
        block = next(block for block in self.model.blocks if self.position in block.columns)

        def read_batch(batch: Batch) -> Array:
<<<<<<< HEAD
            reject_outside(block, batch)
            tile = batch.numbers if kind == "continuous" else batch.codes
            cells = tile.values[:, batch.schema.of_kind(kind).index(self.position)]
=======
            for block in self.blocks:
                reject_outside(block, batch)
            cells = batch.take((self.position,)).values[:, 0]
>>>>>>> binning
            return np.where(cells == 0, np.nan, cells) if self.categorical else cells

        return model._source(X).map(read_batch)

<<<<<<< HEAD
=======
    def _place(self, block: Block) -> int:
        return block.columns.index(self.position)

    def _batch(self, cells: Array) -> Batch:
        """Return rows that hold these cells in this column and are missing elsewhere."""
        schema, n = self.schema, len(cells)
        continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
        numbers = np.full((n, len(continuous)), np.nan)
        codes = np.zeros((n, len(categorical)), schema.code_dtype)
        if self.categorical:
            codes[:, categorical.index(self.position)] = cells
        else:
            numbers[:, continuous.index(self.position)] = cells
        return Batch.of(schema, 0, numbers, codes, {})

>>>>>>> binning

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
