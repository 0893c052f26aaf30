"""Value of information, sensitivity of an answer to each parameter and finding, and strength of each edge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.graph.naming import require_findings, require_variable, state_code
from posteriori.networks.inference.evidence import Evidence, read_evidence
from posteriori.networks.inference.printing import aligned
from posteriori.networks.inference.table_inference import TableInference, require_possible
from posteriori.support.typing import Array
from posteriori.tables import Cell

Costs = Mapping[Any, Mapping[Any, float]]
_SHOWN = 20


@dataclass(frozen=True)
class InformationValue:
    """Value of observing one variable.

    Attributes
    ----------
    variable : str
    information : float
        The mutual information of the variable and the target given the evidence, in nats.
    saved : float or None
        By how much the observation lowers the expected cost of the best action, in the unit of the costs; None without
        costs.
    test_cost : float
        What the observation itself costs.
    """

    variable: str
    information: float
    saved: float | None = None
    test_cost: float = 0.0

    @property
    def net_value(self) -> float | None:
        """Expected saving by the observation less its cost; None without costs."""
        return None if self.saved is None else self.saved - self.test_cost


@dataclass(frozen=True)
class InformationValues(Sequence[InformationValue]):
    """The value of observing each variable, best first.

    Attributes
    ----------
    target : str
    values : tuple of InformationValue
    action : object
        The action of least expected cost now; None without costs.
    expected_cost : float or None
        Its expected cost.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> net.value_of_information("rain")
    what to observe about rain
    variable  information (nats)
    wet                 0.247974
    """

    target: str
    values: tuple[InformationValue, ...]
    action: Any = None
    expected_cost: float | None = None

    def __getitem__(self, k: Any) -> Any:
        return self.values[k]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        with_costs = self.expected_cost is not None
        head = ["variable", "information (nats)", *(["saves", "costs", "net"] if with_costs else [])]
        rows = [head]
        for one in self.values[:_SHOWN]:
            costs = [f"{one.saved:.6g}", f"{one.test_cost:g}", f"{one.net_value:.6g}"] if with_costs else []
            rows.append([one.variable, f"{one.information:.6f}", *costs])
        title = f"what to observe about {self.target}"
        if with_costs:
            title += f"; now {self.action!r} is best, with an expected cost of {self.expected_cost:.6g}"
        more = [f"… and {len(self.values) - _SHOWN:,} more"] if len(self.values) > _SHOWN else []
        return "\n".join([title, *aligned(rows, 1), *more])


def value_of_information(
    inference: TableInference,
    target: str,
    given: Mapping[str, Any] | None,
    costs: Costs | None,
    test_costs: Mapping[str, float] | None,
    candidates: Iterable[str] | None,
) -> InformationValues:
    """Return the value of observing each variable; see `BayesianNetwork.value_of_information`."""
    evidence = read_evidence(given, inference.states)
    require_variable(target, inference.states)
    hard = {tuple(inference.states)[v] for v in evidence.hard}
    if target in hard:
        raise ValueError(f"{target!r} is known, and nothing is left to learn about it; leave it out of the evidence")
    if candidates is None:
        names = [name for name in inference.states if name != target and name not in hard]
    else:
        names = list(dict.fromkeys(candidates))
    for name in [*names, *(test_costs or {})]:
        require_variable(name, inference.states)
        if name == target or (name in hard and name in names):
            raise ValueError(f"{name!r} is the target or is known; leave it out of the candidates")
    table = None if costs is None else _cost_table(target, costs, inference)
    if not names:
        joint_of_target = inference.joint([target], evidence)
    found = []
    for name in names:
        joint = inference.joint([target, name], evidence)
        joint_of_target = joint.sum(axis=1)
        product = np.outer(joint_of_target, joint.sum(axis=0))
        seen = joint > 0
        information = max(float((joint[seen] * np.log(joint[seen] / product[seen])).sum()), 0.0)
        saved = None
        if table is not None:
            # Σ_x min_a Σ_t cost(a, t) p(t, x): the best action may differ from state to state.
            saved = max(float((table @ joint_of_target).min() - (table @ joint).min(axis=0).sum()), 0.0)
        found.append(InformationValue(name, information, saved, float((test_costs or {}).get(name, 0.0))))
    order = sorted(found, key=lambda one: -(one.information if one.net_value is None else one.net_value))
    if table is None or costs is None:
        return InformationValues(target, tuple(order))
    expected = table @ joint_of_target
    best = int(expected.argmin())
    return InformationValues(target, tuple(order), list(costs)[best], float(expected[best]))


def _cost_table(target: str, costs: Costs, inference: TableInference) -> Array:
    """Return the costs as (actions, states of the target)."""
    states = inference.states[target]
    if not costs:
        raise ValueError("costs names no action; give at least one, with a cost for each state")
    table = np.full((len(costs), len(states)), np.nan)
    for row, (action, by_state) in enumerate(costs.items()):
        for state, cost in by_state.items():
            table[row, state_code(target, state, states)] = cost
        if not np.isfinite(table[row]).all():
            absent = states[int(np.argmin(np.isfinite(table[row])))]
            raise ValueError(f"the cost of {action!r} where {target} = {absent!r} is missing or not finite; give it")
    return table


@dataclass(frozen=True)
class ParameterSensitivity:
    r"""How p(event | evidence) depends on one parameter θ = p(variable = state | parents).

    .. math:: p(\theta) = \frac{\alpha \theta + \beta}{\gamma \theta + \delta}

    The other states of the row share 1 − θ in their present proportions.

    Attributes
    ----------
    variable : str
    state : state
    parents : dict from str to state
    value : float
        θ as it is.
    alpha, beta, gamma, delta : float
    low, high : float
        The smallest and the largest p(event | evidence) within the range of θ.
    """

    variable: str
    state: Cell
    parents: dict[str, Cell]
    value: float
    alpha: float
    beta: float
    gamma: float
    delta: float
    low: float
    high: float

    def __call__(self, theta: float) -> float:
        """Return p(event | evidence) for another value of the parameter; NaN where the evidence becomes impossible."""
        below = self.gamma * theta + self.delta
        return (self.alpha * theta + self.beta) / below if below > 0 else math.nan

    @property
    def derivative(self) -> float:
        """The derivative of p(event | evidence) at the present value."""
        return (self.alpha * self.delta - self.beta * self.gamma) / (self.gamma * self.value + self.delta) ** 2

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {state}" for name, state in self.parents.items())
        return f"p({self.variable} = {self.state}{' | ' + given if given else ''})"


@dataclass(frozen=True)
class Sensitivity:
    """One-way sensitivity of p(event | evidence): the parameters that move it most first (a tornado).

    Attributes
    ----------
    probability : float
        p(event | evidence) as it is.
    parameters : tuple of ParameterSensitivity
        Of parameters strictly between 0 and 1 on which the answer depends.
    without : dict from str to float
        p(event | evidence without this finding), for each finding.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> net.sensitivity({"rain": "yes"}, {"wet": "yes"})
    p(event | evidence) = 0.692308
    parameter                  value       low      high  derivative
    p(wet = no | rain = no)      0.9  0.542169  0.957447        2.13
    p(rain = no)                 0.8   0.55102  0.777778      -1.331
    p(rain = yes)                0.2  0.663934  0.717391       1.331
    p(wet = yes | rain = yes)    0.9  0.669421   0.71223      0.2367
    p(wet = yes | rain = no)     0.1  0.671642  0.714286       -2.13
    p(wet = no | rain = yes)     0.1  0.689922  0.694656     -0.2367
    without  probability
    wet              0.2
    """

    probability: float
    parameters: tuple[ParameterSensitivity, ...]
    without: dict[str, float]

    def __repr__(self) -> str:
        rows = [["parameter", "value", "low", "high", "derivative"]]
        rows += [
            [str(one), f"{one.value:.6g}", f"{one.low:.6g}", f"{one.high:.6g}", f"{one.derivative:.4g}"]
            for one in self.parameters[:_SHOWN]
        ]
        more = [f"… and {len(self.parameters) - _SHOWN:,} more"] if len(self.parameters) > _SHOWN else []
        lines = [f"p(event | evidence) = {self.probability:.6g}", *aligned(rows, 1), *more]
        if self.without:
            shown = [["without", "probability"], *([name, f"{p:.6g}"] for name, p in self.without.items())]
            lines += aligned(shown, 1)
        return "\n".join(lines)


def sensitivity(
    inference: TableInference, event: Mapping[str, Any], given: Mapping[str, Any] | None, change: float
) -> Sensitivity:
    """Return how p(event | given) depends on each parameter and each finding; see `BayesianNetwork.sensitivity`."""
    if not 0 < change <= 1:
        raise ValueError(f"change is {change!r}; it must be above 0 and at most 1, a share of each parameter")
    require_findings("the event", event)
    happens, known = (read_evidence(mapping, inference.states) for mapping in (event, given))
    if not happens.likelihoods:
        raise ValueError("the event is empty; name a variable and its state")
    both = happens & known
    if both is None:
        raise ValueError("the event contradicts the evidence, so that its probability is 0 whatever the parameters are")
    (log_above, above), (log_below, below) = (_families(inference, one) for one in (both, known))
    p = math.exp(log_above - log_below)
    found = []
    for v, cpt in enumerate(inference.cpts):
        # Slopes of p(event, evidence) / p(evidence) and of p(evidence) / p(evidence), both linear in a parameter.
        slope_above, slope_below = (_slopes(table, cpt.probabilities) for table in (p * above[v], below[v]))
        for place in map(tuple, np.argwhere((cpt.probabilities > 0) & (cpt.probabilities < 1)).tolist()):
            a, c, theta = float(slope_above[place]), float(slope_below[place]), float(cpt.probabilities[place])
            if abs(a - p * c) <= 1e-12:
                continue
            b, d = p - a * theta, 1.0 - c * theta
            low, high = max(theta * (1 - change), 0.0), min(theta * (1 + change), 1.0)
            ends = [(a * end + b) / (c * end + d) for end in (low, high) if c * end + d > 0]
            parents = {name: states[k] for (name, states), k in zip(cpt.parents.items(), place, strict=False)}
            found.append(
                ParameterSensitivity(
                    cpt.variable, cpt.states[place[-1]], parents, theta, a, b, c, d, min(ends), max(ends)
                )
            )
    found.sort(key=lambda one: one.low - one.high)
    return Sensitivity(p, tuple(found), _without_each(inference, happens, known))


def _families(inference: TableInference, evidence: Evidence) -> tuple[float, list[Array]]:
    """Return log p(evidence), and p(family | evidence) of every variable."""
    tree, codes = inference.everything(), evidence.codes[np.newaxis]
    tables, log_evidence = tree.expected_counts(codes, np.ones(1), inference.scopes, evidence.soft, 1)
    require_possible(log_evidence)
    return log_evidence, tables


def _slopes(family: Array, probabilities: Array) -> Array:
    """Return d/dθ of Σ family where θ grows and the other states of its row shrink in proportion, per parameter.

    A cell of the family is linear in its own probability: its derivative is family / probability.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(probabilities > 0, family / probabilities, 0.0)
        others = (family.sum(axis=-1, keepdims=True) - family) / (1.0 - probabilities)
    slopes: Array = own - np.where(probabilities < 1, others, 0.0)
    return slopes


def _without_each(inference: TableInference, event: Evidence, known: Evidence) -> dict[str, float]:
    found = {}
    for name in known.likelihoods:
        rest = Evidence(known.states, {other: one for other, one in known.likelihoods.items() if other != name})
        both = event & rest
        log_both = -math.inf if both is None else inference.answer([], both)[1]
        found[name] = math.exp(log_both - inference.answer([], rest)[1])
    return found


def arc_strengths(inference: TableInference) -> dict[tuple[str, str], float]:
    """Return I(parent; child | other parents) of each edge in nats; see `BayesianNetwork.arc_strengths`."""
    _, tables = _families(inference, Evidence(inference.states, {}))
    strengths = {}
    for cpt, joint in zip(inference.cpts, tables, strict=True):
        for axis, parent in enumerate(cpt.parents):
            # p(child | all parents) beside p(child | the others), weighed by the joint
            without = joint.sum(axis=axis, keepdims=True)
            conditional = without / np.where(without.sum(axis=-1, keepdims=True) > 0, without.sum(-1, keepdims=True), 1)
            seen = joint > 0
            ratio = cpt.probabilities[seen] / np.broadcast_to(conditional, joint.shape)[seen]
            strengths[parent, cpt.variable] = max(float(joint[seen] @ np.log(ratio)), 0.0)
    return strengths
