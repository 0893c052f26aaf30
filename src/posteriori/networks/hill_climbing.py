"""The search for the graph of best score, one edge at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from posteriori.networks.constraints import EdgeConstraints
from posteriori.networks.scores import FamilyScores
from posteriori.typing import Array

_ROUNDING = 1e-10  # of the score: a smaller gain may be none
_PATIENCE = 3  # moves without a better graph before the search stops, per move that a pair is tabu
_SHAKES = 40  # random moves of a restart, fewer among few variables


@dataclass(frozen=True)
class HillClimbResult:
    """The best graph found.

    Attributes
    ----------
    edges : ndarray of bool (d, d)
        [u, v]: u → v.
    score : float
        In nats.
    trace : tuple of float
        The score after every move, those of all restarts one after another.
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
) -> HillClimbResult:
    """Return the graph at which no single edge added, deleted or turned raises the score.

    Parameters
    ----------
    scores : FamilyScores
    constraints : EdgeConstraints
        The search starts from the required edges.
    tabu : int
        After a move the edge between its two variables stays as it is for so many moves, but at most as many as half
        of the pairs of variables; only a move to a better graph than all before is exempt (Glover 1989: tabu list with
        aspiration). Past a summit the search takes the least bad move that is left, and stops after 3·tabu moves
        without a better graph. 0 stops at the first summit.
    restarts : int
        How often the best graph is shaken by random moves and the search goes on from there.
    rng : Generator
        Of these moves.
    """
    path = _Path(scores, constraints, constraints.required.copy())
    best = _local_optimum(path, tabu)
    for _ in range(restarts):
        path.restart(best[1])
        path.perturb(min(scores.n_variables, _SHAKES), rng)
        best = max(best, _local_optimum(path, tabu), key=lambda found: found[0])
    return HillClimbResult(best[1], best[0], tuple(path.trace))


def _local_optimum(path: _Path, tabu: int) -> tuple[float, Array]:
    """Return the best score on the way up from here and beyond, and its graph."""
    best = path.score, path.edges.copy()
    d = len(path.edges)
    tenure = min(tabu, d * (d - 1) // 4)  # of few pairs some must be free, or the search ends early
    until = np.zeros((d, d), np.int64)  # how many moves have to be made before the pair may change again
    made = past = 0
    while True:
        move = path.best_move(until > made, best[0])
        if move is None or (move.gain <= path.rounding and past >= _PATIENCE * tabu):
            return best
        path.make(move)
        made += 1
        until[move.u, move.v] = until[move.v, move.u] = made + tenure
        if path.score > best[0] + path.rounding:
            best, past = (path.score, path.edges.copy()), 0
        else:
            past += 1


@dataclass(frozen=True)
class _Move:
    """Add or delete u → v, or turn it."""

    u: int
    v: int
    turns: bool
    gain: float


class _Path:
    """The graph where the search stands, and what each move from there would gain.

    toggled[u, v] is what the family of v gains if u joins or leaves its parents, NaN where not known; to turn u → v
    gains toggled[u, v] + toggled[v, u]. A move makes the columns of the families that it changes unknown.
    """

    def __init__(self, scores: FamilyScores, constraints: EdgeConstraints, edges: Array) -> None:
        self.scores, self.constraints = scores, constraints
        self.trace: list[float] = []
        self.restart(edges)

    def restart(self, edges: Array) -> None:
        """Stand at another graph."""
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
        """Return the move of most gain, the first of equals; of tabu pairs only one to a score above the best."""
        added, deleted, turned = self._legal()
        self._fill(added | deleted | turned | turned.T)
        gains = np.full((2, *self.edges.shape), -math.inf)
        np.copyto(gains[0], self.toggled, where=added | deleted)
        np.copyto(gains[1], self.toggled + self.toggled.T, where=turned)
        gains[tabu & (self.score + gains <= best + self.rounding)] = -math.inf
        most = gains.max()
        if not most > -math.inf:
            return None
        turns, u, v = np.argwhere(gains >= most - self.rounding)[0].tolist()
        return _Move(u, v, bool(turns), float(gains[turns, u, v]))

    def make(self, move: _Move) -> None:
        """Go where a move leads."""
        u, v = move.u, move.v
        adds = not self.edges[u, v]
        self.edges[u, v] = adds
        changed = [v]
        if move.turns:
            self.edges[v, u] = True
            changed.append(u)
        for w in changed:
            self.families[w] = self.scores.family(w, self._parents(w))
            self.toggled[:, w] = np.nan
        if adds:
            self.reach |= np.outer(self.reach[:, u], self.reach[v])
        else:
            self.reach = _reachable(self.edges)
        self.trace.append(self.score)

    def perturb(self, n_moves: int, rng: np.random.Generator) -> None:
        """Make some random moves."""
        for _ in range(n_moves):
            added, deleted, turned = self._legal()
            moves = np.argwhere(np.stack([added | deleted, turned]))
            if not len(moves):
                return
            turns, u, v = moves[rng.integers(len(moves))].tolist()
            move = _Move(u, v, bool(turns), math.nan)
            if self._fits(move):
                self.make(move)

    def _fits(self, move: _Move) -> bool:
        """Whether the families after a move have tables that can be counted."""
        child, parent = (move.u, move.v) if move.turns else (move.v, move.u)
        joining = set(self._parents(child)) ^ {parent}
        return self.scores.family(child, sorted(joining)) > -math.inf

    def _parents(self, v: int) -> list[int]:
        return np.flatnonzero(self.edges[:, v]).tolist()

    def _legal(self) -> tuple[Array, Array, Array]:
        """Return which edges can be added, deleted and turned without a cycle and within the constraints."""
        permitted, required = self.constraints.permitted, self.constraints.required
        may_have_more = self.edges.sum(axis=0) < self.constraints.max_parents
        added = permitted & ~self.edges & ~self.reach.T & may_have_more
        deleted = self.edges & ~required
        # Of the ways from u to v one is the edge itself: to turn it is to close the others.
        ways = self.edges.astype(np.float32) @ self.reach.astype(np.float32)
        turned = deleted & permitted.T & (ways == 1) & may_have_more[:, np.newaxis]
        return added, deleted, turned

    def _fill(self, wanted: Array) -> None:
        """Score the families that moves would make, as far as they are not known."""
        unknown = wanted & np.isnan(self.toggled)
        for v in np.flatnonzero(unknown.any(axis=0)).tolist():
            parents = self._parents(v)
            joining = np.flatnonzero(unknown[:, v] & ~self.edges[:, v])
            if len(joining):
                self.toggled[joining, v] = self.scores.with_each(v, parents, joining.tolist()) - self.families[v]
            for u in np.flatnonzero(unknown[:, v] & self.edges[:, v]).tolist():
                left = self.scores.family(v, [w for w in parents if w != u])
                self.toggled[u, v] = left - self.families[v]


def _reachable(edges: Array) -> Array:
    """Return whether a directed path leads from u to v, for all u and v; every node reaches itself."""
    reach = edges.copy()
    np.fill_diagonal(reach, True)
    while True:  # paths of twice the length each time
        further = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
        if (further == reach).all():
            return reach
        reach = further
