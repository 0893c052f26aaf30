"""Networks and their answers as HTML, for notebooks: graphs and tables with bars of probability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.networks.inference.printing import heading, six_digits
from posteriori.support.formatting import shorten
from posteriori.support.graph_layout import network_svg
from posteriori.support.markup import folded, left_out, paragraph, scrolling, side_by_side, table
from posteriori.support.typing import Array

_MOST_ROWS = 40
_MOST_COLUMNS = 12
_MOST_DRAWN = 40  # variables in a graph
_MOST_CONFIGURATIONS = 500  # of the discrete variables of a network with continuous ones
_MOST_VARIABLES = 60  # of a network whose marginals are shown
_INTERVALS = 7  # of a continuous variable
_MOST_CELLS = 1 << 20  # of the junction tree for it: a display must not take seconds

States = Mapping[str, Sequence[Any]]


def joint_html(title: str, states: States, values: Array, more: Mapping[str, Array]) -> str:
    """Return a line for every configuration of the variables, with its probability as a number and a bar."""
    positions = list(np.ndindex(values.shape))
    rows, shares = [], []
    for position in positions[:_MOST_ROWS]:
        cells = [str(known[k]) for known, k in zip(states.values(), position, strict=True)]
        p = float(values[position])
        rows.append([*cells, six_digits(p), *(six_digits(float(column[position])) for column in more.values())])
        shares.append([*[None] * len(states), p, *[None] * len(more)])
    head = [*states, "probability", *more]
    return table(title, head, rows, len(states), shares) + left_out(len(positions), "rows", _MOST_ROWS)


def conditional_html(states: States, given: States, values: Array) -> str:
    """Return a line for every configuration of what is given, with a column for each of the variables."""
    configurations = list(np.ndindex(tuple(map(len, states.values()))))
    titles = [
        ", ".join(str(known[k]) for known, k in zip(states.values(), position, strict=True))
        for position in configurations[:_MOST_COLUMNS]
    ]
    shape = tuple(map(len, given.values()))
    each = values.reshape(*shape, len(configurations))
    positions = list(np.ndindex(shape))
    rows, shares = [], []
    for position in positions[:_MOST_ROWS]:
        cells = [str(known[k]) for known, k in zip(given.values(), position, strict=True)]
        line = each[position][: len(titles)].tolist()
        rows.append([*cells, *map(six_digits, line)])
        shares.append([*[None] * len(cells), *line])
    written = table(heading(states, given), [*given, *titles], rows, len(given), shares)
    return (
        written + left_out(len(positions), "rows", _MOST_ROWS) + left_out(len(configurations), "columns", _MOST_COLUMNS)
    )


def states_html(states: Mapping[str, Any], probability: float) -> str:
    """Return one state per variable, and the probability of all together."""
    rows = [[name, str(state)] for name, state in states.items()]
    written = table("most probable states", ["variable", "state"], rows, 2)
    return written + paragraph(f"p(all of it | evidence) = {probability:.6g}")


def trails_html(found: Any) -> str:
    """Return whether two variables depend on each other, and the trails between them with what blocks them."""

    def line(trail: Any) -> list[str]:
        pairs = zip(trail.arrows, trail.nodes[1:], strict=True)
        path = trail.nodes[0] + "".join(f" {arrow} {node}" for arrow, node in pairs)
        reasons = "; ".join(map(str, trail.triples)) or "an edge: nothing lies between to block it"
        return [path, "active" if trail.active else "blocked", reasons]

    first = str(found).split("\n", 1)[0]
    if not found.trails:
        return paragraph(first)
    written = table("trails", ["trail", "", "because"], [line(trail) for trail in found.trails], 3)
    return paragraph(first) + written + ("" if found.complete else paragraph("… and further trails"))


def network_html(network: Any) -> str:
    """Return the graph with marginals without evidence as bars, if these are quick to compute, and as tables.

    A larger network is a table of the variables and their parents.
    """
    title = repr(network).strip("<>")
    above: dict[str, list[str]] = {name: [] for name in network.variables}
    for parent, child in network.edges:
        above[child].append(parent)
    written = paragraph(title)
    quick = len(above) <= _MOST_VARIABLES and _answers_quickly(network)
    if 0 < len(above) <= _MOST_DRAWN:
        beliefs = beliefs_of(network, {}) if quick else {name: {} for name in above}
        written += scrolling(network_svg(beliefs, network.edges, title))
    if not quick:
        rows = [[name, ", ".join(parents)] for name, parents in list(above.items())[:_MOST_ROWS]]
        listed = table("variables", ["variable", "parents"], rows, 2) + left_out(len(above), "variables", _MOST_ROWS)
        return written + listed if len(above) > _MOST_DRAWN else written + folded("variables", listed)
    marginals = network.query(joint=False)
    each = {_with_parents(name, above[name]): marginal.to_dict() for name, marginal in marginals.items()}
    tables = marginals_html("Marginals without evidence; an arrow leads from the parents", each)
    return written + tables if len(above) > _MOST_DRAWN else written + folded("marginals", tables)


def _answers_quickly(network: Any) -> bool:
    """Return whether all marginals without evidence take no time that is felt."""
    if len(network.cpts) + len(network.gaussians) < len(network.variables):
        return False
    if network.gaussians:  # a marginal has a component for each configuration
        return math.prod(len(one.states) for one in network.cpts) <= _MOST_CONFIGURATIONS
    tree = network._inference.tables.whole
    return tree is not None and tree.total_size <= _MOST_CELLS


def _with_parents(name: str, parents: Sequence[str]) -> str:
    return f"{name} ← {', '.join(parents)}" if parents else name


def marginals_html(title: str, marginals: Mapping[str, Mapping[Any, float]]) -> str:
    """Return a table for each variable, beside each other, with bars of probability."""
    parts = []
    for name, probabilities in marginals.items():
        shown = list(probabilities.items())[:_MOST_ROWS]
        rows = [[str(state), six_digits(p)] for state, p in shown]
        written = table(name, ["state", "probability"], rows, 1, [[None, p] for _, p in shown])
        parts.append(written + left_out(len(probabilities), "states", _MOST_ROWS))
    return paragraph(title) + side_by_side(parts)


def beliefs_of(network: Any, known: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return p(state | evidence) of each state of each variable; of intervals, if it is continuous."""
    marginals = network.query(evidence=known, joint=False)
    continuous = {one.variable for one in network.gaussians}
    beliefs = {}
    for name in network.variables:
        if name in continuous:
            beliefs[name] = _density_bars(marginals[name]) if name in marginals else {f"{known[name]:.4g}": 1.0}
            continue
        states = network.states(name)
        if name in marginals:
            probabilities = marginals[name].probabilities.tolist()
        else:
            probabilities = [float(state == known[name]) for state in states]
        shown = list(map(shorten, states))
        if len(set(shown)) < len(shown):  # as of 1 and "1", or of long names with one beginning
            shown = [f"{k}: {one}" for k, one in enumerate(shown, 1)]
        beliefs[name] = dict(zip(shown, probabilities, strict=True))
    return beliefs


def _density_bars(density: Any) -> dict[str, float]:
    """Return the probabilities of intervals of one width, which show the shape of a density."""
    ends = np.linspace(density.quantile(0.005), density.quantile(0.995), _INTERVALS + 1)
    shares = np.diff(density.cdf(ends)).tolist()
    return {f"{low:.4g} … {high:.4g}": p for low, high, p in zip(ends[:-1], ends[1:], shares, strict=True)}
