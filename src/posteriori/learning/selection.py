"""Exact cross-validation from one pass: statistics are kept per fold, and every fold's model is their sum.

Cut points that look at the class are the exception: they must not have seen the rows that are held out, so that every
fold has its own, and needs a pass under them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from posteriori.learning.binning import Candidates, bins_of, find_candidates
from posteriori.learning.em import Learned, Limits, learn
from posteriori.learning.fit import collect, estimate
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import MemorySource
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Codes, Column, Schema
from posteriori.typing import Array

T = TypeVar("T")


@dataclass(frozen=True)
class OutOfFold:
    """What a model says of rows that it was not trained on.

    Attributes
    ----------
    posterior : ndarray (n, C)
        p(y | x) of each row, by the model of the other folds.
    prior : ndarray (n, C)
        p(y) of that model: the prediction that looks at no feature.
    components : ndarray (n,)
        The number of each row's true class.
    fold : ndarray (n,)
    classes : ndarray (C,)
    estimator : estimator
        Fitted to all rows, from the same pass.
    """

    posterior: Array
    prior: Array
    components: Array
    fold: Array
    classes: Array
    estimator: Any


def stratified_folds(components: Array, folds: int, random_state: int = 0) -> Array:
    """Return a fold number for each row, (n,), such that every class is spread evenly, to one row, over the folds."""
    shuffled = np.random.default_rng(random_state).permutation(len(components))
    by_class = shuffled[np.argsort(components[shuffled], kind="stable")]
    fold = np.empty(len(components), np.int64)
    fold[by_class] = np.arange(len(components)) % folds
    return fold


def out_of_fold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    sample_weight: Any = None,
    random_state: int = 0,
    progress: Callable[[int], None] | None = None,
) -> OutOfFold:
    """Predict every row by the model of the folds it is not in, and fit the estimator to all of them.

    One pass adds up the statistics of each fold; the model of fold k is estimated from the merged statistics of the
    others, which is what refitting k times would give; a second pass scores the rows. Columns binned by quantiles are
    cut where all rows say, whose labels have no part in it; those binned by "mdlp" are cut for each fold by the labels
    of the others, which takes one more pass a fold, as do weights of factors. Rows without label teach the models of
    all folds, and are not judged: they are left out of what is returned.

    Parameters
    ----------
    estimator : GenerativeEstimator
        Fitted to all rows on return.
    X, y, sample_weight
        As in its `fit`.
    folds : int, default 5
        At least 2; no more than there are rows.
    random_state : int, default 0
        Shuffles the rows before they are dealt out, class by class.
    progress : callable, optional
        Called with the number of rows of each batch done; each row is counted twice.

    Returns
    -------
    OutOfFold

    Raises
    ------
    ValueError
        There are fewer than two folds, or more than rows; or as `fit` does.
    """
    source, target = estimator._open(X, y, None, sample_weight, first=True)
    n_rows = source.table.n_rows
    components = source.labels.components(target, slice(0, n_rows))
    judged = np.flatnonzero(components >= 0)
    if not 2 <= folds <= len(judged):
        raise ValueError(f"folds is {folds}; give at least 2 and no more than the {len(judged)} rows")
    fold = np.full(n_rows, -1)
    fold[judged] = stratified_folds(components[judged], folds, random_state)
    source = replace(source, folds=fold)
    blocks = estimator._blocks(source.schema)
    candidates = find_candidates(source, bins_of(blocks))
    source = source.with_schema(candidates.schema)
    folded = _Folded(source, fold, folds, blocks, estimator._prior(target), estimator._limits())
    n_classes = len(target.categories)
    learned = folded.learn_each(candidates, progress) if candidates.supervised else folded.learn_together(progress)
    estimator._classes_closed = False
    whole = learned.pop()
    rows = source.with_schema(whole.model.schema)
    estimator._adopt(replace(whole, model=estimator._weighed(whole, rows)), target)
    models = [_Trimmed.of(one, folded.prior) for one in learned]
    for k, one in enumerate(models):
        rows = source.with_schema(one.full).reweighted(fold != k)
        weighed = estimator._weighed(Learned(one.model, one.statistics), rows, one.recoded)
        models[k] = replace(one, model=weighed)
    source = replace(source, progress=progress)

    def score(batch: Batch) -> Array:
        assert batch.fold is not None
        posterior = np.empty((len(batch), n_classes))
        for k, model in enumerate(models):
            rows = np.flatnonzero(batch.fold == k)
            posterior[rows] = model.posterior(batch.rows(rows))
        return posterior

    posterior = source.map(score)
    log_prior = np.stack([model.model.log_prior for model in models])
    fold = fold[judged]
    return OutOfFold(
        posterior[judged], np.exp(log_prior)[fold], components[judged], fold, estimator.classes_, estimator
    )


@dataclass(frozen=True)
class _Folded:
    """What the models of the folds are learned from, and how."""

    source: MemorySource
    fold: Array
    folds: int
    blocks: tuple[Block, ...]
    prior: Prior
    limits: Limits

    def learn_together(self, progress: Callable[[int], None] | None) -> list[Learned]:
        """Return what all folds but each teach, and last what all do, from one pass."""
        source = replace(self.source, progress=progress)
        joint = source.reduce(_per_fold(collect(self.blocks), self.folds))
        same: list[Any] = [None] * len(self.blocks)
        parts = [joint.reindexed(components, same) for components in self._components(len(joint.weight))]

        def learn_without(k: int | None) -> Learned:
            """Use the statistics of the other folds and, where EM needs them, their rows."""
            rows = self.source if k is None else self.source.reweighted(self.fold != k)
            others = [part for number, part in enumerate(parts) if number != k]
            return learn(rows, self.blocks, self.prior, None, _sum(others), self.limits)

        return [learn_without(k) for k in [*range(self.folds), None]]

    def learn_each(self, candidates: Candidates, progress: Callable[[int], None] | None) -> list[Learned]:
        """Return the same where the folds differ in their cut points: one pass for these, and one a fold."""
        counts = self.source.reduce(_per_fold(candidates.count, self.folds))
        parts = [counts.reindexed(components) for components in self._components(len(counts.table))]
        learned = []
        for k in [*range(self.folds), None]:
            chosen = candidates.chosen(_sum([part for number, part in enumerate(parts) if number != k]))
            rows = self.source.with_schema(chosen)
            if k is not None:
                rows = rows.reweighted(self.fold != k)
            statistics = replace(rows, progress=progress if k is None else None).reduce(collect(self.blocks))
            learned.append(learn(rows, self.blocks, self.prior, None, statistics, self.limits))
        return learned

    def _components(self, n: int) -> list[range]:
        """Return the components of each fold, of n pairs of fold and class."""
        n_classes = n // self.folds
        return [range(k * n_classes, (k + 1) * n_classes) for k in range(self.folds)]


def _per_fold(accumulate: Callable[[Batch], T], folds: int) -> Callable[[Batch], T]:
    """Return a function to statistics with a component for each pair of fold and class, fold first."""

    def accumulate_per_fold(batch: Batch) -> T:
        labels = batch.assignment
        assert labels is not None
        assert batch.fold is not None
        pair = batch.fold * labels.n_components + labels.component
        component = np.where(labels.component < 0, -1, pair).astype(np.int32)
        pairs = replace(labels, component=component, n_components=folds * labels.n_components)
        return accumulate(replace(batch, assignment=pairs))

    return accumulate_per_fold


def _sum(parts: list[T]) -> T:
    total = parts[0]
    for part in parts[1:]:
        total = operator.add(total, part)
    return total


@dataclass(frozen=True)
class _Trimmed:
    """A model that knows only the categories its own rows show, as if it had never met the others.

    Attributes
    ----------
    full : Schema
        With all categories, and the cut points of the model.
    recode : tuple of ndarray
        For each column with codes, the trimmed code of every code of the full schema.
    statistics : JointStatistics
        That the model was estimated from.
    """

    full: Schema
    model: GenerativeModel
    recode: tuple[Array, ...]
    statistics: JointStatistics

    @classmethod
    def of(cls, learned: Learned, prior: Prior) -> _Trimmed:
        model, statistics = learned.model, learned.statistics
        schema = model.schema
        columns: list[Column] = list(schema.columns)
        recode: dict[int, Array] = {}
        moves: list[list[list[int]] | None] = []
        for block, sums in zip(model.blocks, statistics.blocks, strict=True):
            kept = []
            for place, j in enumerate(block.coded(schema)):
                fixed = schema.columns[j].declared or schema.columns[j].is_binned
                seen = sums.column(place).any(axis=0) | fixed
                kept.append(np.flatnonzero(seen).tolist())
                recode[j] = np.concatenate([[0], np.where(seen, np.cumsum(seen), 0)]).astype(schema.code_dtype)
                if not schema.columns[j].is_binned:
                    cells = tuple(cell for cell, keep in zip(columns[j].categories, seen, strict=True) if keep)
                    columns[j] = replace(columns[j], categories=cells)
            moves.append(kept or None)
        trimmed = replace(schema, columns=tuple(columns))
        sums = statistics.reindexed(range(len(statistics.weight)), moves)
        codes = tuple(recode[j] for j in schema.coded)
        return cls(schema, estimate(trimmed, model.blocks, prior, sums), codes, sums)

    def posterior(self, batch: Batch) -> Array:
        return self.model.posterior(self.recoded(batch))

    def recoded(self, batch: Batch) -> Batch:
        """Return the rows in the codes of the trimmed schema."""
        batch = batch.with_schema(self.full)
        codes = batch.codes.values.copy()
        for place, table in enumerate(self.recode):
            codes[:, place] = table[codes[:, place]]
        schema = self.model.schema
        trimmed = Codes(codes, schema.cardinalities(schema.coded))
        return replace(batch, schema=schema, codes=trimmed)
