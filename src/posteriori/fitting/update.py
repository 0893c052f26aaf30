"""Rows added to a fitted model and removed from it, by their statistics; which models are sums over their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.densities import VarianceDensity
from posteriori.fitting.estimate_warnings import columns_with_values
from posteriori.fitting.fitted import Fitted
from posteriori.fitting.further_dates import warn_of_further_dates
from posteriori.fitting.learn import checked_fit, learned
from posteriori.fitting.rows import read_further_rows
from posteriori.learning.cut_points import retyped, with_missing_cuts
from posteriori.learning.fit import (
    Collect,
    CollectedRows,
    FitResult,
    TrainingRows,
    carry_over_structure,
    estimate,
    unrefined,
    with_categories_of,
)
from posteriori.model import Block, GenerativeModel, bins_of
from posteriori.statistics import ColumnRanges, JointStatistics, ReversibleStatistics
from posteriori.statistics.sums import Sums, exceeds
from posteriori.tables import Batch, Column, Schema, quote
from posteriori.user_warnings import warn

NO_SUMS = "this model was built from parameters, which do not contain the number of rows"
_AGREE = "give rows, and weights, that it learned from"
_LOST = 1e-7  # if less of a sum of squares is left, the difference has fewer than nine correct digits


def add(fitted: Fitted, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Fitted:
    """Return the model of rows and of those that were learned from before, and the sums of all."""
    collected = _collect_further(fitted, X, y, sample_weight, classes)
    found = learned(fitted.recipe, collected)
    _warn_of_expected_sums(fitted.recipe.name, collected)
    return replace(found, classes_closed=fitted.classes_closed, record=fitted.record.of_other_model())


def warn_of_first_choices(fitted: Fitted, method: str) -> None:
    """Warn if the first rows chose what a fit of all rows may choose otherwise, so that `method` differs from it."""
    blocks = fitted.model.blocks
    chosen = [one.density.chosen_once for one in blocks]
    if any(not isinstance(points, tuple) for points in bins_of(blocks).values()):
        chosen.append("the cut points of bins")
    if any(chosen):
        warn(
            f"{fitted.recipe.name}.{method} keeps {' and '.join(filter(None, chosen))}, which the first rows chose, so "
            "that the model may differ from one fit of the rows; fit all rows at once if it has to be the same"
        )


def _collect_further(fitted: Fitted, X: Any, y: Any, sample_weight: Any, classes: Any) -> CollectedRows:
    """Read rows under a fitted model, and collect their statistics beside those of the earlier rows."""
    recipe = fitted.recipe
    sums_of(fitted)  # raises its error before the rows are read
    rows = read_further_rows(fitted, X, y, sample_weight, classes=classes, complete=False)
    warn_of_further_dates([fitted], rows)
    target, before = rows.target, fitted.model
    plan = recipe.plan_for(rows.source, target, complete=False)
    source = rows.source.with_schema(with_missing_cuts(rows.source.schema, plan.blocks))
    blocks = carry_over_structure(plan.blocks, before.blocks)
    blocks = with_categories_of(blocks, before.schema, source.schema, target.places_in(fitted.target))
    past = past_statistics(fitted, source.schema, target, blocks)  # raises its errors before the rows are read
    recipe.check_size(source.schema, target)
    sums = source.reduce(Collect(blocks))
    return CollectedRows(TrainingRows(source, target), replace(plan, blocks=blocks), sums, past)


def _warn_of_expected_sums(name: str, collected: CollectedRows) -> None:
    """Warn if earlier or further rows lack cells that a density needs, so that `partial_fit` is not one fit.

    `name` is that of the estimator.
    """
    past = collected.past
    schema = collected.rows.source.schema
    lacking: list[str] = []
    for position, (block, sums) in enumerate(zip(collected.plan.blocks, collected.statistics.blocks, strict=True)):
        if not (sums.is_exact() and (past is None or past.blocks[position].is_exact())):
            lacking += [schema.columns[j].name for j in block.columns]
    if lacking:
        warn(
            f"rows with missing cells in {quote(lacking)} make {name}.partial_fit differ from one fit: each call fills "
            "them in under the model of that call, and fit under the model of all rows; "
            "fit all rows together, leave such rows out, or choose NaiveBayes, which needs no such cells"
        )


def remove(fitted: Fitted, X: Any, y: Any = None, sample_weight: Any = None) -> Fitted:
    """Return the value without some of its rows; ValueError if the model cannot have learned from these."""
    obstacle = reason_not_mergeable(fitted, "unlearn", "fit the remaining rows")
    if obstacle:
        raise ValueError(obstacle)
    recipe = fitted.recipe
    model, target, past = fitted.model, fitted.target, sums_of(fitted)
    rows = read_further_rows(fitted, X, y, sample_weight, complete=False)
    source = rows.source
    _reject_new_classes(rows.target, target)
    blocks = carry_over_structure(recipe.blocks(model.schema), model.blocks)
    past_statistics(fitted, model.schema, target, blocks)  # raises an error if parameters have changed since the fit
    gone = source.with_schema(model.schema).reduce(_recognising(Collect(blocks), source.schema))
    _reject_unseen(model, target, past, gone)
    rest = past - gone
    if not rest.weight.any():
        raise ValueError("these are all the rows that the model has learned from; leave some, or fit others")
    rest = replace(rest, ranges=_ranges_of_rest(model, rest))
    found = FitResult(estimate(model.schema, blocks, recipe.prior(target), rest), rest)
    value = checked_fit(recipe, found, target, fitted.unlabelled_weight)
    _warn_of_lost_digits(found.model, target, past, rest)
    return replace(value, classes_closed=fitted.classes_closed, record=fitted.record.of_other_rows())


def fade(fitted: Fitted, keep: float) -> Fitted:
    """Return the model of the same rows with their weights multiplied by a factor; ValueError if it is no sum."""
    obstacle = reason_not_mergeable(fitted, "forget", "fit all rows with sample_weight")
    if obstacle:
        raise ValueError(obstacle)
    recipe, model, target = fitted.recipe, fitted.model, fitted.target
    blocks = carry_over_structure(recipe.blocks(model.schema), model.blocks)
    sums = past_statistics(fitted, model.schema, target, blocks)  # raises an error if parameters changed since the fit
    for block, one in zip(blocks, sums.blocks, strict=True):
        if not isinstance(one, Sums):
            raise ValueError(
                f"the statistics of the density {block.density.name!r} have no weights to multiply; "
                "fit all rows with sample_weight"
            )
    faded = sums.scaled(keep)
    found = FitResult(estimate(model.schema, blocks, recipe.prior(target), faded), faded)
    value = checked_fit(recipe, found, target, fitted.unlabelled_weight)
    return replace(value, classes_closed=fitted.classes_closed, record=fitted.record.of_other_model())


def reason_not_mergeable(fitted: Fitted, method: str, instead: str) -> str | None:
    """Return why the statistics of a fitted model are not sums over its rows, as a sentence; None if they are.

    Parameters
    ----------
    fitted : Fitted
    method : str
        Name of the method that needs sums.
    instead : str
        The remedy, in the imperative.
    """
    model, statistics = fitted.model, fitted.statistics
    if statistics is None:
        return f"{NO_SUMS}; {instead}"
    wanted = unrefined(fitted.recipe.blocks(model.schema))
    if wanted:
        return f"{wanted[0]} looks at all rows twice, and {method} sees only sums; {instead}"
    if fitted.recipe.leaves_rows_out:
        return f"{fitted.recipe.leaves_rows_out} takes all rows at once, and {method} sees only sums; {instead}"
    if model.of_class or fitted.recipe.labels.label_noise is not None:
        return f"components_per_class and label_noise take EM over all rows, and {method} sees only sums; {instead}"
    if statistics.hidden > 0:
        return (
            "this model was learned from rows without label by EM, so its sums are its own expected values; "
            f"leave out such rows, or {instead}"
        )
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        if not sums.is_exact():
            names = quote(model.schema.columns[j].name for j in block.columns)
            return (
                f"this model was learned from missing cells of {names} by EM, so its sums are its own expected values; "
                f"leave out rows with missing cells, choose a model that needs no EM (NaiveBayes), or "
                f"{instead}"
            )
    return None


def reason_not_extendable(fitted: Fitted) -> str | None:
    """Return why a fitted model cannot learn from more rows, as a sentence; None if it can."""
    wanted = unrefined(fitted.recipe.blocks(fitted.schema))
    if wanted:
        return f"{wanted[0]} looks at all rows twice, and partial_fit sees each once; fit all rows together"
    if fitted.model.of_class or fitted.recipe.labels.label_noise is not None:
        return "components_per_class and label_noise take EM over all rows; fit all rows together"
    return f"{NO_SUMS}; use fit" if fitted.statistics is None else None


def past_statistics(fitted: Fitted, schema: Schema, target: Column, blocks: tuple[Block, ...]) -> JointStatistics:
    """Return the sums of a fitted model with the columns, categories and classes of another schema."""
    old = fitted.schema
    statistics = retyped(sums_of(fitted), old, fitted.model.blocks, schema, blocks)
    if schema is old and target is fitted.target:
        return statistics
    moves = [[schema.columns[j].places_in(old.columns[j]) for j in block.indexed(schema)] or None for block in blocks]
    return statistics.reindexed(target.places_in(fitted.target), moves)


def sums_of(fitted: Fitted) -> JointStatistics:
    """Return the sums of a fitted model; ValueError if it was built from parameters."""
    if fitted.statistics is None:
        raise ValueError(f"{NO_SUMS}; use fit")
    return fitted.statistics


def _ranges_of_rest(model: GenerativeModel, rest: JointStatistics) -> ColumnRanges | None:
    """Return the ranges, empty for columns without a value left; the others cannot be narrowed from sums."""
    if rest.ranges is None:
        return None
    left = columns_with_values(model, rest)
    known = rest.ranges
    nothing = ColumnRanges.empty(len(known.lowest))
    return ColumnRanges(
        np.where(left, known.lowest, nothing.lowest),
        np.where(left, known.highest, nothing.highest),
        np.where(left, known.whole, nothing.whole),
    )


def _reject_new_classes(classes: Column, target: Column) -> None:
    unseen = [label for label in classes.categories if label not in target.lookup]
    if unseen:
        raise ValueError(f"the model has learned of no row of class {unseen[0]!r}; {_AGREE}")


def _recognising(accumulate: Callable[[Batch], JointStatistics], seen: Schema) -> Callable[[Batch], JointStatistics]:
    """Return `accumulate`, with an error for a category that the model has not learned from."""

    def recognise(batch: Batch) -> JointStatistics:
        for name in batch.unseen:
            position = batch.schema.names.index(name)
            known = batch.schema.columns[position].lookup
            unseen_category = next((cell for cell in seen.columns[position].categories if cell not in known), None)
            raise ValueError(f"the model has learned of no row with {unseen_category!r} in column {name!r}; {_AGREE}")
        return accumulate(batch)

    return recognise


def _reject_unseen(model: GenerativeModel, target: Column, past: JointStatistics, gone: JointStatistics) -> None:
    """Raise an error that names the class and the columns if the model cannot have learned from the rows."""
    heavy = exceeds(gone.weight, past.weight)
    if heavy.any():
        z = int(np.argmax(heavy))
        raise ValueError(
            f"the rows of class {target.categories[z]!r} weigh {gone.weight[z]:g}, but the model has learned from "
            f"{past.weight[z]:g}; {_AGREE}"
        )
    for block, mine, theirs in zip(model.blocks, past.blocks, gone.blocks, strict=True):
        if not isinstance(mine, ReversibleStatistics):
            raise TypeError(
                f"the statistics of the density {block.density.name!r} cannot be subtracted (they lack `__sub__` and "
                "`would_go_negative`); fit the remaining rows"
            )
        lacking = mine.would_go_negative(theirs)
        if lacking.any():
            z = int(np.argmax(lacking.any(axis=1)))
            names = [model.schema.columns[block.columns[position]].name for position in np.flatnonzero(lacking[z])]
            verb = "hold" if len(names) > 1 else "holds"
            raise ValueError(
                f"in rows of class {target.categories[z]!r}, {quote(names)} {verb} what the model has not learned from "
                f"such rows, or not as often; {_AGREE}"
            )


def _warn_of_lost_digits(model: GenerativeModel, target: Column, past: JointStatistics, rest: JointStatistics) -> None:
    """Warn of columns whose scatter has shrunk so much that the subtraction cancelled its digits."""
    for block, before, after in zip(model.blocks, past.blocks, rest.blocks, strict=True):
        if not isinstance(block.density, VarianceDensity):
            continue
        positions, now = block.density.moments_of_numbers(after)
        _, was = block.density.moments_of_numbers(before)
        lost = (now.weight > 1.0) & (now.scatter < _LOST * was.scatter)
        if lost.any():
            z, position = np.argwhere(lost)[0]
            column = model.schema.columns[block.columns[positions[position]]]
            warn(
                f"column {column.name!r} varies so much less in class {target.categories[z]!r} without these rows that "
                "few digits are left of its variance there; fit the remaining rows again"
            )
