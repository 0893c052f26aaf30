"""The methods of a network that answer questions about one case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from posteriori.networks.distributions import ConditionalDistribution, Distribution, MostProbable
from posteriori.networks.naming import as_names, require_findings
from posteriori.networks.state import NetworkState

Method = Literal["exact", "conditioning", "sampling"]
Evidence = Mapping[str, Any]


class CaseQueries(NetworkState):
    """Methods of `BayesianNetwork`: questions about one case."""

    def query(
        self,
        *variables: str,
        evidence: Evidence | None = None,
        joint: bool = True,
        method: Method = "exact",
        n_samples: int = 10_000,
        random_state: Any = None,
    ) -> Any:
        """Return p(variables | evidence).

        Parameters
        ----------
        *variables : str
            By default every variable whose state the evidence leaves open.
        evidence : mapping, optional
            From variable to state, to a set of states, or to a mapping from each state to its likelihood.
        joint : bool, default True
            Whether to return one joint distribution instead of one distribution per variable.
        method : {"exact", "conditioning", "sampling"}, default "exact"
            By junction tree; exactly by conditioning, one small junction tree after the other, where a single tree
            needs more than max_table_size; or by likelihood weighting, which has no limit of size but a standard error.
        n_samples : int, default 10,000
        random_state : int, RandomState, Generator or None
            Seed of the samples.

        Returns
        -------
        Distribution or Marginals
            Marginals if joint is False or no variable is named. Of continuous variables a GaussianMixture; of both
            kinds together a MixedDistribution.

        Raises
        ------
        ValueError
            There is no such variable or state, the evidence has probability 0, or exact inference needs more cells
            than max_table_size; the message has their number.
        """
        return self._queries.query(self._inference, variables, evidence, joint, method, n_samples, random_state)

    def probability(
        self,
        event: Evidence,
        given: Evidence | None = None,
        *,
        method: Method = "exact",
        n_samples: int = 10_000,
        random_state: Any = None,
    ) -> float:
        """Return p(event | given) as a number.

        Parameters
        ----------
        event, given : mapping
            From variable to state, or to a set of states, one of which it has; see also `query`. The event of a
            continuous variable is an interval (low, high).
        method : {"exact", "conditioning", "sampling"}, default "exact"
        n_samples : int, default 10,000
        random_state : int, RandomState, Generator or None

        Returns
        -------
        float
            With a ``standard_error`` if it is sampled.

        Raises
        ------
        ValueError
            As in `query`.
        """
        require_findings("the event", event)
        p: float = self._queries.probability(self._inference, event, given, method, n_samples, random_state)
        return p

    def most_probable(self, evidence: Evidence | None = None) -> MostProbable:
        """Return the most probable configuration of all variables given evidence (MPE).

        Parameters
        ----------
        evidence : mapping, optional
            As in `query`.

        Returns
        -------
        MostProbable
            It may differ from the most probable states of the single variables.

        Raises
        ------
        ValueError
            As in `query`.
        """
        found: MostProbable = self._queries.most_probable(self._inference, evidence)
        return found

    def joint(self, *variables: str) -> Distribution:
        """Return the joint distribution of some variables, by default of all.

        Parameters
        ----------
        *variables : str
            By default all.

        Returns
        -------
        Distribution

        Raises
        ------
        ValueError
            It has more than max_table_size cells.
        """
        distribution: Distribution = self.query(*(variables or self._spec.dag.nodes))
        return distribution

    def conditional(self, variables: str | Sequence[str], given: str | Sequence[str]) -> ConditionalDistribution:
        """Return p(variables | given) = p(variables, given) / p(given) for any split of variables.

        Parameters
        ----------
        variables, given : str or sequence of str

        Returns
        -------
        ConditionalDistribution
            NaN where the given configuration has probability 0.

        Raises
        ------
        ValueError
            There is no such variable, one is named twice, or the table has more than max_table_size cells.
        """
        self._spec.dag.require_apart(variables, given, ())
        names = as_names(variables), as_names(given)
        table: ConditionalDistribution = self._queries.conditional(self._inference, *names)
        return table

    def sample(self, n: int = 1, evidence: Evidence | None = None, random_state: Any = None) -> Any:
        """Draw configurations of all variables: ancestral sampling or, given evidence, exactly from the junction tree.

        Parameters
        ----------
        n : int, default 1
        evidence : mapping, optional
            As in `query`.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        polars.DataFrame (n, V)
            Columns of strings are an Enum of the states.

        Raises
        ------
        ValueError
            n is no whole number of at least 1, or is too large; or as in `query`.
        """
        return self._queries.sample(self._inference, evidence, n, random_state)
