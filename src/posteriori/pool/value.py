"""The result of a fit of a pool, as one value: its members, their weights, and facts about the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from posteriori.fitting.fitted import Fitted, FittedClasses
from posteriori.model import Extrapolation, KnownCells, PartialRows, Pool, Posterior
from posteriori.model.class_priors import check_priors, log_prior_ratio
from posteriori.model_selection.held_out_predictions import HeldOut
from posteriori.pool.held_out_sample import HeldOutSample
from posteriori.statistics import ColumnRanges
from posteriori.statistics.sums import ranges_of
from posteriori.support.checks import check_numbers, check_share, require
from posteriori.support.typing import Array
from posteriori.tables import Schema


@dataclass(frozen=True)
class FittedPool(FittedClasses):
    """Members with their weights in the pool, by name, and what is known of the rows."""

    members: dict[str, Fitted]
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
    # The rest is not in files.
    language_note: str | None = None  # what is left out for the language of the pool
    out_of_fold: HeldOut | None = None
    held_out_sample: HeldOutSample | None = None  # predictions from which an update fits the weights

    @property
    def parts(self) -> dict[str, Fitted]:
        """The members by their title."""
        return {f"the member {name!r}": one for name, one in self.members.items()}

    @property
    def schema(self) -> Schema:
        """The columns, without cut points if there are several members."""
        return self.posterior.schema

    @property
    def pool(self) -> Pool:
        """The weights and biases."""
        weights, nothing = (np.array(list(of.values())) for of in (self.partial_weights, self.nothing_weights))
        partial = PartialRows(weights, self.partial_bias, nothing, self.nothing_bias, self.known_cells)
        models, ranges = [one.model for one in self.members.values()], self.ranges
        beyond = None if ranges is None else Extrapolation.of(ranges, models, self.log_prior_ratio)
        return Pool(np.array(list(self.weights.values())), self.bias, partial, beyond)

    @property
    def ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return ranges_of([member.ranges for member in self.members.values()])

    @cached_property
    def posterior(self) -> Posterior:
        """The models of the members and their pool."""
        priors = self.recipe.parameters["priors"]
        log_prior = None if priors is None else np.log(check_priors(priors, self.target))
        return Posterior(tuple(one.model for one in self.members.values()), self.pool, log_prior)

    @property
    def training_posterior(self) -> Posterior:
        """The posterior under the class prior of the training rows."""
        posterior = self.posterior
        assert posterior.pool is not None
        return replace(posterior, pool=posterior.pool.moved(-self.log_prior_ratio), log_prior=None)

    @property
    def log_prior_ratio(self) -> Array:
        """Log of p(y) under `priors` over p(y) of the training rows, (C,), in nats; part of the biases."""
        return log_prior_ratio(self.recipe.parameters["priors"], self.target, self.training_prior)

    def with_priors(self, priors: Any) -> Self:
        """Return the pool whose biases are those of other class shares."""
        shares = check_priors(priors, self.target)
        change = log_prior_ratio(shares, self.target, self.training_prior) - self.log_prior_ratio
        return replace(
            self,
            recipe=self.recipe.with_(priors=shares),
            bias=self.bias + change,
            partial_bias=self.partial_bias + change,
            nothing_bias=self.nothing_bias + change,
            record=self.record.of_other_shares(change),
            out_of_fold=None,
        )

    def without_rows(self) -> Self:
        """Return a value of the same predictions: members without their sums, and no held-out predictions."""
        members = {name: one.without_rows() for name, one in self.members.items()}
        return replace(self, members=members, out_of_fold=None, held_out_sample=None)

    def for_file(self) -> Self:
        """Return the value as a model file holds it."""
        members, record = {name: one.for_file() for name, one in self.members.items()}, self.record.for_file()
        return replace(self, members=members, record=record, language_note=None, out_of_fold=None, held_out_sample=None)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        members = self.members
        require(len(members) > 0 and members.keys() == self.weights.keys(), "members or weights are missing")
        schema, target = self.first.schema.uncut(), self.target
        for member in members.values():
            member.check()
            require(member.schema.uncut() == schema, "the members are of different columns")
            require(member.target == target, "the members have different classes")
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
        _ = self.log_prior_ratio  # raises an error if the priors do not fit the classes
