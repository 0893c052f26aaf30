"""p(recorded label | z): the density of the column of labels, with label noise that is stated or learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, LabelLikelihood

_CORRECT = 0.9  # prior probability of a correct label
_PSEUDO_ROWS = 10.0  # weight of that prior per class, in rows


@dataclass(frozen=True)
class LabelModel:
    """The likelihood of each component of the mixture given the label of a row.

    A row has a recorded class, no label, or a set of possible classes. The likelihood of component z is
    p(recorded | class of z), which is 0 or 1 without label noise. For a set it is 1 if the class is in the set, else 0.
    """

    of_class: tuple[int, ...]  # (Z,): the class of each component, ascending
    # (C, C): p(recorded class | true class), with one row per true class; None where all labels are correct
    confusion: Array | None = None
    learned: bool = False  # whether the confusions are estimated along with the model
    # λ ≥ 0: the nats by which EM discounts a contradicted label, so that it contradicts no more than was stated
    discount: float = 0.0
    stated_share: float = 0.0  # the share of wrong labels that stated confusions imply, at the last step of EM
    contradicted: float = 0.0  # the share of labels that EM contradicts: at most at any step; if learned, at the last

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
                confusion = np.eye(n_classes) if self.confusion is None else self._discounted(self.confusion)
                # An unlabelled row has the index −1, which reads the last row of the table: every class is possible.
                table = np.vstack([np.log(confusion.T[:, positions]), np.zeros(len(positions))])
                log_likelihood = table[recorded]
        possible = log_likelihood > -np.inf
        component = np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1).astype(np.int32)
        return Assignment(component, weight, len(positions), LabelLikelihood(recorded, log_likelihood, n_classes))

    def updated(self, weight: Array | float) -> LabelModel:
        """Update the label model by the expected weights (C, Z) of recorded class and component; 0 if none is hidden.

        Learned confusions take the M-step of EM: posterior mean under a Dirichlet prior of 10 pseudo-rows per true
        class. Stated ones stay. There the weight of contradicted labels may exceed the expected one by 3 standard
        deviations, as chance would; beyond that a step of dual ascent raises the discount. The posterior of an
        over-confident model, such as naive Bayes with dependent columns, would outweigh any label.

        References
        ----------
        Ganchev, Graça, Gillenwater & Taskar, Posterior regularization for structured latent variable models, JMLR 11
        (2010), section 2: the constraint is E_q[contradicted labels] ≤ the stated number.
        """
        if self.of_class[-1] == 0 or self.confusion is None or not isinstance(weight, np.ndarray):
            return self  # no label can be wrong where there is one class, or where each label names its component
        counts = np.zeros((len(weight), len(weight)))
        np.add.at(counts, list(self.of_class), weight.T)
        if not self.learned:
            return self._within_stated_share(counts)
        prior = _PSEUDO_ROWS * _prior_confusion(len(weight))
        wrong = float(1.0 - np.trace(counts) / max(counts.sum(), np.finfo(np.float64).tiny))
        learned = (counts + prior) / (counts + prior).sum(axis=1, keepdims=True)
        return replace(self, confusion=learned, contradicted=wrong)

    def _within_stated_share(self, counts: Array) -> LabelModel:
        """Raise the discount by the expected weights (C, C) of true and recorded class, if they are too high.

        It never falls: EM of an over-confident model would run to the other classes again, and not converge.
        """
        assert self.confusion is not None
        total = counts.sum()
        expected = float(counts.sum(axis=1) @ (1.0 - np.diag(self.confusion)))
        contradicted = float(total - np.trace(counts))
        if not total > 0.0 or not expected > 0.0 or not contradicted > 0.0:
            return self
        allowed = expected + 3.0 * np.sqrt(expected * max(0.0, 1.0 - expected / total))
        discount = self.discount + max(0.0, float(np.log(contradicted / allowed)))
        most = max(self.contradicted, contradicted / total)
        return replace(self, discount=discount, stated_share=expected / total, contradicted=most)

    def _discounted(self, confusion: Array) -> Array:
        """Return p(recorded | true) with contradictions discounted by λ, (C, C)."""
        if not self.discount:
            return confusion
        right = np.eye(len(confusion), dtype=np.bool_)
        weighed = np.where(right, confusion, confusion * np.exp(-self.discount))
        return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))


def _prior_confusion(n_classes: int) -> Array:
    if n_classes == 1:
        return np.ones((1, 1))
    wrong = (1.0 - _CORRECT) / (n_classes - 1)
    return np.full((n_classes, n_classes), wrong) + (_CORRECT - wrong) * np.eye(n_classes)
