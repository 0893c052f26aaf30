"""The log density of averaged one-dependence, as joins of the cells of a row with the table of all pairs of columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from posteriori.densities import AveragedParameters
from posteriori.sql.dialects import column, number
from posteriori.sql.factors import Factor, FactorContext
from posteriori.sql.relations import CodeRows, log_sum_of


def averaged_factors(
    context: FactorContext, columns: Sequence[int], parameters: AveragedParameters
) -> Iterator[Factor]:
    """Yield log 1/d·Σ_i Σ_a p(x_i = a | z)·Π_{j≠i} p(x_j | x_i = a, z), over all a where x_i is missing.

    Each cell of a row has a slot: that of its category, or that of code 0 where it is missing. Each cell as a parent
    has the slots of the categories it may have. The table of pairs holds log p(child | parent, z), and
    log p(parent | z) at the slots of the parent's own column.
    """
    columns = [columns[j] for j in parameters.varying]
    if not columns:
        return
    if context.weighted:
        raise ValueError(f"{context.model} has factor weights on an average of trees, which to_sql cannot write")
    n_slots, n_components, _ = parameters.log_probability.shape
    rows = CodeRows(context.steps, [context.cells.code(j) for j in columns], f"a{columns[0]}")
    d, starts, components = len(columns), parameters.starts.tolist(), range(n_components)
    base = rows.distinct()
    positions = rows.add_table("positions", ["j"], [(j,) for j in range(d)])
    slot_of = " ".join(f"WHEN {j} THEN COALESCE(c{j}, 0) + {start}" for j, start in enumerate(starts))
    cells = rows.add("cells", f"SELECT r, CASE j {slot_of} END AS slot\nFROM {base} CROSS JOIN {positions}")
    possible = rows.add_table("possible", ["slot", "parent"], list(_possible_parents(parameters)))
    parents = rows.add(
        "parents",
        f"SELECT r, possible.parent * {n_slots} AS line\nFROM {cells} AS cells\n"
        f"INNER JOIN {possible} AS possible ON possible.slot = cells.slot",
    )
    pairs = rows.add_table("pairs", ["pair", *(f"l{z}" for z in components)], list(_pairs(parameters)))
    sums = ", ".join(f"SUM(l{z}) AS l{z}" for z in components)
    terms = rows.add(
        "terms",
        f"SELECT parents.r, line, {sums}\nFROM {parents} AS parents\n"
        f"INNER JOIN {cells} AS cells ON cells.r = parents.r\n"
        f"INNER JOIN {pairs} AS pairs ON pairs.pair = line + cells.slot\nGROUP BY parents.r, line",
    )
    peaks = ", ".join(f"l{z}, MAX(l{z}) OVER (PARTITION BY r) AS m{z}" for z in components)
    peaked = rows.add("peaked", f"SELECT r, {peaks}\nFROM {terms}")
    log_d = rows.dialect.written(number(math.log(d)))
    results = {f"z{z}": f"{log_sum_of(rows.dialect, z)} - {log_d}" for z in components}
    for z, name in enumerate(rows.finish(peaked, results, "\nGROUP BY r")):
        yield z, columns[0], column(name)


def _slots(parameters: AveragedParameters) -> Iterator[tuple[int, range]]:
    """Yield the slot of code 0 of each column that varies, and the slots of its values."""
    for start, j in zip(parameters.starts.tolist(), parameters.varying, strict=True):
        yield start, range(start + 1, start + parameters.cardinalities[j] + 1)


def _possible_parents(parameters: AveragedParameters) -> Iterator[tuple[int, int]]:
    """Yield each slot with the slots of the values that the cell may have."""
    for start, values in _slots(parameters):
        yield from ((start, value) for value in values)
        yield from ((value, value) for value in values)


def _pairs(parameters: AveragedParameters) -> Iterator[tuple[int | float, ...]]:
    """Yield line + slot of each pair, and its log-probability under each component."""
    of_pair = parameters.by_pair
    n_slots = len(of_pair)
    for start, values in _slots(parameters):
        for parent in values:
            line = parent * n_slots
            yield line + start, *of_pair[parent, parent].tolist()
            for first, children in _slots(parameters):
                for child in children:
                    if first != start or child == parent:
                        yield line + child, *of_pair[parent, child].tolist()
