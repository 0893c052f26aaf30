"""What an estimator hands to the learning algorithms: the rows as it reads them, and what to learn from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from posteriori.learning.em import EMOptions
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import LabelledSource
from posteriori.tables import Column
from posteriori.typing import Array


@dataclass(frozen=True)
class TrainingRows:
    """Rows to learn from, and their classes.

    Attributes
    ----------
    source : LabelledSource
        The rows with their schema, labels and weights.
    target : Column
        The classes.
    """

    source: LabelledSource
    target: Column

    @property
    def y_true(self) -> Array:
        """The class index of each row, (n,); −1 where the row has no label."""
        labels = self.source.labels
        if labels is None:
            raise ValueError("the rows carry no labels; read them with y")
        return labels.components(self.target, slice(0, self.source.table.n_rows))

    def with_unlabelled_weight(self, weight: float) -> TrainingRows:
        """Return the same rows, with another weight of the rows without label."""
        return replace(self, source=self.source.with_unlabelled_weight(weight))


@dataclass(frozen=True)
class Plan:
    """What is to be learned: the densities and their columns, the prior, and when EM stops.

    Attributes
    ----------
    blocks : tuple of Block
    prior : Prior
        The prior of the components of all classes.
    limits : EMOptions
    weighed : callable, optional
        Takes a fit, the source of its rows, the map from the codes of the source to those of the model (or None), and
        factor weights to start from (or None). Returns the model with learned factor weights.
    """

    blocks: tuple[Block, ...]
    prior: Prior
    limits: EMOptions
    weighed: Callable[..., GenerativeModel] | None = None
