"""Checks of the arguments of a network, which come from a caller or a model file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from posteriori.networks.cpt import CPT
from posteriori.networks.linear_gaussian import LinearGaussian
from posteriori.networks.naming import first_repeated


def table_size(value: Any) -> int:
    """Return max_table_size as an integer; ValueError unless it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"max_table_size is {value!r}; it must be a whole number of at least 1")
    return int(value)


def given_tables(cpts: Any) -> tuple[CPT | LinearGaussian, ...]:
    """Return the tables and densities, at most one per variable.

    Raises
    ------
    TypeError
        An item is no CPT and no LinearGaussian.
    ValueError
        A variable has two tables.
    """
    tables = items("cpts", cpts)
    for cpt in tables:
        if not isinstance(cpt, CPT | LinearGaussian):
            raise TypeError(f"cpts holds {cpt!r}, a {type(cpt).__name__}; give a CPT or LinearGaussian")
    names = [cpt.variable for cpt in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"the variable {first_repeated(names)!r} has two tables; leave one out")
    return tables


def given_edge(edge: Any) -> Any:
    """Return an edge as a tuple of names; TypeError for other types. `DAG` checks its length."""
    pair = tuple(edge) if isinstance(edge, list) else edge
    if isinstance(pair, tuple):
        for name in pair:
            text("the name of a variable", name)
        return pair
    raise TypeError(f"{edge!r} is no edge; an edge is a pair (parent, child)")


def given_properties(properties: Any) -> dict[str, tuple[str, ...]]:
    """Return the properties of the network and of its variables; TypeError unless all are strings."""
    checked = {}
    for key, words in mapping("properties", properties).items():
        listed = (words,) if isinstance(words, str) else items(f"the list of properties of {key!r}", words)
        if listed:
            checked[text("a key of properties", key)] = tuple(text(f"a property of {key!r}", word) for word in listed)
    return checked


def text(what: str, value: Any) -> str:
    """Return a string; TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, a {type(value).__name__}; it must be a string")
    return value


def mapping(what: str, value: Any) -> Mapping[Any, Any]:
    """Return a mapping, or an empty one for None; TypeError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} is {value!r}; give a mapping from the name of a variable")
    return value


def items(what: str, value: Any) -> tuple[Any, ...]:
    """Return the items of an iterable; TypeError for a string or anything that is not iterable."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{what} is {value!r}; give a list")
    return tuple(value)
