"""Exact cross-validation from one pass: statistics are kept per fold, and every fold's model is their sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.learning.fit import collect, estimate
from posteriori.model import Block, GenerativeModel
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Codes, Column, Schema
from posteriori.typing import Array


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
    others, which is what refitting k times would give; a second pass scores the rows.

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
    if not 2 <= folds <= n_rows:
        raise ValueError(f"folds is {folds}; give at least 2 and no more than the {n_rows} rows")
    components = source.labels.components(target, slice(0, n_rows))
    fold = stratified_folds(components, folds, random_state)
    source = replace(source, folds=fold, progress=progress)

    n_classes = len(target.categories)
    blocks, prior = estimator._blocks(source.schema), estimator._prior(target)
    per_fold = _split(source.reduce(_collect_per_fold(blocks, folds)), folds, n_classes)
    models = [_Trimmed.of(source.schema, blocks, prior, _sum(per_fold[:k] + per_fold[k + 1 :])) for k in range(folds)]
    estimator._classes_closed = False
    estimator._adopt(source.schema, target, blocks, _sum(per_fold))

    def score(batch: Batch) -> Array:
        assert batch.fold is not None
        posterior = np.empty((len(batch), n_classes))
        for k, model in enumerate(models):
            rows = np.flatnonzero(batch.fold == k)
            posterior[rows] = model.posterior(batch.rows(rows))
        return posterior

    posterior = source.map(score)
    log_prior = np.stack([model.model.log_prior for model in models])
    return OutOfFold(posterior, np.exp(log_prior)[fold], components, fold, estimator.classes_, estimator)


def _collect_per_fold(blocks: tuple[Block, ...], folds: int) -> Callable[[Batch], JointStatistics]:
    """Return `collect` with a component for each pair of fold and class, fold first."""
    accumulate = collect(blocks)

    def accumulate_per_fold(batch: Batch) -> JointStatistics:
        labels = batch.assignment
        assert labels is not None
        assert batch.fold is not None
        component = (batch.fold * labels.n_components + labels.component).astype(np.int32)
        pairs = replace(labels, component=component, n_components=folds * labels.n_components)
        return accumulate(replace(batch, assignment=pairs))

    return accumulate_per_fold


def _split(statistics: JointStatistics, folds: int, n_classes: int) -> list[JointStatistics]:
    same: list[Any] = [None] * len(statistics.blocks)
    return [statistics.reindexed(range(k * n_classes, (k + 1) * n_classes), same) for k in range(folds)]


def _sum(parts: list[JointStatistics]) -> JointStatistics:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@dataclass(frozen=True)
class _Trimmed:
    """A model that knows only the categories its own rows show, as if it had never met the others.

    recode holds, for each categorical column, the trimmed code of every code of the full schema.
    """

    model: GenerativeModel
    recode: tuple[Array, ...]

    @classmethod
    def of(cls, schema: Schema, blocks: tuple[Block, ...], prior: Any, statistics: JointStatistics) -> _Trimmed:
        columns: list[Column] = list(schema.columns)
        recode: dict[int, Array] = {}
        moves: list[list[list[int]] | None] = []
        for block, sums in zip(blocks, statistics.blocks, strict=True):
            if block.density.kind != "categorical":
                moves.append(None)
                continue
            kept = []
            for place, j in enumerate(block.columns):
                seen = sums.column(place).any(axis=0) | schema.columns[j].declared
                kept.append(np.flatnonzero(seen).tolist())
                recode[j] = np.concatenate([[0], np.where(seen, np.cumsum(seen), 0)]).astype(schema.code_dtype)
                cells = tuple(cell for cell, keep in zip(columns[j].categories, seen, strict=True) if keep)
                columns[j] = replace(columns[j], categories=cells)
            moves.append(kept)
        trimmed = replace(schema, columns=tuple(columns))
        sums = statistics.reindexed(range(len(statistics.weight)), moves)
        return cls(estimate(trimmed, blocks, prior, sums), tuple(recode[j] for j in schema.of_kind("categorical")))

    def posterior(self, batch: Batch) -> Array:
        codes = batch.codes.values.copy()
        for place, table in enumerate(self.recode):
            codes[:, place] = table[codes[:, place]]
        schema = self.model.schema
        cardinalities = schema.cardinalities(schema.of_kind("categorical"))
        return self.model.posterior(replace(batch, schema=schema, codes=Codes(codes, cardinalities)))
