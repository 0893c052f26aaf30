"""Adjustment sets: variables by which the effect of one variable on another follows from observed data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from posteriori.networks.graph.dag import DAG, active_trails
from posteriori.networks.graph.naming import as_names, require_variable
from posteriori.networks.graph.specification import without_edges

Sets = tuple[tuple[str, ...], ...]
_MOST_SETS = 20
_MOST_TESTS = 20_000  # of sets: seconds in a graph of hundreds of edges


@dataclass(frozen=True)
class AdjustmentSets:
    r"""The smallest sets of observed variables by which the effect of x on y follows from the observed distribution.

    By the back door, with z an adjustment set:

    .. math:: p(y \mid \mathrm{do}(x)) = \sum_z p(y \mid x, z) \, p(z)

    By the front door, with z the variables that pass the effect on:

    .. math:: p(y \mid \mathrm{do}(x)) = \sum_z p(z \mid x) \sum_{x'} p(y \mid x', z) \, p(x')

    Attributes
    ----------
    x, y : str
        Treatment and outcome.
    hidden : tuple of str
    back_door, front_door : tuple of tuple of str
        Sets from which no variable can be left out, smallest first; the empty set means that no adjustment is needed.
    reasons : tuple of str
        Why each set works, or why there is none.
    complete : bool
        Whether all such sets are listed; at most 20 of each kind are.

    References
    ----------
    Pearl (2009), Causality, second edition, definitions 3.3.1 and 3.3.3, theorems 3.3.2 and 3.3.4.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("age", "drug"), ("age", "cured"), ("drug", "cured")])
    >>> net.adjustment_sets("drug", "cured")
    effect of drug on cured
    back door {age}: it blocks drug ← age → cured
    front door: none, because of the edge drug → cured
    """

    x: str
    y: str
    hidden: tuple[str, ...]
    back_door: Sets
    front_door: Sets
    reasons: tuple[str, ...]
    complete: bool

    def __repr__(self) -> str:
        return "\n".join([f"effect of {self.x} on {self.y}", *self.reasons])


def adjustment_sets(dag: DAG, x: str, y: str, hidden: str | Iterable[str] = ()) -> AdjustmentSets:
    """Return the back-door and front-door adjustment sets of the effect of x on y, with the reason for each.

    Parameters
    ----------
    dag : DAG
        All causes, also the hidden ones.
    x, y : str
        Treatment and outcome.
    hidden : str or collection of str
        Variables that are not observed.

    Returns
    -------
    AdjustmentSets

    Raises
    ------
    ValueError
        There is no such variable, or x or y is hidden or the same.

    Notes
    -----
    Only ancestors of x and y can be in a smallest back-door set (van der Zander, Liśkiewicz & Textor 2014). The sets
    are tried by size, at most 20,000 of them.

    Examples
    --------
    >>> from posteriori.networks import DAG, adjustment_sets
    >>> smoking = DAG.of([("gene", "smoke"), ("gene", "cancer"), ("smoke", "tar"), ("tar", "cancer")])
    >>> adjustment_sets(smoking, "smoke", "cancer", hidden="gene")
    effect of smoke on cancer
    back door: none, because smoke ← gene → cancer stays open (gene is hidden)
    front door {tar}: every directed path from smoke to cancer passes it, nothing confounds smoke and tar, and smoke blocks what confounds tar and cancer
    """  # noqa: E501
    unseen = as_names(hidden)
    for name in (x, y, *unseen):
        require_variable(name, dag.parents)
    if x == y:
        raise ValueError(f"{x!r} is the treatment and the outcome; name two variables")
    for what, name in (("treatment", x), ("outcome", y)):
        if name in unseen:
            raise ValueError(f"the {what} {name!r} is hidden; its effect cannot be seen")
    observed = frozenset(dag.nodes) - set(unseen) - {x, y}
    back, back_reasons, back_complete = _back_door(dag, x, y, observed, unseen)
    front, front_reasons, front_complete = _front_door(dag, x, y, observed)
    return AdjustmentSets(x, y, unseen, back, front, (*back_reasons, *front_reasons), back_complete and front_complete)


def _back_door(
    dag: DAG, x: str, y: str, observed: frozenset[str], hidden: tuple[str, ...]
) -> tuple[Sets, list[str], bool]:
    # Without the edges out of x, what connects x and y is confounding alone.
    confounding = without_edges(dag, out_of=frozenset({x}))
    allowed = observed - dag.descendants(x)
    if y in dag.ancestors(x):
        return (), [f"back door: none, because {y} is a cause of {x}"], True
    candidates = sorted(allowed & confounding.ancestors((x, y)), key=dag.nodes.index)
    if not confounding.d_separated(x, y, given=candidates):
        trail = active_trails(confounding, x, y, given=candidates).trails[0]
        unseen = [name for name in trail.nodes[1:-1] if name in hidden]
        note = f" ({', '.join(unseen)} {'is' if len(unseen) == 1 else 'are'} hidden)" if unseen else ""
        return (), [f"back door: none, because {trail_text(trail.nodes, trail.arrows)} stays open{note}"], True
    sets, complete = _smallest(candidates, lambda z: confounding.d_separated(x, y, given=z))
    return sets, [f"back door {_braces(z)}: {_blocked(confounding, x, y, z)}" for z in sets], complete


def _blocked(confounding: DAG, x: str, y: str, z: tuple[str, ...]) -> str:
    """Return which trails an adjustment set blocks."""
    if not z:
        return f"nothing confounds {x} and {y}, so that p({y} | do({x})) = p({y} | {x})"
    trails = active_trails(confounding, x, y, limit=3)
    shown = ", ".join(trail_text(trail.nodes, trail.arrows) for trail in trails.trails)
    return f"it blocks {shown}{'' if trails.complete else ' and more'}"


def _front_door(dag: DAG, x: str, y: str, observed: frozenset[str]) -> tuple[Sets, list[str], bool]:
    between = dag.descendants(x) & dag.ancestors(y)
    if y not in dag.descendants(x):
        return (), [f"front door: none is needed, because {x} has no effect on {y}"], True
    if y in dag.children[x]:
        return (), [f"front door: none, because of the edge {x} → {y}"], True
    without_x_out = without_edges(dag, out_of=frozenset({x}))

    def works(z: tuple[str, ...]) -> bool:
        uncut = DAG(dag.nodes, tuple(edge for edge in dag.edges if edge[0] not in z))
        if y in uncut.descendants(x) or not (z and without_x_out.d_separated(x, z)):
            return False
        # Each back-door trail from a mediator to y is blocked by x, with the other mediators set.
        return without_edges(dag, out_of=frozenset(z)).d_separated(z, y, given=x)

    candidates = sorted(observed & between, key=dag.nodes.index)
    sets, complete = _smallest(candidates, works)
    if not sets:
        through = ", ".join(candidates) or "no observed variable"
        return (), [f"front door: none, because no set of {through} passes on the whole effect unconfounded"], complete
    reasons = [
        f"front door {_braces(z)}: every directed path from {x} to {y} passes it, nothing confounds {x} and "
        f"{_and(z)}, and {x} blocks what confounds {_and(z)} and {y}"
        for z in sets
    ]
    return sets, reasons, complete


def _smallest(candidates: list[str], works: Callable[[tuple[str, ...]], bool]) -> tuple[Sets, bool]:
    """Return the working sets that contain no smaller working set, and whether all were tried."""
    found: list[tuple[str, ...]] = []
    for tried, z in enumerate(_by_size(candidates)):
        if tried >= _MOST_TESTS or len(found) >= _MOST_SETS:
            return tuple(found), False
        if not any(set(smaller) <= set(z) for smaller in found) and works(z):
            found.append(z)
    return tuple(found), True


def _by_size(candidates: list[str]) -> Iterator[tuple[str, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(candidates, k) for k in range(len(candidates) + 1))


def trail_text(nodes: tuple[str, ...], arrows: tuple[str, ...]) -> str:
    """Write a trail: a ← b → c."""
    return nodes[0] + "".join(f" {arrow} {node}" for arrow, node in zip(arrows, nodes[1:], strict=True))


def _and(names: tuple[str, ...]) -> str:
    return " and ".join(names)


def _braces(names: tuple[str, ...]) -> str:
    return "{" + ", ".join(names) + "}"
