"""One tree of a forest as an outline: conditions on the columns in their units, shares of the rows, classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.densities import RandomTreesParameters, SummedTreesParameters
from posteriori.kernels.loops.forests import SUM
from posteriori.support.formatting import cell_text, count, listed, percent, plural
from posteriori.support.typing import Array
from posteriori.tables.schema import Column

_LONGEST_COLUMN, _LONGEST = 40, 24  # characters of the name of a column, and of a category or a class
_LONGEST_SET = 32  # characters of the categories of a side
_MOST_CLASSES = 3  # per line of text
_SMALLEST = 0.005  # probability that is shown
ALL_ROWS = "all rows"


@dataclass(frozen=True, eq=False)
class TreeNode:
    """A node of a tree.

    Attributes
    ----------
    parent : int
        Its parent, as a position in `TreeOutline.nodes`; −1 for the root.
    depth : int
    condition : str
        What tells its rows from the other rows of its parent, such as "body_mass_g < 4200".
    share : float
        The share of all rows that reaches the node, with half a row added to each side of a split. A row without the
        cell of a split counts in part on both sides.
    probabilities : ndarray (C,)
        p(y | node), backed off to the nodes above, with the class prior of the model. Of a sum of trees: what its value
        makes of the prior.
    n_leaves : int
        Number of leaves at or below the node.
    n_folded : int
        Number of leaves below the node that the outline leaves out; 0 if it leaves nothing out here.
    """

    parent: int
    depth: int
    condition: str
    share: float
    probabilities: Array
    n_leaves: int
    n_folded: int

    @property
    def folded(self) -> str:
        """The number of leaves that the outline leaves out below the node, as text; "" if there are none."""
        return f"… {count(self.n_folded)} leaves" if self.n_folded else ""


@dataclass(frozen=True, eq=False)
class TreeOutline:
    """One tree of a `GenerativeForest`, to a depth. Its text has one node per line.

    Attributes
    ----------
    tree, n_trees : int
        Which of the trees it is, from 0, and the number of trees.
    classes : tuple
        The label of each class.
    nodes : tuple of TreeNode
        Every node follows its parent, and what is below a node follows at once.
    """

    tree: int
    n_trees: int
    classes: tuple[Any, ...]
    nodes: tuple[TreeNode, ...]

    def __str__(self) -> str:
        last = {node.parent: k for k, node in enumerate(self.nodes)}
        before, lines = [""] * len(self.nodes), []
        for k, node in enumerate(self.nodes[1:], 1):
            is_last = last[node.parent] == k
            lines.append(f"{before[node.parent]}{'└ ' if is_last else '├ '}{node.condition}")
            before[k] = before[node.parent] + ("  " if is_last else "│ ")
        lines.insert(0, self.nodes[0].condition)
        width = max(map(len, lines))
        rows = [
            f"{line.ljust(width)}  {percent(node.share):>4}  {self._classes_text(node)}  {node.folded}".rstrip()
            for line, node in zip(lines, self.nodes, strict=True)
        ]
        return "\n".join([self.title, *rows])

    @property
    def title(self) -> str:
        """Which tree it is, and its size."""
        return f"tree {self.tree} of {self.n_trees}: {plural(self.nodes[0].n_leaves, 'leaf')}"

    def _classes_text(self, node: TreeNode) -> str:
        """Return the most probable classes of a node with their probabilities."""
        order = np.argsort(-node.probabilities, kind="stable").tolist()
        shown = [c for c in order[:_MOST_CLASSES] if c == order[0] or node.probabilities[c] >= _SMALLEST]
        return ", ".join(f"{cell_text(self.classes[c], _LONGEST)} {node.probabilities[c]:.2f}" for c in shown)


def outline_of_tree(
    parameters: RandomTreesParameters | SummedTreesParameters,
    columns: Sequence[Column],
    classes: Sequence[Any],
    prior: Array,
    tree: int,
    max_depth: int,
) -> TreeOutline:
    """Return one tree of a forest, to a number of levels below the root; the classes come with their p(y)."""
    trees = parameters.trees
    given_node = parameters.given_node / (trees.n_trees if parameters.combine == SUM else 1)
    n_leaves = _leaves_below(trees.nodes, int(trees.roots[tree]), int(trees.roots[tree + 1]))
    root = int(trees.roots[tree])
    nodes: list[TreeNode] = []
    waiting = [(root, -1, 0, ALL_ROWS, 1.0)]
    while waiting:
        at, parent, depth, condition, share = waiting.pop()
        column, cut, child = trees.nodes[at].tolist()
        is_open = column >= 0 and depth < max_depth
        below = int(n_leaves[at - root])
        n_folded = below if column >= 0 and not is_open else 0
        joint = prior * np.exp(given_node[at] - given_node[at].max())
        nodes.append(TreeNode(parent, depth, condition, share, joint / joint.sum(), below, n_folded))
        if is_open:
            here, left = len(nodes) - 1, float(parameters.share[at])
            names = conditions(columns[column], cut, trees.sides)
            waiting.append((child + 1, here, depth + 1, names[1], share * (1.0 - left)))
            waiting.append((child, here, depth + 1, names[0], share * left))
    return TreeOutline(tree, trees.n_trees, tuple(classes), tuple(nodes))


def conditions(column: Column, cut: int, sides: Array) -> tuple[str, str]:
    """Return the conditions of a split: of the rows that go left, and of those that go right.

    Categories that the node has not seen go both ways and are not named.
    """
    name = cell_text(column.name, _LONGEST_COLUMN)
    if column.is_binned:
        at = column.cut_texts[cut - 1]
        return f"{name} < {at}", f"{name} ≥ {at}"
    of_codes = sides[cut + 1 : cut + 1 + column.cardinality]
    left, right = (
        _set_text([column.categories[code] for code in np.flatnonzero(of_codes == side).tolist()]) for side in (1, 2)
    )
    return f"{name} = {left}", f"{name} = {right}"


def _set_text(categories: Sequence[Any]) -> str:
    """Name as many of some categories as fit, and the number of the others."""
    names = [cell_text(category, _LONGEST) or '""' for category in categories]
    lengths = np.cumsum([len(name) + 2 for name in names])
    most = max(1, int(np.count_nonzero(lengths <= _LONGEST_SET)))
    return listed(names, most, "or")


def _leaves_below(nodes: Array, first: int, last: int) -> Array:
    """Return the number of leaves at or below each node of the tree from node first to before last."""
    n_leaves = np.ones(last - first, np.int64)
    for at in range(last - 1, first - 1, -1):  # children come after their parents
        if nodes[at, 0] >= 0:
            child = int(nodes[at, 2]) - first
            n_leaves[at - first] = n_leaves[child] + n_leaves[child + 1]
    return n_leaves
