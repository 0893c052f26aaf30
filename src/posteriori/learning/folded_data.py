"""Labelled rows dealt into folds by their cells, and the predictions of each fold by models of the other folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.learning.cross_fitting import cross_fit
from posteriori.learning.fit import FitResult, Plan, TrainingRows
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.folds import assign_folds, entries_of, rows_in_folds, stratified_subsample
from posteriori.learning.held_out_scores import score_batch, score_held_out
from posteriori.learning.importance import HeldOutRows, most_rows
from posteriori.learning.work_bounds import SCORING, WorkCounts
from posteriori.model import Posterior
from posteriori.sources import LabelledSource
from posteriori.sources.sampled import sampled_source
from posteriori.statistics.forests import CanonicalOrder, CodedRows
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column
from posteriori.tables.bags import Bags
from posteriori.tables.batch import joined
from posteriori.tables.progress import step

MOST_EVALUATED = 200_000  # rows: the standard error of an accuracy of 0.8 is then 0.001, and memory is bounded
MOST_EVALUATED_BY_ALL = 50_000  # the same, by every candidate of a pool: the standard error is then 0.002
MANY_ROWS = 100_000  # labelled rows in no fold, and
_MOST_CELLS = 1 << 24  # that are held and sorted
PER_EVALUATED_ROW = 2  # of them per evaluated row: these choose cut points and groups of all models


@dataclass(frozen=True)
class FoldedData:
    """Labelled rows assigned to folds, on which models of one schema are evaluated."""

    source: LabelledSource
    target: Column  # the classes
    # (m,): the positions of the rows that are held out in turn, ascending: rows with a label, or a subsample of them,
    # which has no row of weight 0
    evaluated: Array
    # y_true, fold, weight (m,): the class index, the fold and the weight of each evaluated row
    y_true: Array
    fold: Array
    weight: Array
    n_labelled: int  # the number of rows with a label from which `evaluated` is chosen, m or more
    order: CanonicalOrder | None = None  # of the evaluated rows, where folds are dealt by cells
    group: Array | None = None  # (m,): rows of one group are in one fold, however they are dealt
    origin: Array | None = None  # as in `TrainingRows`

    @classmethod
    def of(
        cls,
        rows: TrainingRows,
        folds: Any,
        *,
        stratified: bool = True,
        groups: Any = None,
        copies: Array | None = None,
        random_state: int = 0,
        at_most: bool = False,
        most: int | None = None,
    ) -> FoldedData:
        """Assign rows to folds.

        Parameters
        ----------
        rows : TrainingRows
        folds : int or array-like (n,)
            The number of folds, or the fold of each row.
        stratified : bool
            Whether to spread every class evenly over the folds.
        groups : array-like (n,), optional
            Rows of one group go to one fold. Then all rows are evaluated, whatever `most` is: the others of a group
            would train the models of all folds.
        copies : ndarray (n,), optional
            The group of equal rows of each row (`group_copies`): they go to one fold, unless groups or the fold
            of each row are given.
        random_state : int
        at_most : bool
            Whether to reduce the number of folds to the number of labelled rows if these are fewer. Rows of weight 0
            are not evaluated then.
        most : int, optional
            The largest number of evaluated rows. A larger table is subsampled evenly over the classes; the other rows
            train the models of all folds.

        Raises
        ------
        ValueError
            `at_most` is set and there are fewer than two rows with a label; or as `assign_folds` does.

        Notes
        -----
        Rows of weight 0 do not change the folds of the others, because they are dealt after them.
        """
        source, y_true = rows.source, rows.y_true
        weight = np.ones(len(y_true)) if source.weight is None else source.weight
        labelled = np.flatnonzero(y_true >= 0)
        counted = labelled[weight[labelled] > 0]
        evaluated = counted if at_most else labelled
        n_labelled = len(evaluated)
        if most is not None and groups is None and n_labelled > most:
            evaluated = counted[stratified_subsample(y_true[counted], most)]
        if at_most:
            if len(evaluated) < 2:
                raise ValueError(f"n_samples={len(evaluated)}: cross-validation takes two rows with a label at least")
            folds = min(folds, len(evaluated))
        group = None if groups is None else np.asarray(groups)[evaluated]
        folds = entries_of(evaluated, folds, len(y_true))
        of_rows = y_true[evaluated], weight[evaluated]
        copied = None if copies is None else copies[evaluated]
        fold = _counted_first(*of_rows, folds, stratified=stratified, groups=group, copies=copied, seed=random_state)
        known = of_rows[0], fold, of_rows[1]
        return cls(source, rows.target, evaluated, *known, n_labelled, group=group, origin=rows.origin)

    def dealt_by_cells(self, random_state: int) -> FoldedData:
        """Return the rows in folds that do not depend on the order of rows and columns, on names and on units.

        Names count only where a symmetry of the rows exchanges columns, categories or classes.
        Equal rows are interchangeable. A table of more than 2²⁴ evaluated cells keeps its folds, and
        so do groups, and a subsample of the labelled rows: which rows it has depends on their places.
        """
        if self.group is not None or len(self.evaluated) < self.n_labelled:
            return self
        order = _order_by_cells(self.source, self.evaluated, self.y_true, self.weight)
        return replace(self, order=order).dealt(self.folds, random_state) if order else self

    def dealt(self, folds: int, random_state: int = 0) -> FoldedData:
        """Return the rows in another number of folds, or in others of a seed; classes are spread evenly."""
        folds = min(folds, len(self.y_true))
        if self.order is None:
            return replace(self, fold=assign_folds(self.y_true, folds, groups=self.group, seed=random_state))
        fold, chosen = np.empty(len(self.y_true), np.int64), self.order.chosen
        fold[chosen] = assign_folds(self.order.place[self.y_true[chosen]], folds, seed=random_state)
        return replace(self, fold=fold)

    def chosen(self, positions: Array) -> FoldedData:
        """Return some of the evaluated rows, with their folds; the other rows train the models of all folds."""
        group = None if self.group is None else self.group[positions]
        of_rows = self.y_true[positions], self.fold[positions], self.weight[positions]
        order = self.order and replace(self.order, chosen=np.argsort(self.numbers_of_rows[positions]))
        return FoldedData(self.source, self.target, self.evaluated[positions], *of_rows, self.n_labelled, order, group)

    def apart(self, share: float, random_state: int) -> tuple[FoldedData, FoldedData]:
        """Return the rows with a share of the evaluated ones at weight 0, and all rows, with these in the one fold.

        The others are dealt to folds again. Rows of one group are in one part, and a class keeps some of its rows.
        """
        if self.group is None:
            held_out = self.dealt(round(1.0 / share), random_state).fold == 0
        else:
            held_out = self.fold == self._fold_apart(share)
        held_out &= np.bincount(self.y_true[~held_out], minlength=self.target.cardinality)[self.y_true] > 0
        factor = np.ones(self.source.table.n_rows)
        factor[self.evaluated[held_out]] = 0.0
        others = self.chosen(np.flatnonzero(~held_out))
        others = replace(others, source=self.source.reweighted(factor), n_labelled=self.n_labelled - held_out.sum())
        whole = replace(self, fold=np.where(held_out, 0, -1))
        if self.group is None:
            return others.dealt(self.folds, random_state), whole
        return replace(others, fold=np.unique(others.fold, return_inverse=True)[1]), whole

    def _fold_apart(self, share: float) -> int:
        """Return the fold whose share of the rows is nearest to another one."""
        return int(np.abs(np.bincount(self.fold) / len(self.fold) - share).argmin())

    def share_apart(self, share: float) -> float:
        """Return the share of the rows in the fold that `apart` keeps from the others, of groups."""
        return float(np.mean(self.fold == self._fold_apart(share)))

    def sample(self, most: int) -> FoldedData:
        """Return a stratified sample of the evaluated rows, in memory, with their folds."""
        chosen = self.chosen(stratified_subsample(self.y_true, most))
        source = sampled_source(self.source, chosen.evaluated, chosen.y_true)
        n = len(chosen.y_true)
        return replace(chosen, source=source, evaluated=np.arange(n), n_labelled=n)

    def part(self, judged: Array, learned: Array) -> FoldedData:
        """Return some of the evaluated rows, in memory: `judged` are in one fold, and `learned` in none.

        Both are positions of evaluated rows, ascending, and have none in common.
        """
        places = np.sort(np.concatenate([judged, learned]))
        source = sampled_source(self.source, self.evaluated[places], self.y_true[places])
        fold, evaluated = np.zeros(len(judged), np.int64), np.searchsorted(places, judged)
        return replace(self.chosen(judged), source=source, evaluated=evaluated, fold=fold, n_labelled=len(places))

    @property
    def places(self) -> Array:
        """The position of each evaluated row in the table that was given, (m,)."""
        return self.evaluated if self.origin is None else self.origin[self.evaluated]

    @property
    def rows(self) -> TrainingRows:
        """The rows without their folds."""
        return TrainingRows(self.source, self.target)

    @property
    def folds(self) -> int:
        """The number of folds."""
        return int(self.fold.max()) + 1

    @property
    def work_counts(self) -> WorkCounts:
        """The counts that determine the work of cross-fitting, if trees leave folds out."""
        n_rows, n_classes = self.source.table.n_rows, self.target.cardinality
        return WorkCounts(n_rows, len(self.evaluated), n_classes, self.folds, leave_trees_out=True)

    @property
    def most_are_in_no_fold(self) -> bool:
        """Whether so many labelled rows are in no fold that they alone can choose cut points and groups for all models.

        They belong to the training rows of every fold, and more rows would hardly change these.
        """
        n_others = self.n_labelled - len(self.evaluated)
        return n_others >= max(MANY_ROWS, PER_EVALUATED_ROW * len(self.evaluated))

    @property
    def numbers_of_rows(self) -> Array:
        """A number of each evaluated row, (m,), that does not depend on the order of rows, if that is known."""
        numbers = np.arange(len(self.y_true))
        if self.order is not None:
            numbers[self.order.chosen] = np.arange(len(numbers))
        return numbers

    @property
    def numbers_of_columns(self) -> Array:
        """A number of each column, (d,), that does not depend on the order of columns, if that is known."""
        numbers = np.arange(len(self.source.schema.columns))
        if self.order is not None:
            of_kind = self.source.schema.of_kind
            listed = np.array([*of_kind("continuous"), *of_kind("categorical"), *of_kind("counts")], np.int64)
            numbers[listed[self.order.columns]] = np.arange(len(self.order.columns))
        return numbers

    @property
    def fold_of_rows(self) -> Array:
        """The fold of every row, (n,); −1 for rows that are not evaluated, which train the models of all folds."""
        fold = np.full(self.source.table.n_rows, -1, np.int32)
        fold[self.evaluated] = self.fold
        return fold


def _counted_first(
    y_true: Array, weight: Array, folds: Any, *, stratified: bool, groups: Any, copies: Array | None, seed: int
) -> Array:
    """Return the fold of each row, (n,), by `assign_folds`: that of rows of positive weight does not depend on others.

    A row of weight 0 is in the fold of its group, if that has one. The others of weight 0 are dealt in turn.
    """
    counted = weight > 0
    if counted.all() or not isinstance(folds, int | np.integer):
        return assign_folds(y_true, folds, stratified=stratified, groups=groups, copies=copies, seed=seed)
    group, copied = (None if of is None else of[counted] for of in (groups, copies))
    fold = np.empty(len(y_true), np.int64)
    fold[counted] = assign_folds(y_true[counted], folds, stratified=stratified, groups=group, copies=copied, seed=seed)
    if groups is None:
        fold[~counted] = np.arange(np.count_nonzero(~counted)) % folds
        return fold
    fold_of = dict(zip(group.tolist(), fold[counted].tolist(), strict=True)) if group is not None else {}
    for name in groups[~counted].tolist():
        fold_of.setdefault(name, len(fold_of) % int(folds))
    fold[~counted] = [fold_of[name] for name in groups[~counted].tolist()]
    return fold


def judge_and_sample(
    plans: Sequence[Plan],
    folded: FoldedData,
    progress: Callable[[int], None] | None = None,
    sampled: Array | None = None,
    leave_trees_out: bool = False,
    known: Sequence[FitResult] | None = None,
) -> tuple[Array, list[CrossFitted], Batch | None]:
    """Return log p(y | x) of each evaluated row by the model of the other folds, (m, C, M), and all M models.

    `progress` is called with the number of rows of each finished batch; each row is counted twice. The third result is
    the cells of the evaluated rows at the positions `sampled`: one pass serves both, so that the cells for feature
    importance need no further one. With `leave_trees_out`, a row is predicted by those trees of a forest that did not
    see it, and no forest is fitted again. `known` is the fit of each plan to all rows, where other folds gave it.
    """
    fold, source = folded.fold_of_rows, folded.source.cached()
    if folded.most_are_in_no_fold:
        held_out = rows_in_folds(source.with_folds(fold))
        fitted = cross_fit(source, fold, folded.folds, plans, progress, held_out, leave_trees_out, known)
        log_posterior = score_batch(held_out, fitted, source.n_jobs, len(fold), progress)
        return log_posterior, fitted, None if sampled is None else held_out.rows(sampled)
    fitted = cross_fit(source, fold, folded.folds, plans, progress, None, leave_trees_out, known)
    marked = None
    if sampled is not None:
        marked = np.zeros(len(fold), np.bool_)
        marked[folded.evaluated[sampled]] = True
    with step(SCORING):
        log_posterior, kept = score_held_out(source, fold, fitted, progress, marked)
    return log_posterior, fitted, kept


def sample_of(folded: FoldedData) -> Array:
    """Return the positions of the evaluated rows for feature importance: a stratified subsample."""
    return stratified_subsample(folded.y_true, most_rows(len(folded.source.schema.columns)))


def held_out_rows(folded: FoldedData, sampled: Array, batch: Batch, posteriors: Sequence[Posterior]) -> HeldOutRows:
    """Return the sampled rows, each fold with the posterior that was learned from the rows outside it."""
    fold = folded.fold[sampled]
    folds = [(np.flatnonzero(fold == k), posterior) for k, posterior in enumerate(posteriors)]
    return HeldOutRows(batch, folded.y_true[sampled], folded.weight[sampled], tuple(folds), len(folded.y_true))


def _order_by_cells(source: LabelledSource, chosen: Array, component: Array, weight: Array) -> CanonicalOrder | None:
    """Return an order of rows and classes that depends on cells, labels and weights, not on places.

    It depends on names only where a symmetry of the rows exchanges columns, categories or classes. Of numbers, their
    order within the column counts, so that units do not. None for a table of more than 2²⁴ cells.

    The source has its inferred schema, and is read once. The rows are at the positions `chosen`, (m,), ascending;
    `component` is the class index of each, (m,), and `weight` its weight, (m,).
    """
    if len(chosen) * len(source.schema.columns) > _MOST_CELLS:
        return None
    marked = np.zeros(source.table.n_rows, np.bool_)
    marked[chosen] = True
    parts = source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]), "reading")
    cells = joined([part for part in parts if len(part)])
    schema = source.schema
    rank = schema.rank_by_name([j for kind in ("continuous", "categorical", "counts") for j in schema.of_kind(kind)])
    columns = [*map(_ranks, cells.numbers.values.T), *_categories(cells), *map(_distinct, cells.bags)]
    codes = np.array(columns, np.int32).reshape(len(columns), len(chosen)).T
    cardinalities = tuple(codes.max(axis=0, initial=0).tolist())
    is_ordered = np.arange(len(columns)) < cells.numbers.values.shape[1]
    n_classes = int(component.max()) + 1
    hashes = np.zeros(len(chosen), np.uint64)  # all rows are kept
    rows = CodedRows(cardinalities, n_classes, len(chosen), hashes, codes, component.astype(np.int32), weight)
    return CanonicalOrder.of(rows, is_ordered, np.array(rank, np.int64))


def _ranks(values: Array) -> Array:
    """Return the rank of each number among the distinct ones, from 1; 0 where it is missing."""
    known, ranks = ~np.isnan(values), np.zeros(len(values), np.int32)
    ranks[known] = np.unique(values[known], return_inverse=True)[1] + 1
    return ranks


def _categories(cells: Batch) -> Array:
    schema = cells.schema
    found: Array = cells.codes.values[:, [schema.coded.index(j) for j in schema.of_kind("categorical")]].T
    return found


def _distinct(bags: Bags) -> Array:
    """Return codes of bags, from 1, that are equal where the bags are."""
    parts = [slice(*ends) for ends in zip(bags.starts[:-1], bags.starts[1:], strict=True)]
    keys = [(bags.words[part].tobytes(), bags.counts[part].tobytes()) for part in parts]
    number = {key: 1 + k for k, key in enumerate(sorted(set(keys)))}
    return np.array([number[key] for key in keys], np.int32)
