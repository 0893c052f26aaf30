"""Hill climbing with a tabu list and restarts: search for the graph of best score, one edge at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from posteriori.networks.learning.constraint_based import EdgeConstraints
from posteriori.networks.learning.family_scores import FamilyScores
from posteriori.support.typing import Array

_ROUNDING = 1e-10  # relative to the score: a smaller gain may be rounding
_PATIENCE = 3  # the search stops after this many times tabu moves without a better graph
_MOST_RANDOM_MOVES = 40  # of a restart; at most one per variable


@dataclass(frozen=True)
class HillClimbResult:
    """The best graph of a search.

    Attributes
    ----------
    edges : ndarray of bool (d, d)
        [u, v]: the edge u → v.
    score : float
        In nats.
    trace : tuple of float
        The score after every move, over all restarts.
    """

    edges: Array
    score: float
    trace: tuple[float, ...]


def climb(
    scores: FamilyScores,
    constraints: EdgeConstraints,
    tabu: int,
    restarts: int,
    rng: np.random.Generator,
    start: Array | None = None,
) -> HillClimbResult:
    """Search for a graph whose score no added, deleted or reversed edge raises.

    Parameters
    ----------
    scores : FamilyScores
    constraints : EdgeConstraints
        Without `start` the search starts from the required edges.
    tabu : int
        After a move, the edge between its two variables stays fixed for this many moves, but at most for half the
        number of pairs of variables. A move to a better graph than all before is exempt (Glover 1989: tabu list with
        aspiration). After a local optimum the search takes the least bad move that is left, and stops after 3·tabu
        moves without a better graph. 0 stops at the first local optimum.
    restarts : int
        How often random moves perturb the best graph, to search again from there.
    rng : Generator
        Draws the random moves.
    start : ndarray of bool (d, d), optional
        The graph from which the search starts, within the constraints.

    References
    ----------
    Koller & Friedman (2009), Probabilistic Graphical Models, sections 18.4.3.1 and 18.4.3.2.
    """
    path = _Path(scores, constraints, constraints.required.copy() if start is None else start.copy())
    best = _local_optimum(path, tabu)
    for _ in range(restarts):
        path.restart(best[1])
        path.perturb(min(scores.n_variables, _MOST_RANDOM_MOVES), rng)
        best = max(best, _local_optimum(path, tabu), key=lambda optimum: optimum[0])
    return HillClimbResult(best[1], best[0], tuple(path.trace))


def _local_optimum(path: _Path, tabu: int) -> tuple[float, Array]:
    """Return the best score of a tabu search from the current graph, and the graph that has it."""
    best = path.score, path.edges.copy()
    d = len(path.edges)
    tenure = min(tabu, d * (d - 1) // 4)  # with few pairs some must stay free, or no move is left
    fixed_until = np.zeros((d, d), np.int64)  # the number of moves after which the pair may change again
    n_moves = n_without_gain = 0
    while True:
        move = path.best_move(fixed_until > n_moves, best[0])
        if move is None or (move.gain <= path.rounding and n_without_gain >= _PATIENCE * tabu):
            return best
        path.make(move)
        n_moves += 1
        fixed_until[move.u, move.v] = fixed_until[move.v, move.u] = n_moves + tenure
        if path.score > best[0] + path.rounding:
            best, n_without_gain = (path.score, path.edges.copy()), 0
        else:
            n_without_gain += 1


@dataclass(frozen=True)
class _Move:
    """Add or delete the edge u → v, or reverse it."""

    u: int
    v: int
    reverses: bool
    gain: float


class _Path:
    """The current graph of the search, and the gain of each move from it.

    The score is a sum over families, so that a move changes one or two terms. toggled[u, v] is the gain of the family
    of v if u joins or leaves its parents, NaN if unknown. To reverse u → v gains toggled[u, v] + toggled[v, u]. A move
    makes the columns of the families that it changes unknown (Koller & Friedman 2009, section 18.4.3.3).
    """

    def __init__(self, scores: FamilyScores, constraints: EdgeConstraints, edges: Array) -> None:
        self.scores, self.constraints = scores, constraints
        self.trace: list[float] = []
        self.restart(edges)

    def restart(self, edges: Array) -> None:
        d = len(edges)
        self.edges = edges.copy()
        self.toggled = np.full((d, d), np.nan)
        self.families = np.array([self.scores.family(v, self._parents(v)) for v in range(d)])
        self.reach = _reachable(edges)

    @property
    def score(self) -> float:
        return math.fsum(self.families)

    @property
    def rounding(self) -> float:
        return _ROUNDING * max(1.0, abs(self.score))

    def best_move(self, tabu: Array, best: float) -> _Move | None:
        """Return the legal move of largest gain; a tabu pair may move only to a score above the best one.

        Gains that differ by less than rounding are equal; the first of them wins, so that the order of floating-point
        sums does not decide.
        """
        added, deleted, reversible = self._legal()
        self._fill(added | deleted | reversible | reversible.T)
        gains = np.full((2, *self.edges.shape), -math.inf)
        np.copyto(gains[0], self.toggled, where=added | deleted)
        np.copyto(gains[1], self.toggled + self.toggled.T, where=reversible)
        gains[tabu & (self.score + gains <= best + self.rounding)] = -math.inf
        most = gains.max()
        if not most > -math.inf:
            return None
        reverses, u, v = np.argwhere(gains >= most - self.rounding)[0].tolist()
        return _Move(u, v, bool(reverses), float(gains[reverses, u, v]))

    def make(self, move: _Move) -> None:
        u, v = move.u, move.v
        adds = not self.edges[u, v]
        self.edges[u, v] = adds
        changed = [v]
        if move.reverses:
            self.edges[v, u] = True
            changed.append(u)
        for w in changed:
            self.families[w] = self.scores.family(w, self._parents(w))
            self.toggled[:, w] = np.nan
        if adds:  # whatever reaches u now reaches all that v reaches
            self.reach |= np.outer(self.reach[:, u], self.reach[v])
        else:
            self.reach = _reachable(self.edges)
        self.trace.append(self.score)

    def perturb(self, n_moves: int, rng: np.random.Generator) -> None:
        """Make up to n_moves random legal moves."""
        for _ in range(n_moves):
            added, deleted, reversible = self._legal()
            moves = np.argwhere(np.stack([added | deleted, reversible]))
            if not len(moves):
                return
            reverses, u, v = moves[rng.integers(len(moves))].tolist()
            move = _Move(u, v, bool(reverses), math.nan)
            if self._fits(move):
                self.make(move)

    def _fits(self, move: _Move) -> bool:
        """Whether the family that gains a parent keeps a table of at most MOST_CELLS cells."""
        child, parent = (move.u, move.v) if move.reverses else (move.v, move.u)
        parents = set(self._parents(child)) ^ {parent}
        return self.scores.family(child, sorted(parents)) > -math.inf

    def _parents(self, v: int) -> list[int]:
        return np.flatnonzero(self.edges[:, v]).tolist()

    def _legal(self) -> tuple[Array, Array, Array]:
        """Return which edges can be added, deleted and reversed without a cycle and within the constraints."""
        permitted, required = self.constraints.permitted, self.constraints.required
        may_have_more = self.edges.sum(axis=0) < self.constraints.max_parents
        added = permitted & ~self.edges & ~self.reach.T & may_have_more
        deleted = self.edges & ~required
        # ways[u, v] counts the edges from u that start a path to v. If u → v itself is the only one, its reversal
        # closes no cycle.
        ways = self.edges.astype(np.float32) @ self.reach.astype(np.float32)
        reversible = deleted & permitted.T & (ways == 1) & may_have_more[:, np.newaxis]
        return added, deleted, reversible

    def _fill(self, needed: Array) -> None:
        """Compute the gains in `toggled` that are needed and still unknown."""
        unknown = needed & np.isnan(self.toggled)
        for v in np.flatnonzero(unknown.any(axis=0)).tolist():
            parents = self._parents(v)
            joining = np.flatnonzero(unknown[:, v] & ~self.edges[:, v])
            if len(joining):
                self.toggled[joining, v] = self.scores.with_each(v, parents, joining.tolist()) - self.families[v]
            for u in np.flatnonzero(unknown[:, v] & self.edges[:, v]).tolist():
                without = self.scores.family(v, [w for w in parents if w != u])
                self.toggled[u, v] = without - self.families[v]


def _reachable(edges: Array) -> Array:
    """Return the transitive closure: whether a directed path leads from u to v; every node reaches itself."""
    reach = edges.copy()
    np.fill_diagonal(reach, True)
    while True:  # each product doubles the length of the paths that are covered
        longer = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
        if (longer == reach).all():
            return reach
        reach = longer
