"""The effect of an intervention from the probabilities of observed variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from posteriori.networks.distributions import Distribution
from posteriori.networks.estimands import Names, at
from posteriori.networks.identification import identify
from posteriori.networks.inference import Inference
from posteriori.networks.naming import as_names, require_findings, state_code
from posteriori.networks.questions import joint_of_states
from posteriori.networks.specification import NetworkSpec
from posteriori.typing import Array


def causal_effect(
    spec: NetworkSpec,
    inference: Inference,
    outcome: str | Iterable[str],
    settings: Mapping[str, Any],
    evidence: Mapping[str, Any] | None,
    hidden: str | Iterable[str],
) -> Distribution:
    """Return p(outcome | do(settings), evidence) by its formula; see `BayesianNetwork.causal_effect`."""

    def joint(names: Names) -> Array:
        return joint_of_states(inference, names)

    require_findings("settings", settings)
    known = dict(evidence or {})
    names = as_names(outcome)
    found = identify(spec.dag, names, tuple(settings), tuple(known), hidden)
    if found.formula is None:
        raise ValueError(f"{found.effect} is not identifiable: {found.reason}; net.do(…) uses the hidden tables too")
    codes = {name: state_code(name, state, spec.states_of(name)) for name, state in settings.items()}
    codes |= {name: state_code(name, state, spec.states_of(name)) for name, state in known.items()}
    for name in found.formula.free - set(names) - set(codes):
        codes[name] = int(joint((name,)).argmax())  # the effect is the same for each of its states
    value = at(found.formula.evaluate(joint), names, codes)
    total = float(value.sum())
    if not total > 0:
        raise ValueError(
            f"{found.effect} has no value: a configuration that its formula needs has probability 0; set or give "
            "states that occur"
        )
    shown = {f"do({name})": state for name, state in settings.items()} | known
    return Distribution({name: spec.states_of(name) for name in names}, value / total, shown)
