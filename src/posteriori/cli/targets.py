"""Check that a target holds classes, and read tables with their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from posteriori.cli.files import read_frame
from posteriori.cli.messages import UserError, as_user_errors, note
from posteriori.cli.named_columns import columns_named, features_left, without_groups
from posteriori.support.suggestions import closest, similar

if TYPE_CHECKING:
    import polars as pl

    from posteriori.cli.options import ColumnOptions, LabelOptions
    from posteriori.reading import TargetCuts


class QuantityError(UserError):
    """A target holds a quantity, where classes are needed."""


_AS_DAYS = "write it as a number, such as the days since the first date"
_OTHERWISE = "posteriori fit without --model predicts it as a number, --classes 4 cuts it into classes"


def cuts_of(frames: Iterable[pl.DataFrame], target: str, options: LabelOptions) -> TargetCuts | None:
    """Return the quantiles at which --classes cuts the target; None without that option."""
    if options.classes is None:
        return None
    if options.target_is_class:
        raise UserError(
            "--classes is for a target that is a quantity, --target-is-class for one that is not; remove one of them"
        )
    import polars as pl

    from posteriori.reading import TargetCuts

    labels = pl.concat([frame[target] for frame in frames])
    if not labels.dtype.is_numeric():
        raise UserError(f"--classes cuts numbers, and the target {target!r} has none; remove the option")
    with as_user_errors():
        return TargetCuts.of(labels, options.classes)


def labelled_rows(
    frame: pl.DataFrame, target: str, path: Path, is_class: bool = True, consequence: str = ""
) -> pl.DataFrame:
    """Return the rows with a label, and say on stderr how many have none; `is_class` allows any whole numbers.

    Parameters
    ----------
    frame : DataFrame
    target : str
    path : Path
    is_class : bool, default True
    consequence : str, default ""
        What else follows for the user if rows are left out.

    Raises
    ------
    UserError
        The target does not exist, holds no classes, or has no label at all; the message has a remedy.
    """
    check_column(target, frame.schema, path.name)
    labels = frame[target].alias("labels")
    if labels.dtype.is_float():
        labels = labels.fill_nan(None)
    counts = labels.drop_nulls().value_counts(name="rows")
    check_labels(target, dict(zip(*counts.get_columns(), strict=True)), is_class)
    missing = labels.null_count()
    if not missing:
        return frame
    from posteriori.support.formatting import plural

    without = plural(missing, "row") + f" without a label in {target!r} " + ("is" if missing == 1 else "are")
    note(f"{without} left out, of {frame.height:,}{consequence}")
    return frame.filter(labels.is_not_null())


def rows_with_number(frame: pl.DataFrame, target: str) -> pl.DataFrame:
    """Return the rows with a number as target, and say on stderr how many have none.

    Raises
    ------
    UserError
        The target holds no numbers.
    """
    if frame[target].null_count() == frame.height:
        raise UserError(f"every cell of the target {target!r} is missing; choose another table")
    check_numeric(target, frame.schema)
    numbers = frame[target]
    known = numbers.is_not_null() & (numbers.is_not_nan() if numbers.dtype.is_float() else True)
    missing = frame.height - int(known.sum())
    if missing == frame.height:
        raise UserError(f"every cell of the target {target!r} is missing; choose another table")
    if missing:
        note(f"{without_number(missing, target)}, of {frame.height:,}")
    return frame.filter(known)


def without_number(n_rows: int, target: str) -> str:
    """Return that rows without a target are left out."""
    from posteriori.support.formatting import plural

    return f"{plural(n_rows, 'row')} without {target!r} {'is' if n_rows == 1 else 'are'} left out"


def check_numeric(target: str, types: Mapping[str, pl.DataType], remark: str | None = None) -> None:
    """Raise UserError unless a target holds numbers; `remark` says why a column of numbers is read as text."""
    if str(types[target]) == "Null":
        raise UserError(f"every cell of the target {target!r} is missing; fill it in, or choose another target")
    if not types[target].is_numeric():
        kind = f"the target {target!r} is {types[target]}, and a regressor predicts numbers; use a classifier"
        raise UserError(remark or kind)


def check_column(target: str, types: Mapping[str, pl.DataType], table: str, unlabelled: str = "") -> None:
    """Raise UserError if a target does not exist, is the only column, or has a type that classes cannot have.

    `unlabelled` says what can be done with rows that have no labels.
    """
    if target not in types:
        instead = f"; {unlabelled}" if unlabelled and similar(target, types) is None else ""
        raise UserError(f"{table!r} has no column {target!r}; {closest(target, types, 'columns')}{instead}")
    if len(types) < 2:
        raise UserError(f"{table!r} has only one column, {target!r}; a model needs a feature beside the target")
    dtype = types[target]
    if dtype.is_nested() or dtype.is_temporal() or str(dtype) in ("Binary", "Object"):
        dates = f"; to predict it, {_AS_DAYS}" if dtype.is_temporal() else ""
        raise UserError(
            f"the target {target!r} is {dtype}; classes must be strings, whole numbers or true/false{dates}"
        )


def check_labels(target: str, rows: Mapping[Any, int], is_class: bool = False) -> None:
    """Check that labels are classes.

    Parameters
    ----------
    target : str
    rows : mapping
        Number of rows of each label.
    is_class : bool, default False
        Whether whole numbers are classes, however many there are.

    Raises
    ------
    UserError
        There are no labels, or they are quantities or too many.
    """
    from posteriori.reading.target_cuts import looks_like_a_quantity

    if not rows:
        raise UserError(f"every cell of the target {target!r} is missing; fill it in, or choose another target")
    check_whole(target, rows)
    n_rows = sum(rows.values())
    if is_class:
        return
    if looks_like_a_quantity(list(rows), n_rows):
        raise QuantityError(
            f"the target {target!r} holds {len(rows):,} different numbers in {n_rows:,} rows, from {min(rows)} to "
            f"{max(rows)}, and looks like a quantity; {_OTHERWISE}, and --target-is-class takes each number as a class"
        )
    if len(rows) > 50 and 2 * len(rows) > n_rows:
        raise UserError(
            f"the target {target!r} has {len(rows):,} classes in {n_rows:,} rows, too few per class "
            "to learn from; is it an identifier or a quantity? choose another target"
        )


def note_dates(target: str, labels: Iterable[Any]) -> None:
    """Say on stderr that each date is a class, if labels are dates that are written as strings."""
    distinct = list(labels)
    if not distinct or not all(isinstance(label, str) for label in distinct):
        return
    import polars as pl

    from posteriori.reading.written_times import type_of_strings

    found, reason = type_of_strings(pl.Series(distinct, dtype=pl.String))
    if found is not None or reason.startswith("holds dates"):
        each = f"each of {len(distinct):,} different ones is a class"
        note(f"{target!r} holds dates, and {each}; to predict a date, {_AS_DAYS}")


def check_whole(target: str, labels: Iterable[Any]) -> None:
    """Raise UserError if a label is a fraction."""
    fraction = next((label for label in labels if isinstance(label, float) and not label.is_integer()), None)
    if fraction is not None:
        raise QuantityError(f"the target {target!r} holds {fraction}, so it is a quantity, not a class; {_OTHERWISE}")


class LabelledTable(NamedTuple):
    """A table in memory, with its features, those of them that are categorical, and the column of groups."""

    frame: pl.DataFrame
    features: list[str]
    categorical: list[str]
    groups: str | None
    is_number: bool = False  # the target is a quantity


def read_labelled(
    path: Path,
    target: str,
    *,
    columns: ColumnOptions,
    labels: LabelOptions,
    groups: str | None = None,
    numbers: bool = False,
    only_numbers: bool = False,
) -> LabelledTable:
    """Read a table whose target holds classes, and apply the options on its columns.

    With `numbers` a quantity is a number, and with `only_numbers` each target.

    Raises
    ------
    UserError
        The file cannot be read, an option names an unknown column, no feature is left, or the target is unsuitable.
    """
    frame, is_number = read_frame(path, labels=target), only_numbers
    check_column(target, frame.schema, path.name)
    if not only_numbers:
        try:
            cuts = cuts_of([frame], target, labels)
            classes = frame if cuts is None else frame.with_columns(cuts.expression(target))
            frame = labelled_rows(classes, target, path, labels.target_is_class)
        except QuantityError:
            if not numbers:
                raise
            is_number = True
    if is_number:
        frame = rows_with_number(frame, target)
    features = features_left(frame.columns, target, columns.ignore, path.name)
    if groups is not None:
        groups, features = without_groups(groups, frame.columns, features, target, path.name)
    return LabelledTable(
        frame, features, columns_named(columns.categorical, features, "--categorical"), groups, is_number
    )
