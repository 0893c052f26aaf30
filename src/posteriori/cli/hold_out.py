"""Rows that fit holds out: chosen, predicted by a model of the other rows, and described in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from posteriori.cli.fit_options import HoldOutOptions
from posteriori.cli.messages import UserError
from posteriori.cli.named_columns import group_numbers
from posteriori.support.formatting import listed, number, plural

if TYPE_CHECKING:
    import polars as pl

    from posteriori.model_selection import HeldOut
    from posteriori.reading import Scan
    from posteriori.support.typing import Array

_MOST_NAMED = 3  # rows without a value
_FEWEST_TRAINED = 2  # labelled rows


@dataclass(frozen=True)
class HoldOut:
    """Rows that are held out.

    Attributes
    ----------
    options : HoldOutOptions
    trained, judged : ndarray
        The positions of the rows that the scoring model learns from, and of the labelled rows that it is judged by,
        ascending. Rows without a label are in neither if they belong to the held-out ones.
    n_held_out : int
        The labelled rows that are held out; more than are judged in a large table.
    groups : tuple of str and int, optional
        The column of groups, and how many of them are held out.
    first : Any
        The least value of the column that is held out.
    unknown : ndarray
        The positions of the rows with an unknown value of the column, which are trained on.
    n_rows : int
    """

    options: HoldOutOptions
    trained: Array
    judged: Array
    n_held_out: int
    groups: tuple[str, int] | None
    first: Any
    unknown: Array
    n_rows: int

    def sentence(self, numbered: bool) -> str:
        """Return which rows are held out, and that the saved model learned from all; name rows if `numbered`."""
        from posteriori.cli.tables import label_text

        held, by = plural(self.n_held_out, "row"), label_text(self.options.holdout_by)
        first = number(self.first) if isinstance(self.first, float) else label_text(self.first)
        if self.groups is not None:
            held += f" of {plural(self.groups[1], 'group')} of {label_text(self.groups[0])}"
        if self.options.holdout_by is None:
            which = f"{held}, drawn at random"
        elif self.groups is None:
            which = f"the {held} with the last values of {by}, from {first} on"
        else:
            which = f"the {held} whose last {by} is {first} or later"
        if len(self.judged) < self.n_held_out:
            which += f" ({len(self.judged):,} of them)"
        return (
            f"Scored on {which}, by a model of {len(self.trained):,} other rows{self._without_value(by, numbered)}; "
            f"the saved model learned from all {self.n_rows:,} rows."
        )

    def _without_value(self, by: str, numbered: bool) -> str:
        """Return how many of the other rows have no value of the column, and the first of them."""
        n = len(self.unknown)
        if not n:
            return ""
        named = [str(row) for row in self.unknown] if numbered else []
        places = f" ({'row' if n == 1 else 'rows'} {listed(named, _MOST_NAMED)})" if named else ""
        return f", among them {n:,} without {by}{places}"

    def groups_left(self, groups: Array) -> int:
        """Return the number of groups of the rows that are not held out.

        Raises
        ------
        UserError
            There is only one, so that the pool cannot weigh its members by cross-validation.
        """
        assert self.groups is not None
        n = len(np.unique(groups))
        if n < 2:
            raise UserError(
                f"--holdout {self.options.share:g} leaves one group of {self.groups[0]!r}, and the pool needs two; "
                "give a smaller share, or another --model"
            )
        return n

    def facts(self, numbered: bool) -> dict[str, Any]:
        """Return the facts, without scores."""
        return {
            "sentence": self.sentence(numbered),
            "share": self.options.share,
            "by": self.options.holdout_by,
            "from": self.first if self.first is None or isinstance(self.first, int | float) else str(self.first),
            "groups": None if self.groups is None else self.groups[1],
            "held_out_rows": self.n_held_out,
            "trained_rows": len(self.trained),
            "rows_without_value": len(self.unknown),
        }


class Judged(NamedTuple):
    """The predictions behind the sentences of fit: those of held-out rows, or of the cross-validation if none are.

    `numbered` is whether positions of rows are those in the file: rows without a label may have been left out.
    """

    predictions: HeldOut
    held_out: HoldOut | None
    numbered: bool

    @property
    def doubtful(self) -> list[tuple[int | None, float]]:
        """The positions of the rows whose class is doubted most, with its probability; None if they are not known."""
        from posteriori.model_selection import in_words

        place = self.predictions.place
        found = in_words.doubtful_rows(self.predictions.of_truth, self.predictions.weight)
        assert place is not None  # known of folds and of held-out rows
        return [(int(place[i]) if self.numbered else None, p) for i, p in found]


def choose_rows(
    scan: Scan,
    target: str,
    options: HoldOutOptions,
    groups: str | None,
    left_out: str | None,
    seed: int,
    copies: Array | None = None,
) -> HoldOut:
    """Choose the rows to hold out.

    Without a column they are drawn at random, the same share of each class, or whole groups. With a column they are the
    rows with its last values. Rows of one value stay together, and so do those of one group, whose value is its last
    one. Rows that are drawn at random take their `copies` along, the group of equal rows of each row.

    Raises
    ------
    UserError
        No row would be held out, or a class would have no row to learn from.
    """
    import polars as pl

    names = list(dict.fromkeys([name for name in (options.holdout_by, groups) if name is not None] + [target]))
    cells = scan.narrowed(names, left_out).frame.collect(engine="streaming")
    labels = _known(cells[target])
    labelled = labels.is_not_null().to_numpy()
    y = group_numbers(labels.cast(pl.String))
    group = None if groups is None else group_numbers(cells[groups])
    if groups is not None and group is not None and len(np.unique(group[labelled])) < 2:
        raise UserError(f"whole groups are held out, and {groups!r} of --groups has only one group; remove --groups")
    first, unknown = None, np.zeros(0, np.int64)
    if options.holdout_by is not None:
        values = _known(cells[options.holdout_by])
        own = group_numbers(values.to_physical())
        key = own if group is None else _last_of_group(own, group)
        unknown = np.flatnonzero(key == 0)
        cut = _cut(key[labelled], options, groups)
        held, first = key >= cut, values[int(np.argmax(own == cut))]
    elif group is not None:
        held = np.isin(group, _draw_groups(group[labelled], options.share, seed))
    elif copies is not None:
        is_first = np.zeros(len(y), np.bool_)
        is_first[np.unique(copies, return_index=True)[1]] = True
        held = np.isin(copies, copies[_draw_rows(y, labelled & is_first, options.share, seed)])
    else:
        held = _draw_rows(y, labelled, options.share, seed)
    judged, trained = np.flatnonzero(held & labelled), np.flatnonzero(~held)
    _check_classes(y, judged, np.flatnonzero(~held & labelled), labels, options)
    found = None if group is None or groups is None else (groups, len(np.unique(group[judged])))
    return HoldOut(options, trained, _subsample(judged, y), len(judged), found, first, unknown, len(cells))


def _known(cells: pl.Series) -> pl.Series:
    """Return the cells with NaN as a missing one."""
    return cells.fill_nan(None) if cells.dtype.is_float() else cells


def _last_of_group(key: Array, group: Array) -> Array:
    """Return the greatest key of the group of each row, (n,)."""
    _, position = np.unique(group, return_inverse=True)
    last = np.zeros(position.max(initial=0) + 1, key.dtype)
    np.maximum.at(last, position, key)
    return last[position]


def _cut(key: Array, options: HoldOutOptions, groups: str | None) -> int:
    """Return the key from which rows are held out: their share is the closest one to the wanted share."""
    known = key[key > 0]
    distinct, counts = np.unique(known, return_counts=True)
    if len(distinct) < 2:
        same = "value in every row" if groups is None else f"last value in every group of {groups!r}"
        what = f"the same {same}" if len(distinct) else "no value"
        raise UserError(f"--holdout-by names {options.holdout_by!r}, which has {what}; name another column")
    later = np.cumsum(counts[::-1])[::-1][1:]
    return int(distinct[1:][np.argmin(np.abs(later - options.share * len(known)))])


def _draw_groups(group: Array, share: float, seed: int) -> Array:
    """Return random groups whose rows are about a share of all; at least one is drawn and one is left."""
    distinct, counts = np.unique(group, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(distinct))
    many = np.cumsum(counts[order])[:-1]
    return distinct[order[: int(np.argmin(np.abs(many - share * len(group)))) + 1]]


def _draw_rows(y: Array, labelled: Array, share: float, seed: int) -> Array:
    """Return whether each row is held out, (n,): a random share of each class; no class is held out as a whole."""
    places = np.flatnonzero(labelled)
    shuffled = np.random.default_rng(seed).permutation(places)
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    most = round(share * len(places))
    held = np.zeros(len(y), np.bool_)
    if most:
        held[by_class[np.arange(most) * len(places) // most]] = True  # evenly spaced in the order of the classes
    held[~np.isin(y, y[labelled & ~held])] = False
    if not held.any():
        raise UserError(
            f"--holdout {share:g} of {plural(len(places), 'labelled row')} holds out no row; give a larger share"
        )
    return held


def _check_classes(y: Array, judged: Array, trained: Array, labels: pl.Series, options: HoldOutOptions) -> None:
    if len(trained) < _FEWEST_TRAINED:
        raise UserError(f"--holdout {options.share:g} leaves fewer than two labelled rows to learn from; give less")
    if not len(judged):
        raise UserError("the held-out rows have no label; choose another share or another column")
    new = judged[~np.isin(y[judged], y[trained])]
    if len(new):
        raise UserError(
            f"only held-out rows have the class {labels[int(new[0])]!r}, so that no model of the others can predict "
            "it; choose another share with --holdout, or another column"
        )


def _subsample(judged: Array, y: Array) -> Array:
    from posteriori.learning.folded_data import MOST_EVALUATED
    from posteriori.learning.folds import stratified_subsample

    return judged[stratified_subsample(y[judged], MOST_EVALUATED)]


def judge_held_out(
    scorer: Any, fitted: Any, rows: Scan, features: Sequence[str], target: str, chosen: HoldOut
) -> HeldOut:
    """Return the predictions of the held-out rows by the model of the others, with the classes of the model of all."""
    from posteriori.model_selection import HeldOut
    from posteriori.reading import read_labels, read_table
    from posteriori.reading.target_cuts import numbers_as_classes
    from posteriori.tables.polars import exactly

    held = rows.at(chosen.judged)
    with numbers_as_classes():
        labels = read_labels(target, read_table(held.frame.select(exactly(target)).collect(engine="streaming")))
        y_true = labels.components(fitted.target_, slice(0, len(chosen.judged)))
    known = list(scorer.target_.categories)
    order = [known.index(category) for category in fitted.target_.categories]  # both have every class
    given = HeldOut.given(scorer.fitted_, y_true, scorer.predict_log_proba(held.narrowed(features)))
    return replace(
        given,
        log_posterior=given.log_posterior[:, order],
        prior=given.prior[:, order],
        classes=fitted.classes_,
        how=chosen.sentence(numbered=False),
        estimator=fitted,
        place=chosen.judged,
        rows_are="held-out rows",
    )
