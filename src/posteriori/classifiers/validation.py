"""What the estimators check of their arguments, and what they warn of."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from posteriori.densities import Missingness
from posteriori.model import Block, GenerativeModel
from posteriori.statistics import JointStatistics
from posteriori.tables import Labels, Schema, Table, quote
from posteriori.tables.objects import is_missing


def find_column(key: Any, names: Sequence[str], parameter: str) -> int:
    """Return the position of a feature, by its name or by its index among the features."""
    if isinstance(key, str):
        if key not in names:
            raise ValueError(f"{parameter} names {key!r}, which is not a feature of X ({quote(names)})")
        return names.index(key)
    if not isinstance(key, int | np.integer) or not -len(names) <= key < len(names):
        raise ValueError(f"{parameter} names {key!r}; give a column's name or an index below {len(names)}")
    return int(key) % len(names)


def categorical_places(stated: Any, distributions: Any, names: Sequence[str]) -> set[int]:
    """Return which of the features are to be categorical whatever their data type.

    Parameters
    ----------
    stated, distributions
        The parameters `categorical_features` and `distributions` of an estimator.
    names : sequence of str
        The features.
    """
    chosen: set[int] = set()
    if stated is not None and not (isinstance(stated, str) and stated == "from_dtype"):
        wanted = [stated] if isinstance(stated, str) else list(stated)
        if wanted and all(isinstance(one, bool | np.bool_) for one in wanted):
            if len(wanted) != len(names):
                raise ValueError(
                    f"categorical_features is a mask of {len(wanted)} entries but there are {len(names)} features"
                )
            chosen.update(j for j, one in enumerate(wanted) if one)
        else:
            chosen.update(find_column(one, names, "categorical_features") for one in wanted)
    if isinstance(distributions, Mapping):
        for key, distribution in distributions.items():
            place = find_column(key, names, "distributions")
            if getattr(distribution, "kind", distribution) == "categorical":
                chosen.add(place)
    return chosen


def matched_places(
    table: Table, schema: Schema, model: str, target: str | None = None, *, warn_of_lost_names: bool = True
) -> tuple[int, ...]:
    """Return where each column of a schema stands in a table, which may hold the target as well."""
    if schema.named and not table.named and warn_of_lost_names:
        warnings.warn(
            f"X does not have valid feature names, but {model} was fitted with feature names",
            UserWarning,
            stacklevel=5,
        )
    elif table.named and not schema.named:
        warnings.warn(
            f"X has feature names, but {model} was fitted without feature names",
            UserWarning,
            stacklevel=5,
        )
    names = [name for name in table.names if name != target or target in schema.names]
    places = schema.match(names, table.named, model)
    return tuple(table.names.index(names[place]) for place in places)


def missingness_of(missing: str, alpha: float, schema: Schema) -> tuple[Block, ...]:
    """Return the block that says which cells are missing, where the parameter of the estimator wants it."""
    if missing != "informative":
        return ()
    return (Block(Missingness(alpha), tuple(range(len(schema.columns)))),)


def labels_to_learn(labels: Labels, unlabelled: Any, has_parameter: bool, last: bool) -> Labels:
    """Return the labels of rows to learn from, some of which may be missing where that is wanted.

    Parameters
    ----------
    labels : Labels
    unlabelled : "error", "learn" or a label
        The parameter of the estimator; a label is a code for a missing one.
    has_parameter : bool
        Whether the estimator lets its user set it.
    last : bool
        Whether no more rows follow: EM takes all of them at once.
    """
    if unlabelled == "error" or not has_parameter:
        advice = ', or let them teach by unlabelled="learn"' if has_parameter and last else ""
        return replace(labels, advice=f"drop or label such rows{advice}")
    code = None if unlabelled == "learn" or is_missing(unlabelled) else unlabelled
    if last:
        return replace(labels, code=code, may_miss=True)
    advice = "partial_fit learns from labelled rows, and EM needs all rows at once: drop or label such rows, or use fit"
    return replace(labels, code=code, advice=advice)


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator for any of scikit-learn's ways to state randomness."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def warn_of_empty_columns(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Warn of columns in which no row of any weight had a value."""
    seen = {
        column
        for block, sums in zip(model.blocks, statistics.blocks, strict=True)
        for column, any_seen in zip(block.columns, sums.observed().any(axis=0), strict=True)
        if any_seen
    }
    empty = [column.name for j, column in enumerate(model.schema.columns) if j not in seen]
    if empty:
        verb = "have" if len(empty) > 1 else "has"
        warnings.warn(
            f"{quote(empty)} {verb} no cell with a value and will influence no prediction",
            UserWarning,
            stacklevel=5,
        )
