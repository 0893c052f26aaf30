"""Columns that parameters name, by their names, indices or masks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.densities.capabilities import check_base
from posteriori.densities.registry import REGISTRY
from posteriori.engines import engine_of
from posteriori.reading import Scan
from posteriori.reading.known_columns import KnownColumns
from posteriori.reading.texts import Texts
from posteriori.tables import Column, Schema, quote
from posteriori.tables.times import PARTS
from posteriori.tables.tokenizer import Tokenizer


def find_column(key: Any, names: Sequence[str], parameter: str) -> int:
    """Return the position of a feature, by its name or by its index among the features."""
    if isinstance(key, str):
        if key not in names:
            raise ValueError(f"{parameter} names {key!r}, which is not a feature of X ({quote(names)})")
        return names.index(key)
    if not isinstance(key, int | np.integer) or not -len(names) <= key < len(names):
        shown = " ".join(repr(key).split())
        raise ValueError(f"{parameter} names {shown}; give a column's name or an index below {len(names)}")
    if str(key) in names and names.index(str(key)) != key:
        raise ValueError(f"{parameter} names {key}, a name and the index of another column; give the name {str(key)!r}")
    return int(key) % len(names)


def column_of(key: Any, schema: Schema) -> int:
    """Return the position in a schema of the column that `distributions` names, by its name or index in the table."""
    if key in schema.names:
        return schema.names.index(key)
    place = find_column(key, schema.given, "distributions")
    columns = [j for j, one in enumerate(schema.places) if one == place]
    if schema.columns[columns[0]].part is not None:
        parts = quote(schema.names[j] for j in columns)
        raise ValueError(f"distributions names {key!r}, which holds dates; name one of its parts: {parts}")
    return columns[0]


def with_exposure(density: Any, column: Column, schema: Schema) -> Any:
    """Return the density of a column, with its exposure by name if it conditions on one.

    Raises ValueError if there is no such column, or it is not another column of numbers that the model uses.
    """
    check_base(density)
    given = density.exposure
    if given is None:
        return density
    j = column_of(given, schema)
    exposure = schema.columns[j]
    if exposure.kind != "continuous" or exposure.is_ignored or exposure.name == column.name:
        what = "the column itself" if exposure.name == column.name else "not a column of numbers that the model uses"
        raise ValueError(
            f"the exposure of column {column.name!r} is {exposure.name!r}, which is {what}; name another column"
        )
    return replace(density, exposure=exposure.name)


def text_places(
    text: Any, keep: Any, columns: Sequence[int], names: Sequence[str], categorical: Collection[int]
) -> Texts:
    """Return which columns of a table may be text, or are, from the parameters `text` and `keep`.

    columns and names are the positions and the names of the features; categorical are features that are not text.
    """
    if text is None:
        return ()
    if isinstance(text, str):
        named = keep if isinstance(keep, list | tuple) else ()
        others = {*categorical, *(find_column(one, names, "keep") for one in named)}
        return frozenset(columns[j] for j in range(len(names)) if j not in others)
    settings: Mapping[Any, Any] = text if isinstance(text, Mapping) else {key: {} for key in text}
    return {columns[find_column(key, names, "text")]: Tokenizer.of(one) for key, one in settings.items()}


def _place_of_distribution(key: Any, names: Sequence[str]) -> int:
    """Return the position in the table of the column, or of the column of dates whose part, `distributions` names."""
    if isinstance(key, str) and key not in names:
        name, _, part = key.rpartition(".")
        if name in names and part in PARTS:
            return names.index(name)
    return find_column(key, names, "distributions")


def categorical_places(stated: Any, distributions: Any, names: Sequence[str]) -> set[int]:
    """Return the features that are categorical whatever their data type.

    Parameters
    ----------
    stated, distributions
        The parameters `categorical_features` and `distributions` of an estimator.
    names : sequence of str
        The features.
    """
    chosen = _places_of(stated, names)
    if isinstance(distributions, Mapping):
        for key, distribution in distributions.items():
            position = _place_of_distribution(key, names)
            is_part = isinstance(key, str) and key not in names
            if getattr(distribution, "kind", distribution) == "categorical" and not is_part:
                chosen.add(position)
    return chosen


def stated_columns(X: Any, categorical_features: Any, distributions: Any, y: Any = None) -> KnownColumns:
    """Return the roles that parameters of an estimator give to columns of files, opened if it names none."""
    listed = np.atleast_1d(np.asarray(categorical_features, dtype=object)).tolist()
    named = [one for one in listed if isinstance(one, str)]
    keys = [*distributions] if isinstance(distributions, Mapping) else []
    if named == ["all"] or not all(one is None or isinstance(one, str) for one in (*listed, *keys)):
        names = _features_of_files(X, y)
        named = [names[j] for j in categorical_places(categorical_features, distributions, names)] if names else named
    kinds: dict[str, str] = {}
    if isinstance(distributions, Mapping):
        of_name = {entry.density.name: entry.density.kind for entry in REGISTRY}
        kinds = {
            key: str(one.kind if hasattr(one, "kind") else of_name.get(one, one))
            for key, one in distributions.items()
            if isinstance(key, str)
        }
    return KnownColumns(
        categories={*named, *(name for name, kind in kinds.items() if kind == "categorical")},
        labels=[y] if isinstance(y, str) else [],
        numbers={name for name, kind in kinds.items() if kind == "continuous"},
    )


def _features_of_files(X: Any, y: Any) -> list[str]:
    """Return the names of the features of files; none if X is another table."""
    engine = None if isinstance(X, Scan) else engine_of(X)
    table = X if isinstance(X, Scan) else engine.open(X) if engine is not None else None
    if not isinstance(table, Scan):
        return []
    label = y if isinstance(y, str) else table.target
    return [name for name in table.names if name != label]


def kept_places(keep: Any, categorical_features: Any, distributions: Any, names: Sequence[str]) -> set[int] | None:
    """Return which of the features are modelled even if they identify rows; None for all.

    These are the columns that the parameters of an estimator name. `names` are the features.
    """
    if isinstance(keep, str) and keep == "all":
        return None
    chosen = _places_of(categorical_features, names)
    chosen.update(find_column(one, names, "keep") for one in (keep if isinstance(keep, list | tuple) else ()))
    return chosen | stated_places(distributions, names)


def stated_places(distributions: Any, names: Sequence[str]) -> set[int]:
    """Return the features that the parameter `distributions` names; none if it is no mapping."""
    return (
        {_place_of_distribution(key, names) for key in distributions} if isinstance(distributions, Mapping) else set()
    )


def _places_of(stated: Any, names: Sequence[str]) -> set[int]:
    """Return the positions of the features that `categorical_features` names."""
    chosen: set[int] = set()
    if isinstance(stated, str) and stated == "all":
        return set(range(len(names)))
    if stated is not None and not (isinstance(stated, str) and stated in ("auto", "from_dtype")):
        wanted = [stated] if isinstance(stated, str) else np.atleast_1d(np.asarray(stated, dtype=object)).tolist()
        if wanted and all(isinstance(one, bool | np.bool_) for one in wanted):
            if len(wanted) != len(names):
                raise ValueError(
                    f"categorical_features is a mask of {len(wanted)} entries but there are {len(names)} features"
                )
            chosen.update(j for j, one in enumerate(wanted) if one)
        else:
            chosen.update(find_column(one, names, "categorical_features") for one in wanted)
    return chosen
