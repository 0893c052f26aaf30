"""The input of the learning algorithms: rows with their classes, and a plan of the model to learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from posteriori.learning.em import EMOptions
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.tables import Column
from posteriori.typing import Array


@dataclass(frozen=True)
class TrainingRows:
    """Training rows and their classes.

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
            raise ValueError("the rows have no labels; read them with y")
        return labels.components(self.target, slice(0, self.source.table.n_rows))

    def with_unlabelled_weight(self, weight: float) -> TrainingRows:
        """Return the same rows with another weight for rows without label."""
        return replace(self, source=self.source.with_unlabelled_weight(weight))


@dataclass(frozen=True)
class Plan:
    """The model to learn: densities and their columns, prior, and options of EM.

    Attributes
    ----------
    blocks : tuple of Block
    prior : Prior
        The prior of the components of all classes.
    limits : EMOptions
    weighed : callable, optional
        Learns factor weights. Called with a fit, the source of its rows, a function from batches in the codes of the
        source to batches in those of the model (or None), initial factor weights (or None), and a sample of the rows
        that is in memory (or None). Returns the model with the weights.
    learns_cells : bool
        Whether `weighed` learns a number per cell and class, not a weight per column.
    learns_unlabelled : bool
        Whether rows without label are learned from by EM, if there are some; otherwise they are left out.
    """

    blocks: tuple[Block, ...]
    prior: Prior
    limits: EMOptions
    weighed: Callable[..., GenerativeModel] | None = None
    learns_unlabelled: bool = True
    learns_cells: bool = False


@dataclass(frozen=True)
class CollectedRows:
    """Rows, the densities and their columns, the statistics of the rows, and those of earlier rows."""

    rows: TrainingRows
    blocks: tuple[Block, ...]
    statistics: JointStatistics
    past: JointStatistics | None = None
