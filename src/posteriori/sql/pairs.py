"""Effects of pairs of columns on a score, as a join of the cells of a row with one table of numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sqlglot import exp

from posteriori.model import PairTables
from posteriori.sql.dependence import CodeRows
from posteriori.sql.dialects import Node, column, literal
from posteriori.sql.steps import CellReader, SelectSteps
from posteriori.support.typing import Array
from posteriori.tables import Schema


def numbers_of_pairs(pairs: PairTables) -> tuple[Array, Array]:
    """Return the slots whose numbers differ between components, (S,), and the numbers less the first one's, (Z − 1, S).

    What all components share changes no posterior.
    """
    relative = pairs.numbers[1:] - pairs.numbers[:1]
    slots = np.flatnonzero(relative.any(axis=0))
    return slots, relative[:, slots]


def terms_of_pairs(
    pairs: PairTables, schema: Schema, steps: SelectSteps, cells: CellReader
) -> Iterator[tuple[int, Node]]:
    """Yield what all pairs together add to the score of each component but the first, relative to the first one."""
    slots, relative = numbers_of_pairs(pairs)
    used = np.unique(np.searchsorted(pairs.starts, slots, side="right") - 1).tolist()
    if not used:
        return
    components = range(1, len(pairs.numbers))
    places = sorted(set(pairs.places[used].ravel().tolist()))
    grouped = cells.with_groups({schema.coded[place]: pairs.codes_of_groups(place) for place in places}, "h")
    rows = CodeRows(steps, [grouped.code(schema.coded[place]) for place in places], "pairs")
    positions = rows.add_table("positions", ["p"], [(pair,) for pair in used])
    slot_of = " ".join(f"WHEN {pair} THEN {_slot(pairs, pair, places)}" for pair in used)
    slotted = rows.add(
        "slots", f"SELECT r, CASE p {slot_of} END AS slot\nFROM {rows.distinct()} CROSS JOIN {positions}"
    )
    lines = [(slot, *of_slot) for slot, of_slot in zip(slots.tolist(), relative.T.tolist(), strict=True)]
    numbers = rows.add_table("numbers", ["pair", *(f"u{z}" for z in components)], lines)
    joined = f" AS slots\nLEFT JOIN {numbers} AS numbers ON numbers.pair = slots.slot\nGROUP BY r"
    zero = rows.dialect.written(literal(0.0))
    sums = {f"z{z}": f"COALESCE({rows.dialect.written(exp.Sum(this=column(f'u{z}')))}, {zero})" for z in components}
    for z, name in zip(components, rows.finish(slotted, sums, joined), strict=True):
        yield z, column(name)


def _slot(pairs: PairTables, pair: int, places: list[int]) -> str:
    """Return the slot of a row in the numbers of a pair, NULL where a cell is missing, from the codes of the groups."""
    first, second = (f"c{places.index(place)}" for place in pairs.places[pair].tolist())
    return f"{pairs.starts[pair]} + ({first} - 1) * {pairs.sizes[pair, 1]} + {second}"
