"""What a label tells of the component that made a row: log p(label | z)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.tables.batch import Assignment, LabelLikelihood
from posteriori.typing import Array

_START = 0.9  # of the labels are taken to be right before any row is seen
_PSEUDO_ROWS = 10.0  # a class that say so


@dataclass(frozen=True)
class LabelModel:
    """Labels say which components may have made a row: those of their class, or of several, more or less surely.

    A row has a recorded class, or none; or a set of classes that it may be of. The likelihood of component z is
    p(recorded | class of z), which without noise is 1 or 0; of a set it is whether the class is in it.

    Attributes
    ----------
    of_class : tuple of int (Z,)
        The class of each component, ascending.
    confusion : ndarray (C, C), optional
        p(recorded class | true class), a row for each true class; none where labels are right.
    learned : bool
        Whether the confusions are estimated along with the model.
    """

    of_class: tuple[int, ...]
    confusion: Array | None = None
    learned: bool = False

    @classmethod
    def learning(cls, of_class: tuple[int, ...]) -> LabelModel:
        """Return one that learns how often labels are wrong, and starts from few that are."""
        return cls(of_class, _believed(of_class[-1] + 1), learned=True)

    def assignment(self, recorded: Array, allowed: Array | None, weight: Array) -> Assignment:
        """Return the components of some rows, −1 where more than one is possible, and how likely each makes the label.

        Parameters
        ----------
        recorded : ndarray (n,)
            The number of each row's class, −1 where it is hidden.
        allowed : ndarray (n, C) or None
            Which classes are possible; None where `recorded` says all.
        weight : ndarray (n,)
        """
        positions, n_classes = list(self.of_class), self.of_class[-1] + 1
        with np.errstate(divide="ignore"):
            if allowed is not None:
                log_likelihood = np.log(allowed[:, positions].astype(np.float64))
            else:
                confusion = np.eye(n_classes) if self.confusion is None else self.confusion
                table = np.vstack([np.log(confusion.T[:, positions]), np.zeros(len(positions))])  # the last for −1
                log_likelihood = table[recorded]
        possible = log_likelihood > -np.inf
        component = np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1).astype(np.int32)
        return Assignment(component, weight, len(positions), LabelLikelihood(recorded, log_likelihood, n_classes))

    def updated(self, weight: Array) -> LabelModel:
        """Return what the expected weight (C, Z) of each recorded class by component teaches of the confusions."""
        if not self.learned:
            return self
        counts = np.zeros((len(weight), len(weight)))
        np.add.at(counts, list(self.of_class), weight.T)
        prior = _PSEUDO_ROWS * _believed(len(weight))
        return replace(self, confusion=(counts + prior) / (counts + prior).sum(axis=1, keepdims=True))


def _believed(n_classes: int) -> Array:
    if n_classes == 1:
        return np.ones((1, 1))
    wrong = (1.0 - _START) / (n_classes - 1)
    return np.full((n_classes, n_classes), wrong) + (_START - wrong) * np.eye(n_classes)
