"""Columns that options name: features, groups of rows, kinds, and parts of dates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import UserError
from posteriori.cli.options import split_names
from posteriori.support.suggestions import closest

if TYPE_CHECKING:
    import polars as pl

    from posteriori.support.typing import Array

NOT_OF_DENSITIES = ("text", "keep")  # kinds of --column that name no density


def columns_named(given: list[str] | None, names: Sequence[str], option: str) -> list[str]:
    """Return the columns that an option names: each value is a column, or several separated by commas.

    Raises
    ------
    UserError
        There is no such column.
    """
    found: list[str] = []
    for value in given or []:
        for name in [value] if value in names else split_names([value]):
            if name not in names:
                hint = closest(name, names, "columns")
                raise UserError(f"{option} names {name!r}, which is not a feature of the table; {hint}")
            if name not in found:
                found.append(name)
    return found


def features_left(names: Sequence[str], target: str, ignore: list[str] | None, table: str) -> list[str]:
    """Return the columns except the target and the ignored columns.

    Raises
    ------
    UserError
        There is none, or --ignore names an unknown column.
    """
    features = [name for name in names if name != target]
    ignored = columns_named(ignore, features, "--ignore")
    return _require_features([name for name in features if name not in ignored], target, table)


def _require_features(features: list[str], target: str, table: str) -> list[str]:
    if not features:
        raise UserError(f"{table!r} has no column left beside the target {target!r}; a model needs a feature")
    return features


def without_groups(
    groups: str, names: Sequence[str], features: list[str], target: str, table: str
) -> tuple[str, list[str]]:
    """Return the column that --groups names, and the features without it.

    Raises
    ------
    UserError
        There is no such column, or several are named, or no feature is left.
    """
    found = columns_named([groups], [name for name in names if name != target], "--groups")
    if len(found) != 1:
        raise UserError(f"--groups is {groups!r}; name one column")
    return found[0], _require_features([name for name in features if name != found[0]], target, table)


def group_numbers(cells: pl.Series) -> Array:
    """Return the group of each row as a number, (n,); rows whose cell is missing are one group."""
    if cells.dtype.is_nested() or str(cells.dtype) == "Object":
        raise UserError(
            f"--groups names {cells.name!r}, which is {cells.dtype}; groups must be strings, numbers or dates"
        )
    return cells.alias("group").rank("dense").fill_null(0).to_numpy()


def parts_of_dates(dates: list[str] | None) -> Any:
    """Return the parameter `dates` of an estimator for the option --dates.

    Raises
    ------
    UserError
        The option names an unknown part.
    """
    from posteriori.reading.column_kinds import check_dates

    names = split_names(dates)
    chosen = "parts" if not names else names[0] if names in (["parts"], ["ignore"]) else names
    try:
        check_dates(chosen)
    except ValueError as error:
        raise UserError(f"--{error}") from None
    return chosen


def columns_of_kinds(values: Sequence[str] | None, features: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each kind that --column names; ["all"] for ``all=keep``.

    Raises
    ------
    UserError
        A value lacks its =, a column does not exist, or has two kinds.
    """
    found: dict[str, list[str]] = {}
    for value in values or []:
        if value == "help":
            raise UserError(f"--column takes COLUMN=KIND; the kinds are {', '.join(_kinds())}")
        names, equals, kind = value.rpartition("=")
        if not equals or not names:
            raise UserError(f"--column is {value!r}; write COLUMN=KIND, such as {value or 'A'}=text")
        every = kind == "keep" and names == "all" and "all" not in features
        found.setdefault(kind, []).extend(["all"] if every else columns_named([names], features, "--column"))
    kind_of: dict[str, str] = {}
    for kind, names_of_kind in found.items():
        for name in names_of_kind:
            if kind_of.setdefault(name, kind) != kind:
                raise UserError(f"--column names {name!r} as {kind_of[name]} and as {kind}; choose one")
    return found


def _kinds() -> list[str]:
    from posteriori.densities.registry import REGISTRY

    return [*NOT_OF_DENSITIES, *sorted(entry.density.name for entry in REGISTRY if entry.options is not None)]


def kind_of_density(name: str) -> str:
    """Return the kind of cells that a density of --column models, such as "continuous"; empty if it names none."""
    from posteriori.densities.registry import REGISTRY

    return next((entry.density.kind for entry in REGISTRY if entry.density.name == name), "")


def kept_and_text(values: Sequence[str] | None, features: Sequence[str], of_text: bool = True) -> dict[str, Any]:
    """Return the parameters `keep` and, unless a command has none, `text` of a function, from --column.

    Raises
    ------
    UserError
        As `columns_of_kinds` does, or a column has another kind.
    """
    chosen = columns_of_kinds(values, features)
    kinds = NOT_OF_DENSITIES if of_text else ("keep",)
    other = next((kind for kind in chosen if kind not in kinds), None)
    if other is not None:
        raise UserError(f"--column takes {' or '.join(kinds)} here, not {other}; only fit has densities of columns")
    keep = chosen.get("keep")
    found: dict[str, Any] = {"keep": "all" if keep == ["all"] else keep}
    return found | {"text": chosen.get("text") or "auto"} if of_text else found
