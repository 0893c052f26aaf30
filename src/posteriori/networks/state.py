"""The state of a network: its specification, and the inference that is compiled from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from posteriori.networks import hybrid_queries, queries
from posteriori.networks.arguments import given_properties, given_tables, table_size, text
from posteriori.networks.cpt import CPT
from posteriori.networks.family_counts import FamilyCounts
from posteriori.networks.family_moments import HybridStatistics
from posteriori.networks.learning import LearningOptions
from posteriori.networks.linear_gaussian import LinearGaussian
from posteriori.networks.naming import require_variable
from posteriori.networks.specification import NetworkSpec


class NetworkState:
    """What the methods of `BayesianNetwork` share; see there for the parameters."""

    def __init__(
        self,
        edges: Iterable[Any] = (),
        *,
        variables: Iterable[str] = (),
        states: Mapping[str, Sequence[Any]] | None = None,
        cpts: Iterable[CPT | LinearGaussian] = (),
        name: str = "",
        properties: Mapping[str, Sequence[str]] | None = None,
        max_table_size: int = 2**27,
    ) -> None:
        tables = given_tables(cpts)
        self._spec = NetworkSpec.of(edges, variables, states, tables)
        self.name = text("name", name)
        self.max_table_size = table_size(max_table_size)
        self.properties = given_properties(properties)
        for variable in filter(None, self.properties):
            require_variable(variable, self._spec.dag.parents)
        self._inferred_states: tuple[str, ...] = ()  # variables whose states come from data: the next fit drops them
        self._learning_options: LearningOptions | None = None
        self.statistics_: FamilyCounts | HybridStatistics | None = None
        self.log_likelihood_trace_: tuple[float, ...] = ()

    def _replace(self, spec: NetworkSpec) -> None:
        """Set other tables, and drop the junction trees that were compiled from the earlier ones."""
        self._spec = spec
        self.__dict__.pop("_inference", None)

    def _with_spec(self, spec: NetworkSpec) -> Self:
        """Set the specification of a network that was just made, and return the network."""
        self._replace(spec)
        return self

    @cached_property
    def _inference(self) -> Any:
        """Inference with the tables: `Inference`, or `HybridInference` where variables are continuous."""
        return self._spec.inference(self.max_table_size)

    @property
    def _queries(self) -> Any:
        """The module whose functions answer queries with `_inference`."""
        return hybrid_queries if self._spec.gaussians else queries
