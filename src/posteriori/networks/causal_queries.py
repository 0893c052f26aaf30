"""The methods of a network about causes: interventions, adjustment sets and effects from observed variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from posteriori.networks.adjustment import AdjustmentSets, adjustment_sets
from posteriori.networks.distributions import Distribution
from posteriori.networks.estimands import Names, at
from posteriori.networks.evidence import read_evidence
from posteriori.networks.identification import Identification, identify
from posteriori.networks.interventions import mutilated
from posteriori.networks.naming import as_names, require_findings, require_variable, state_code
from posteriori.networks.state import NetworkState
from posteriori.typing import Array


class CausalQueries(NetworkState):
    """Methods of `BayesianNetwork`: the edges as causes."""

    def do(self, settings: Mapping[str, Any]) -> Self:
        r"""Return the network after an intervention: the variables are set from outside, whatever their causes are.

        .. math:: p(x \mid \mathrm{do}(x_S = s)) = [x_S = s] \prod_{v \notin S} p(x_v \mid x_{\mathrm{parents}(v)})

        Parameters
        ----------
        settings : mapping
            From variable to the state it is set to, or to a mapping from state to probability, by which it is drawn.

        Returns
        -------
        BayesianNetwork
            Without the edges into these variables; every query can be put to it.

        Raises
        ------
        ValueError
            There is no such variable or state, or probabilities do not sum to 1.

        References
        ----------
        Pearl (2009), Causality, second edition, section 3.2.

        Examples
        --------
        >>> import posteriori as po
        >>> net = po.BayesianNetwork([("rain", "wet")])
        >>> net.add_cpt("rain", {"yes": 0.2, "no": 0.8})
        >>> net.add_cpt("wet", {"yes": {"yes": 0.9, "no": 0.1}, "no": {"yes": 0.1, "no": 0.9}})
        >>> round(net.probability({"rain": "yes"}, given={"wet": "yes"}), 4)  # wet grass is a sign of rain
        0.6923
        >>> net.do({"wet": "yes"}).probability({"rain": "yes"})  # to pour water on it brings no rain
        0.2
        """
        after = type(self)(name=self.name, properties=self.properties, max_table_size=self.max_table_size)
        return after._with_spec(mutilated(self._spec, settings))

    def adjustment_sets(self, x: str, y: str, hidden: str | Iterable[str] = ()) -> AdjustmentSets:
        """Return the variables to adjust for to estimate the effect of x on y; see `networks.adjustment_sets`."""
        return adjustment_sets(self._spec.dag, x, y, hidden)

    def identify(
        self,
        outcome: str | Iterable[str],
        treatment: str | Iterable[str],
        given: str | Iterable[str] = (),
        hidden: str | Iterable[str] = (),
    ) -> Identification:
        """Return the formula of an effect in observed probabilities, or why there is none; see `networks.identify`."""
        return identify(self._spec.dag, outcome, treatment, given, hidden)

    def causal_effect(
        self,
        outcome: str | Iterable[str],
        settings: Mapping[str, Any],
        evidence: Mapping[str, Any] | None = None,
        hidden: str | Iterable[str] = (),
    ) -> Distribution:
        """Return p(outcome | do(settings), evidence) by its formula in probabilities of the observed variables.

        It equals ``net.do(settings).query(outcome, evidence=evidence)``, but uses no probability of a hidden variable:
        a network whose hidden variables have other tables, and the same observed distribution, gives the same answer.

        Parameters
        ----------
        outcome : str or collection of str
        settings : mapping
            From each treatment to its state.
        evidence : mapping, optional
            From variable to state.
        hidden : str or collection of str

        Returns
        -------
        Distribution

        Raises
        ------
        TypeError
            The settings are no mapping.
        ValueError
            The effect is not identifiable from the observed variables; the message has the reason. Or there is no such
            variable or state, or the evidence is impossible.
        """
        require_findings("settings", settings)
        known = dict(evidence or {})
        names = as_names(outcome)
        found = identify(self._spec.dag, names, tuple(settings), tuple(known), hidden)
        if found.formula is None:
            raise ValueError(
                f"{found.effect} is not identifiable: {found.reason}; net.do(…) uses the hidden tables too"
            )
        codes = {name: state_code(name, state, self._spec.states_of(name)) for name, state in settings.items()}
        codes |= {name: state_code(name, state, self._spec.states_of(name)) for name, state in known.items()}
        for name in found.formula.free - set(names) - set(codes):
            codes[name] = int(self._joint((name,)).argmax())  # the effect is the same for each of its states
        value = at(found.formula.evaluate(self._joint), names, codes)
        total = float(value.sum())
        if not total > 0:
            raise ValueError(
                f"{found.effect} has no value: a configuration that its formula needs has probability 0; set or give "
                "states that occur"
            )
        shown = {f"do({name})": state for name, state in settings.items()} | known
        return Distribution({name: self._spec.states_of(name) for name in names}, value / total, shown)

    def _joint(self, names: Names) -> Array:
        """Return p(names), an axis for each."""
        inference = self._inference
        for name in names:
            require_variable(name, self._spec.dag.parents)
            if name not in inference.states:
                raise ValueError(f"the formula needs p({name}), which is continuous; use net.do(…).query(…)")
        if not names:
            return np.ones(())
        discrete = inference.discrete_inference if self._spec.gaussians else inference
        joint: Array = discrete.joint([discrete.position[name] for name in names], read_evidence({}, discrete.states))
        return joint
