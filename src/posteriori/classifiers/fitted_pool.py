"""What a fit of a pool learned, as one value: its members, their weights, and what is known of the rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

import numpy as np

from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.held_out_sample import HeldOutSample
from posteriori.fitting.fitted import TrainingRecord
from posteriori.model import KnownCells, PartialRows, Pool
from posteriori.model_selection.held_out_predictions import HeldOut
from posteriori.support.checks import check_numbers, check_share, require
from posteriori.support.typing import Array


@dataclass(frozen=True)
class FittedPool:
    """Members with their weights in the pool, by name, and what is known of the rows."""

    members: dict[str, GenerativeEstimator]
    weights: dict[str, float]  # w_m
    bias: Array  # (C,): b_y in nats
    partial_weights: dict[str, float]  # v_m, in rows of which a part is known
    partial_bias: Array  # (C,): of such rows
    nothing_weights: dict[str, float]  # e_m, in rows of which hardly anything is known
    nothing_bias: Array  # (C,): of such rows
    known_cells: KnownCells
    training_prior: Array  # (C,): p(y) of the training rows
    unlabelled_weight: float | None = None
    results: dict[str, list[str | float | None]] | None = None  # cross-validated scores; None after `merge`
    skipped: dict[str, str] = field(default_factory=dict)  # why candidates were left out
    record: TrainingRecord = field(default_factory=TrainingRecord)
    # The rest is not in files.
    language_note: str | None = None  # what is left out for the language of the pool
    out_of_fold: HeldOut | None = None
    held_out_sample: HeldOutSample | None = None  # predictions from which an update fits the weights

    @property
    def first(self) -> GenerativeEstimator:
        """The first member: all have the same columns and classes."""
        return next(iter(self.members.values()))

    @property
    def pool(self) -> Pool:
        """The weights and biases."""
        weights, nothing = (np.array(list(of.values())) for of in (self.partial_weights, self.nothing_weights))
        partial = PartialRows(weights, self.partial_bias, nothing, self.nothing_bias, self.known_cells)
        return Pool(np.array(list(self.weights.values())), self.bias, partial)

    def without_rows(self) -> FittedPool:
        """Return what predicts: members without their sums, and no predictions."""
        members = {name: _light(one) for name, one in self.members.items()}
        return replace(self, members=members, out_of_fold=None, held_out_sample=None)

    def for_file(self) -> FittedPool:
        """Return what a model file holds."""
        record = self.record.for_file()
        return replace(self, record=record, language_note=None, out_of_fold=None, held_out_sample=None)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        members = self.members
        require(len(members) > 0 and members.keys() == self.weights.keys(), "members or weights are missing")
        schema, target = self.first.schema_.uncut(), self.first.target_
        for member in members.values():
            member._check_fitted()
            require(member.schema_.uncut() == schema, "the members are of different columns")
            require(member.target_ == target, "the members have different classes")
        n_classes, n_columns = len(target.categories), len(schema.columns)
        check_numbers("the weights of the members", np.array(list(self.weights.values())), (len(members),), 0.0)
        check_numbers("the biases of classes", self.bias, (n_classes,))
        for of_rows in (self.partial_weights, self.nothing_weights):
            require(members.keys() == of_rows.keys(), "the weights for partial rows are missing")
        partial = self.pool.partial
        assert partial is not None
        partial.check_against(len(members), n_classes, n_columns)
        if self.unlabelled_weight is not None:
            check_share("the weight of rows without label", self.unlabelled_weight)
        check_numbers("the class prior of the training rows", self.training_prior, (n_classes,), 0.0, 1.0)
        self.record.check_against(n_classes, n_columns)


def _light(member: GenerativeEstimator) -> GenerativeEstimator:
    """Return a member with the same predictions, on one thread, without its sums."""
    light = copy.copy(member)
    light.n_jobs = 1
    light.fitted_ = light.fitted_.without_rows()
    return light
