"""The scores of randomised trees, as joins of the cells of a row with the edges of the trees, level by level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from sqlglot import exp

from posteriori.densities import RandomTreesParameters, SummedTreesParameters
from posteriori.kernels.loops.forests import ARITHMETIC, SUM
from posteriori.sql.dependence import CodeRows, log_sum_of
from posteriori.sql.dialects import column, literal
from posteriori.sql.steps import CellReader, Factor, SelectSteps


def forest_factors(
    steps: SelectSteps,
    cells: CellReader,
    columns: Sequence[int],
    parameters: RandomTreesParameters | SummedTreesParameters,
) -> Iterator[Factor]:
    """Yield the mean over the trees of log Σ_l exp(w_l)·p(y | l) / p(y), over the leaves l that a row reaches.

    Of a sum of trees it is the sum of exp(w_l) times the value of the leaf.
    w_l adds up along the path. Each step joins the nodes that rows have reached with their edges: one per child and
    range of codes, and both children for code 0, a missing cell.
    A reached node carries the column of its split.
    """
    if parameters.combine == ARITHMETIC:
        raise ValueError('the arithmetic mean of trees has no SQL; use combine="geometric"')
    trees, n_classes, is_sum = parameters.trees, len(parameters.prior), parameters.combine == SUM
    rows = CodeRows(steps, [cells.code(j) for j in columns], f"f{columns[0]}")
    classes = range(n_classes)
    base = rows.distinct()
    levels = _add_levels(rows, base, _add_cells(rows, base, len(columns)), parameters)
    leaves = rows.add_table("leaves", ["node", "tree", *(f"l{z}" for z in classes)], list(_leaves(parameters)))
    reached = rows.add("nodes", "\nUNION ALL\n".join(f"SELECT r, node, w FROM {level}" for level in levels))
    share = rows.dialect.written(exp.Exp(this=column("w")))
    terms = ", ".join(f"{share} * l{z} AS s{z}" if is_sum else f"w + l{z} AS l{z}" for z in classes)
    of_trees = rows.add(
        "found",
        f"SELECT nodes.r, tree, {terms}\nFROM {reached} AS nodes\n"
        f"INNER JOIN {leaves} AS leaves ON leaves.node = nodes.node",
    )
    if not is_sum:
        peaks = ", ".join(f"l{z}, MAX(l{z}) OVER (PARTITION BY r, tree) AS m{z}" for z in classes)
        peaked = rows.add("peaked", f"SELECT r, tree, {peaks}\nFROM {of_trees}")
        sums = ", ".join(f"{log_sum_of(rows.dialect, z)} AS s{z}" for z in classes)
        of_trees = rows.add("trees", f"SELECT r, tree, {sums}\nFROM {peaked}\nGROUP BY r, tree")
    n_trees = rows.dialect.written(literal(float(trees.n_trees)))
    results = {f"z{z}": f"SUM(s{z}) / {n_trees}" for z in classes}
    for z, name in enumerate(rows.finish(of_trees, results, "\nGROUP BY r")):
        yield z, columns[0], name


def _add_cells(rows: CodeRows, base: str, n_columns: int) -> str:
    """Add the cells of each row: its number, the position of the column, and the code, 0 where missing."""
    positions = rows.add_table("positions", ["j"], [(j,) for j in range(n_columns)])
    code_of = " ".join(f"WHEN {j} THEN COALESCE(c{j}, 0)" for j in range(n_columns))
    return rows.add("cells", f"SELECT r, j, CASE j {code_of} END AS code\nFROM {base} CROSS JOIN {positions}")


def _add_levels(
    rows: CodeRows, base: str, cells: str, parameters: RandomTreesParameters | SummedTreesParameters
) -> list[str]:
    """Add the nodes that each row reaches, level by level, with the logs of their weights."""
    trees = parameters.trees
    of_node = trees.nodes[:, 0].tolist()
    roots = rows.add_table("roots", ["node", "j"], [(root, of_node[root]) for root in trees.roots[:-1].tolist()])
    zero = rows.dialect.written(literal(0.0))
    levels = [rows.add("level0", f"SELECT r, node, j, {zero} AS w\nFROM {base} CROSS JOIN {roots}")]
    depth = trees.depth()
    if depth:
        names = ["node", "low", "high", "child", "j", "w"]
        edges = rows.add_table("edges", names, list(_edges(parameters)))
        if rows.dialect.name == "sqlite":
            # SQLite copies the edges for each step that names them, directly or not: 8 MB took more than 6 GB.
            below = rows.name_of("below")
            body = (
                f"SELECT r, node, j, w FROM {levels[0]}\nUNION ALL\n"
                f"SELECT above.r, edges.child, edges.j, above.w + edges.w\nFROM {below} AS above\n"
                f"INNER JOIN {cells} AS cells ON cells.r = above.r AND cells.j = above.j\n"
                f"INNER JOIN {edges} AS edges ON edges.node = above.node AND cells.code BETWEEN low AND high"
            )
            return [rows.add("below", body)]
        for level in range(1, depth + 1):
            # One join for each table: DuckDB would join cells with edges first, 4 GB for the roots of 690 rows.
            at = rows.add(
                f"at{level}",
                f"SELECT above.r, node, w, code\nFROM {levels[-1]} AS above\n"
                f"INNER JOIN {cells} AS cells ON cells.r = above.r AND cells.j = above.j",
            )
            body = (
                f"SELECT r, edges.child AS node, edges.j, above.w + edges.w AS w\nFROM {at} AS above\n"
                f"INNER JOIN {edges} AS edges ON edges.node = above.node AND code BETWEEN low AND high"
            )
            levels.append(rows.add(f"level{level}", body))
    return levels


def _edges(parameters: RandomTreesParameters | SummedTreesParameters) -> Iterator[tuple[int | float, ...]]:
    """Yield node, least and greatest code, child, the column that splits the child, and the log of the edge's weight.

    The weight is what the edge multiplies p(x) by. The column of a leaf is −1. Neighbouring codes that reach the same
    children share an edge: a fifth less text for columns of categories.
    """
    trees = parameters.trees
    of_node = trees.nodes[:, 0].tolist()
    for node in np.flatnonzero(trees.nodes[:, 0] >= 0).tolist():
        j, cut, left = trees.nodes[node].tolist()
        share, k = float(parameters.share[node]), trees.cardinalities[j]
        log_share = (float(np.log(share)), float(np.log1p(-share)))
        present = parameters.log_edge[left : left + 2].tolist()
        targets = [(left + side, of_node[left + side]) for side in (0, 1)]
        of_codes = [1] * cut + [2] * (k - cut) if trees.ordered[j] else trees.sides[cut + 1 : cut + 1 + k].tolist()
        sides = [0, *of_codes]  # of each code: 0 stands for both children
        for side, run in groupby(range(k + 1), sides.__getitem__):
            codes, logs = list(run), present if side else log_share
            for one in (side - 1,) if side else (0, 1):
                yield node, codes[0], codes[-1], *targets[one], logs[one]


def _leaves(parameters: RandomTreesParameters | SummedTreesParameters) -> Iterator[tuple[int | float, ...]]:
    """Yield node, tree, and log p(y | node) − log p(y), or the value, of each leaf."""
    trees = parameters.trees
    leaves = np.flatnonzero(trees.nodes[:, 0] < 0)
    of_tree = np.searchsorted(trees.roots, leaves, side="right") - 1
    scores = parameters.given_node[leaves].tolist()
    for node, tree, of_leaf in zip(leaves.tolist(), of_tree.tolist(), scores, strict=True):
        yield node, tree, *of_leaf
