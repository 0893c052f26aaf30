"""The methods of a network that answer questions about its graph."""

from __future__ import annotations

from collections.abc import Iterable

from posteriori.networks.dag import Independence
from posteriori.networks.state import NetworkState
from posteriori.networks.trails import DependenceExplanation, active_trails


class GraphQueries(NetworkState):
    """Methods of `BayesianNetwork`: independence."""

    def d_separated(self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the given variables block every trail from x to y; see `DAG.d_separated`."""
        return self._spec.dag.d_separated(x, y, given)

    def markov_blanket(self, x: str) -> frozenset[str]:
        """Return the variables that make x independent of all others; see `DAG.markov_blanket`."""
        return self._spec.dag.markov_blanket(x)

    def independencies(self, max_given: int | None = None) -> tuple[Independence, ...]:
        """Return every independence of two variables that the graph implies; see `DAG.independencies`."""
        return self._spec.dag.independencies(max_given)

    def active_trails(self, x: str, y: str, given: str | Iterable[str] = (), limit: int = 20) -> DependenceExplanation:
        """Return the active trails between x and y, or the blocked ones if none is; see `networks.active_trails`."""
        return active_trails(self._spec.dag, x, y, given, limit)
