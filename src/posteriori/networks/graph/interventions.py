"""Interventions: the network after some variables were set from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import States, require_findings, state_code
from posteriori.networks.graph.specification import NetworkSpec
from posteriori.typing import Array


def mutilated(spec: NetworkSpec, settings: Mapping[str, Any]) -> NetworkSpec:
    r"""Return the specification after an intervention.

    .. math:: p(x \mid \mathrm{do}(x_S = s)) = [x_S = s] \prod_{v \notin S} p(x_v \mid x_{\mathrm{parents}(v)})

    Parameters
    ----------
    spec : NetworkSpec
    settings : mapping from str to state, or to a mapping from every state to its probability
        A mapping draws the state at random, whatever its causes are. A continuous variable is set to a number.

    Raises
    ------
    TypeError
        The settings are no mapping.
    ValueError
        There is no such variable or state, or the probabilities do not sum to 1.

    References
    ----------
    Pearl (2009), Causality, second edition, definition 3.2.1 and equation 3.10.
    """
    require_findings("an intervention", settings)
    tables = dict(spec.tables)
    for name, setting in settings.items():
        if isinstance(spec.tables.get(name), LinearGaussian):
            tables[name] = _constant(name, setting)
            continue
        states = spec.states_of(name)
        tables[name] = CPT(name, states, {}, _distribution(name, setting, states))
    edges = tuple((parent, child) for parent, child in spec.dag.edges if child not in settings)
    return NetworkSpec(DAG(spec.dag.nodes, edges), dict(spec.states), tables)


def _constant(name: str, setting: Any) -> LinearGaussian:
    """Return a continuous variable that is set to a number."""
    if isinstance(setting, bool) or not isinstance(setting, int | float | np.number):
        raise ValueError(f"the intervention on {name!r} is {setting!r}, but it is continuous; give a number")
    return LinearGaussian(name, (), {}, np.array(float(setting)), np.zeros(0), np.array(0.0))


def _distribution(name: str, setting: Any, states: States) -> Array:
    table = np.zeros(len(states))
    if not isinstance(setting, Mapping):
        if isinstance(setting, set | frozenset | list | tuple):
            raise ValueError(
                f"the intervention on {name!r} is {setting!r}; set one state, or give the probability of each"
            )
        table[state_code(name, setting, states)] = 1.0
        return table
    for state, probability in setting.items():
        table[state_code(name, state, states)] = probability
    return table


def without_edges(dag: DAG, into: frozenset[str] = frozenset(), out_of: frozenset[str] = frozenset()) -> DAG:
    """Return the graph without the edges into some variables and out of others."""
    return DAG(dag.nodes, tuple((u, v) for u, v in dag.edges if v not in into and u not in out_of))
