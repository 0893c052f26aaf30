"""The methods of a network that support decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from posteriori.networks import decision_support
from posteriori.networks.decision_support import InformationValues, Sensitivity
from posteriori.networks.inference import Inference
from posteriori.networks.state import NetworkState


class DecisionQueries(NetworkState):
    """Methods of `BayesianNetwork`: value of information, sensitivity, and strength of edges."""

    def value_of_information(
        self,
        target: str,
        evidence: Mapping[str, Any] | None = None,
        *,
        costs: Mapping[Any, Mapping[Any, float]] | None = None,
        test_costs: Mapping[str, float] | None = None,
        candidates: Iterable[str] | None = None,
    ) -> InformationValues:
        r"""Return what it is worth to observe each variable before a decision about the target.

        .. math::
            \min_a \sum_t c(a, t)\, p(t \mid e) - \sum_x \min_a \sum_t c(a, t)\, p(t, x \mid e)

        Parameters
        ----------
        target : str
        evidence : mapping, optional
            As in `query`.
        costs : mapping from action to mapping from state to number, optional
            The cost of each action in each state of the target. Without it, variables are ordered by their mutual
            information with the target.
        test_costs : mapping from str to number, optional
            What the observation of a variable costs, in the same unit.
        candidates : sequence of str, optional
            The variables that can be observed; by default all whose state is open.

        Returns
        -------
        InformationValues
            Best first: by what an observation saves less what it costs, or by information.

        Raises
        ------
        ValueError
            The target is known, a cost is missing, or a variable is continuous; or as in `query`.

        References
        ----------
        Howard (1966), Information value theory, IEEE Transactions on Systems Science and Cybernetics 2.

        Examples
        --------
        >>> import posteriori as po
        >>> net = po.BayesianNetwork([("ill", "test"), ("ill", "cough")])
        >>> net.add_cpt("ill", {"yes": 0.1, "no": 0.9})
        >>> net.add_cpt("test", {"yes": {"+": 0.9, "-": 0.1}, "no": {"+": 0.05, "-": 0.95}})
        >>> net.add_cpt("cough", {"yes": {"yes": 0.5, "no": 0.5}, "no": {"yes": 0.2, "no": 0.8}})
        >>> costs = {"treat": {"yes": 1, "no": 4}, "wait": {"yes": 20, "no": 0}}
        >>> net.value_of_information("ill", costs=costs, test_costs={"test": 0.5})
        what to observe about ill; now 'wait' is best, with an expected cost of 2
        variable  information (nats)  saves  costs   net
        test                0.184610   1.53    0.5  1.03
        cough               0.019599   0.23      0  0.23
        """
        inference = self._discrete("the value of information")
        return decision_support.value_of_information(inference, target, evidence, costs, test_costs, candidates)

    def sensitivity(
        self, event: Mapping[str, Any], evidence: Mapping[str, Any] | None = None, *, change: float = 0.1
    ) -> Sensitivity:
        """Return how far p(event | evidence) depends on each parameter and on each finding.

        Parameters
        ----------
        event : mapping
            As in `probability`.
        evidence : mapping, optional
        change : float, default 0.1
            The range of each parameter: this share less and more, within 0 and 1.

        Returns
        -------
        Sensitivity
            Of each parameter the function (αθ + β)/(γθ + δ), exact, and its range; largest range first.

        Raises
        ------
        TypeError
            The event is no mapping.
        ValueError
            The event contradicts the evidence, which is impossible, or a variable is continuous.

        Notes
        -----
        Two passes over the junction tree give the functions of all parameters, from p(family | evidence).

        References
        ----------
        Castillo, Gutiérrez & Hadi (1997), Sensitivity analysis in discrete Bayesian networks, IEEE Transactions on
        Systems, Man, and Cybernetics 27. Kjærulff & van der Gaag (2000), Making sensitivity analysis computationally
        efficient, UAI 16.

        Examples
        --------
        >>> import posteriori as po
        >>> net = po.BayesianNetwork([("ill", "test")])
        >>> net.add_cpt("ill", {"yes": 0.1, "no": 0.9})
        >>> net.add_cpt("test", {"yes": {"+": 0.9, "-": 0.1}, "no": {"+": 0.05, "-": 0.95}})
        >>> found = net.sensitivity({"ill": "yes"}, {"test": "+"})
        >>> print(found.parameters[0], round(found.parameters[0](0.2), 4))
        p(ill = no) 0.9863
        """
        return decision_support.sensitivity(self._discrete("sensitivity"), event, evidence, change)

    def arc_strengths(self) -> dict[tuple[str, str], float]:
        """Return the strength of each edge: I(parent; child | other parents of the child), in nats.

        It is what the network loses in expected log-likelihood per row if the edge is removed and the table of the
        child learned again from the network.

        Returns
        -------
        dict from pair (parent, child) to float

        Raises
        ------
        ValueError
            A variable is continuous, or exact inference needs more cells than max_table_size.
        """
        return decision_support.arc_strengths(self._discrete("the strength of an edge"))

    def _discrete(self, what: str) -> Inference:
        """Return exact inference; ValueError if a variable is continuous."""
        if self._spec.gaussians:
            raise ValueError(
                f"{self._spec.gaussians[0].variable!r} is continuous, and {what} is computed of discrete variables only"
            )
        inference: Inference = self._inference
        return inference
