"""The label model: the log-likelihood log p(label | z) of an observed label given the component."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.tables.batch import Assignment, LabelLikelihood
from posteriori.typing import Array

_CORRECT = 0.9  # prior probability of a correct label
_PSEUDO_ROWS = 10.0  # weight of that prior per class, in rows


@dataclass(frozen=True)
class LabelModel:
    """The likelihood of each component of the mixture given the label of a row.

    A row has a recorded class, no label, or a set of possible classes. The likelihood of component z is
    p(recorded | class of z), which is 0 or 1 without label noise. For a set it is 1 if the class is in the set, else 0.

    Attributes
    ----------
    of_class : tuple of int (Z,)
        The class of each component, ascending.
    confusion : ndarray (C, C), optional
        p(recorded class | true class), with one row per true class; None where all labels are correct.
    learned : bool
        Whether the confusions are estimated along with the model.
    """

    of_class: tuple[int, ...]
    confusion: Array | None = None
    learned: bool = False

    @classmethod
    def learning(cls, of_class: tuple[int, ...]) -> LabelModel:
        """Return a model that learns the confusions, and starts with 90% correct labels."""
        return cls(of_class, _prior_confusion(of_class[-1] + 1), learned=True)

    def assignment(self, recorded: Array, allowed: Array | None, weight: Array) -> Assignment:
        """Return the component of each row, −1 where several are possible, and the log-likelihood of its label.

        Parameters
        ----------
        recorded : ndarray (n,)
            The class index of each row; −1 where it has no label.
        allowed : ndarray (n, C) or None
            The possible classes of each row; None where `recorded` determines them.
        weight : ndarray (n,)
        """
        positions, n_classes = list(self.of_class), self.of_class[-1] + 1
        with np.errstate(divide="ignore"):
            if allowed is not None:
                log_likelihood = np.log(allowed[:, positions].astype(np.float64))
            else:
                confusion = np.eye(n_classes) if self.confusion is None else self.confusion
                # An unlabelled row has the index −1, which reads the last row of the table: every class is possible.
                table = np.vstack([np.log(confusion.T[:, positions]), np.zeros(len(positions))])
                log_likelihood = table[recorded]
        possible = log_likelihood > -np.inf
        component = np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1).astype(np.int32)
        return Assignment(component, weight, len(positions), LabelLikelihood(recorded, log_likelihood, n_classes))

    def updated(self, weight: Array) -> LabelModel:
        """Estimate the confusions from the expected weights (C, Z) of recorded class and component.

        The M-step of EM: posterior mean under a Dirichlet prior of 10 pseudo-rows per true class.
        """
        if not self.learned:
            return self
        counts = np.zeros((len(weight), len(weight)))
        np.add.at(counts, list(self.of_class), weight.T)
        prior = _PSEUDO_ROWS * _prior_confusion(len(weight))
        return replace(self, confusion=(counts + prior) / (counts + prior).sum(axis=1, keepdims=True))


def _prior_confusion(n_classes: int) -> Array:
    if n_classes == 1:
        return np.ones((1, 1))
    wrong = (1.0 - _CORRECT) / (n_classes - 1)
    return np.full((n_classes, n_classes), wrong) + (_CORRECT - wrong) * np.eye(n_classes)
