"""Bootstrap of a learned graph: how often each edge is found in resampled rows, and the averaged network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from posteriori.networks.graph.cpt import check_states
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.equivalence import any_extension, consistent_extension, cpdag, direct_implied
from posteriori.networks.inference.printing import aligned
from posteriori.networks.learning.cases import open_cases
from posteriori.networks.learning.family_statistics import CaseRows
from posteriori.networks.learning.structure_search import OF_LEARNING, SETTINGS, BoundSearch, Method, StructureSearch
from posteriori.support.checks import generator
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.typing import Array

_DECIDED = 2 / 3  # the share of graphs that decides the direction of an edge


@dataclass(frozen=True, eq=False)
class ArcStrength:
    """How often each edge occurs in the graphs of resampled rows.

    Attributes
    ----------
    nodes : tuple of str
    strength : ndarray (d, d)
        The share of graphs in which two variables are joined; symmetric.
    direction : ndarray (d, d)
        [u, v]: the share of u → v among the graphs that join u and v; an edge that the equivalence class leaves
        undirected counts half each way. 0 where they are never joined.
    n_graphs : int
    """

    nodes: tuple[str, ...]
    strength: Array
    direction: Array
    n_graphs: int

    def threshold(self) -> float:
        """Return the strength above which an edge is significant.

        The distribution of strengths is closest, in L1, to that of edges of which a share t is never and the rest
        always found; the threshold is the quantile t.

        References
        ----------
        Scutari & Nagarajan (2013), Identifying significant edges in graphical models of molecular networks, Artificial
        Intelligence in Medicine 57.
        """
        values = np.sort(self.strength[np.triu_indices(len(self.nodes), 1)])
        if not len(values):
            return 0.0
        points = np.concatenate([[0.0], values, [1.0]])
        widths = np.diff(points)
        below = np.arange(len(values) + 1) / len(values)  # the distribution function in each interval
        shares = np.unique(below)
        distances = [float((widths * np.abs(below - t)).sum()) for t in shares]
        t = float(shares[int(np.argmin(distances))])
        return float(values[min(round(t * len(values)), len(values) - 1)]) if t < 1 else 1.0

    def averaged(self, threshold: float | None = None) -> DAG:
        """Return the graph of the edges at or above a strength.

        An edge has the direction that at least two thirds of the graphs with this edge give it. The others are directed
        so that they make no new common effect, or, where this is impossible, no cycle.

        Parameters
        ----------
        threshold : float, optional
            By default that of `threshold`, and above 0.
        """
        least = max(self.threshold() if threshold is None else threshold, 1e-9)
        matrix = (self.strength >= least) & (self.direction > 1 - _DECIDED)
        edges = consistent_extension(direct_implied(matrix))
        if edges is None:
            edges = any_extension(matrix, np.ones_like(matrix))
        return DAG(self.nodes, tuple((self.nodes[u], self.nodes[v]) for u, v in np.argwhere(edges).tolist()))

    def to_polars(self) -> Any:
        """Return a polars DataFrame with the columns ``from``, ``to``, ``strength`` and ``direction``."""
        import polars as pl

        return pl.DataFrame(self._rows(), schema=["from", "to", "strength", "direction"], orient="row")

    def _rows(self) -> list[tuple[str, str, float, float]]:
        found = [
            (self.nodes[u], self.nodes[v], float(self.strength[u, v]), float(self.direction[u, v]))
            for u, v in np.argwhere(self.direction > 0).tolist()
        ]
        return sorted(found, key=lambda row: (-row[2], -row[3], row[0], row[1]))

    def __repr__(self) -> str:
        rows = [["from", "to", "strength", "direction"]]
        rows += [[u, v, f"{strength:.3f}", f"{direction:.3f}"] for u, v, strength, direction in self._rows()]
        return "\n".join(aligned(rows, 2))


@partial(explain_unknown_keywords, groups=SETTINGS, wanted=OF_LEARNING)
def bootstrap_structure(
    table: Any,
    search: Method | StructureSearch = "hill_climbing",
    *,
    n_graphs: int = 100,
    states: Mapping[str, Sequence[Any]] | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> ArcStrength:
    """Learn graphs from resampled rows, and count their edges.

    Parameters
    ----------
    table, search, states, n_jobs : as in `learn_network`
    n_graphs : int, default 100
        The number of resampled tables.
    random_state : int, RandomState, Generator or None, default 0
        Seed of the resampling and of restarts.

    Returns
    -------
    ArcStrength

    Raises
    ------
    ValueError
        As in `learn_network`.

    Notes
    -----
    The rows are read once; a resampled table is other weights of the distinct rows.

    References
    ----------
    Friedman, Goldszmidt & Wyner (1999), Data analysis with Bayesian networks: a bootstrap approach, UAI 15.

    Examples
    --------
    >>> import polars as pl
    >>> from posteriori.networks import bootstrap_structure
    >>> days = pl.DataFrame({"rain": ["yes", "no"] * 20, "wet": ["yes", "no"] * 18 + ["no", "yes"] * 2})
    >>> bootstrap_structure(days, n_graphs=20)
    from  to    strength  direction
    rain  wet      1.000      0.500
    wet   rain     1.000      0.500
    """
    if isinstance(n_graphs, bool) or not isinstance(n_graphs, int | np.integer) or n_graphs < 1:
        raise ValueError(f"n_graphs is {n_graphs!r}; it must be a whole number of at least 1")
    known = {name: check_states(name, listed) for name, listed in (states or {}).items()}
    cases = open_cases(table, None, known, None, n_jobs, continuous=())
    rows: CaseRows = cases.reduce(CaseRows)
    names = tuple(column.name for column in cases.columns)
    bound = BoundSearch.of(search, names, None, n_jobs)
    bound.announce_work(cases.columns, rows, int(n_graphs))
    rng = generator(random_state)
    joined, directed = np.zeros((len(names),) * 2), np.zeros((len(names),) * 2)
    for _ in range(n_graphs):
        found = replace(bound, random_state=rng).run(cases.columns, resampled(rows, rng))
        class_ = (found.partial if found.partial is not None else cpdag(found.dag)).matrix()
        # A direction that a constraint sets is known, even if the rows do not determine it.
        class_ &= bound.constraints.permitted | bound.constraints.required | ~class_.T
        class_ &= ~bound.constraints.required.T
        either = class_ | class_.T
        joined += either
        directed += np.where(class_ & class_.T, 0.5, class_)
    with np.errstate(invalid="ignore"):
        direction = np.where(joined > 0, directed / joined, 0.0)
    return ArcStrength(names, joined / n_graphs, direction, int(n_graphs))


def resampled(rows: CaseRows, rng: np.random.Generator) -> CaseRows:
    """Return as many rows, drawn with replacement: the distinct rows with other weights."""
    total = float(rows.weight.sum())
    drawn = rng.multinomial(round(total), rows.weight / total).astype(np.float64)
    kept = drawn > 0
    return CaseRows(rows.cardinalities, ((rows.codes[kept], rows.numbers[kept], drawn[kept]),))
