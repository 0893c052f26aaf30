"""Answers of a network: distributions with named states, which print as small tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posteriori.networks.graph.naming import States, require_variable, state_code
from posteriori.networks.inference.printing import aligned, conditional_lines, heading, joint_lines, number
from posteriori.networks.notebooks import conditional_html, joint_html, marginals_html, states_html
from posteriori.suggestions import closest
from posteriori.tables import Cell
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Distribution:
    """p(variables | evidence): the probability of every configuration of some variables.

    An index is a state (of a single variable), a tuple of states in the order of the variables, or a mapping from
    variable to state. Variables that a mapping leaves out are summed out.

    Attributes
    ----------
    states : dict from str to tuple of states
        The variables, in the order of the axes.
    probabilities : ndarray (K of each variable…)
    evidence : dict
        The evidence, as the caller gave it.
    standard_errors : ndarray or None
        The standard error of each probability, if it is estimated from samples.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "grass")])
    >>> net.add_cpt("rain", {"yes": 0.2, "no": 0.8})
    >>> net.add_cpt("grass", {"yes": {"wet": 0.9, "dry": 0.1}, "no": {"wet": 0.1, "dry": 0.9}})
    >>> rain = net.query("rain", evidence={"grass": "wet"})
    >>> rain
    p(rain | grass = wet)
    rain  probability
    yes      0.692308
    no       0.307692
    >>> round(rain["yes"], 4)
    0.6923
    """

    states: dict[str, States]
    probabilities: Array
    evidence: dict[str, Any] = field(default_factory=dict)
    standard_errors: Array | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the axes."""
        return tuple(self.states)

    def __getitem__(self, key: Any) -> float:
        return float(self.probabilities[self._index(key)].sum())

    def _index(self, key: Any) -> tuple[Any, ...]:
        if isinstance(key, Mapping):
            for name in key:
                if name not in self.states:
                    raise KeyError(f"{name!r} is not in {heading(self.states)}; {closest(name, self.states)}")
            pairs = ((name, key[name]) if name in key else (name, None) for name in self.states)
            return tuple(
                state_code(name, state, self.states[name]) if name in key else slice(None) for name, state in pairs
            )
        cells = key if isinstance(key, tuple) else (key,)
        if len(cells) != len(self.states):
            raise KeyError(f"{key!r} names {len(cells)} states; name one of each of {', '.join(self.states)}")
        return tuple(
            state_code(name, cell, known) for (name, known), cell in zip(self.states.items(), cells, strict=True)
        )

    def to_dict(self) -> dict[Any, float]:
        """Return the probability of each state, or of each tuple of states if there are several variables."""
        return {
            states[0] if len(states) == 1 else states: float(self.probabilities[position])
            for position, states in self._rows()
        }

    def _rows(self) -> Iterator[tuple[tuple[int, ...], tuple[Cell, ...]]]:
        for position in np.ndindex(self.probabilities.shape):
            yield position, tuple(known[k] for known, k in zip(self.states.values(), position, strict=True))

    def marginal(self, *variables: str) -> Distribution:
        """Return the distribution of some variables, in this order; the others are summed out.

        Parameters
        ----------
        *variables : str

        Returns
        -------
        Distribution
            Without standard errors.

        Raises
        ------
        ValueError
            The distribution has no such variable.
        """
        for name in variables:
            require_variable(name, self.states)
        axes = tuple(axis for axis, name in enumerate(self.states) if name not in variables)
        kept = [name for name in self.states if name in variables]
        summed = self.probabilities.sum(axis=axes).transpose([kept.index(name) for name in variables])
        return Distribution({name: self.states[name] for name in variables}, summed, self.evidence)

    @property
    def most_probable(self) -> dict[str, Cell]:
        """The state of each variable in the most probable configuration; the first one if there are ties."""
        position = np.unravel_index(np.argmax(self.probabilities), self.probabilities.shape)
        return {name: known[int(k)] for (name, known), k in zip(self.states.items(), position, strict=True)}

    def to_polars(self) -> Any:
        """Return a polars DataFrame: a column for each variable, and the ``probability``."""
        import polars as pl

        return pl.DataFrame(self._columns())

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: a column for each variable, and the ``probability``."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def _columns(self) -> dict[str, Any]:
        rows = list(self._rows())
        columns: dict[str, Any] = {name: [row[axis] for _, row in rows] for axis, name in enumerate(self.states)}
        columns["probability"] = self.probabilities.ravel()
        if self.standard_errors is not None:
            columns["standard_error"] = self.standard_errors.ravel()
        return columns

    def __repr__(self) -> str:
        more = {} if self.standard_errors is None else {"standard error": self.standard_errors}
        title = heading(self.states, evidence_words(self.evidence))
        return "\n".join([title, *joint_lines(self.states, self.probabilities, more)])

    def _repr_html_(self) -> str:
        more = {} if self.standard_errors is None else {"standard error": self.standard_errors}
        title = heading(self.states, evidence_words(self.evidence))
        return joint_html(title, self.states, self.probabilities, more)


@dataclass(frozen=True, eq=False)
class ConditionalDistribution:
    """p(variables | given): a distribution of some variables for every configuration of other variables.

    Attributes
    ----------
    states : dict from str to tuple of states
        The variables, the last axes.
    given : dict from str to tuple of states
        What is conditioned on, the first axes.
    probabilities : ndarray (K of each given…, K of each variable…)
        NaN where what is given cannot happen.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> net.conditional("rain", ["wet"])
    p(rain | wet)
    wet       yes        no
    yes  0.692308  0.307692
    no   0.027027  0.972973
    """

    states: dict[str, States]
    given: dict[str, States]
    probabilities: Array

    def __getitem__(self, given: Any) -> Distribution:
        """Return the distribution given a state, a tuple of states, or a mapping from variable to state."""
        if isinstance(given, Mapping):
            absent = [name for name in self.given if name not in given]
            strange = [name for name in given if name not in self.given]
            if absent or strange:
                raise KeyError(f"{given!r} must name a state of each of {', '.join(self.given)}, and no other")
            cells = tuple(given[name] for name in self.given)
        else:
            cells = given if isinstance(given, tuple) else (given,)
        if len(cells) != len(self.given):
            raise KeyError(f"{given!r} names {len(cells)} states; name one of each of {', '.join(self.given)}")
        position = tuple(
            state_code(name, cell, known) for (name, known), cell in zip(self.given.items(), cells, strict=True)
        )
        return Distribution(self.states, self.probabilities[position], dict(zip(self.given, cells, strict=True)))

    def __repr__(self) -> str:
        return "\n".join(conditional_lines(self.states, self.given, self.probabilities))

    def _repr_html_(self) -> str:
        return conditional_html(self.states, self.given, self.probabilities)


class Marginals(Mapping[str, Distribution]):
    """p(variable | evidence) of several variables: a mapping from name to distribution.

    A continuous variable has a `GaussianMixture`, which is shown by its mean and standard deviation.
    """

    def __init__(self, distributions: Mapping[str, Distribution]) -> None:
        self._distributions = dict(distributions)

    def __getitem__(self, name: str) -> Distribution:
        require_variable(name, self._distributions)
        return self._distributions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._distributions)

    def __len__(self) -> int:
        return len(self._distributions)

    def __contains__(self, name: object) -> bool:
        return name in self._distributions

    def to_polars(self) -> Any:
        """Return a polars DataFrame with the columns ``variable``, ``state`` and ``probability``."""
        import polars as pl

        rows = [(name, str(state), p) for name, marginal in self.items() for state, p in marginal.to_dict().items()]
        return pl.DataFrame(rows, schema=["variable", "state", "probability"], orient="row")

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with the columns ``variable``, ``state`` and ``probability``."""
        import pandas as pd

        rows = [(name, str(state), p) for name, marginal in self.items() for state, p in marginal.to_dict().items()]
        return pd.DataFrame(rows, columns=["variable", "state", "probability"])

    def __repr__(self) -> str:
        evidence = next(iter(self.values())).evidence if self._distributions else {}
        rows = [["variable", "state", "probability"]]
        for name, marginal in self.items():
            for position, (state, p) in enumerate(marginal.to_dict().items()):
                shown = number(p) if isinstance(marginal, Distribution) else f"{p:.6g}"
                rows.append(["" if position else name, str(state), shown])
        return "\n".join([heading(["variable"], evidence_words(evidence)), *aligned(rows, 2)])

    def _repr_html_(self) -> str:
        evidence = next(iter(self.values())).evidence if self._distributions else {}
        title = heading(["variable"], evidence_words(evidence))
        return marginals_html(title, {name: marginal.to_dict() for name, marginal in self.items()})


@dataclass(frozen=True)
class MostProbable:
    """The most probable configuration of all variables given evidence.

    Attributes
    ----------
    states : dict from str to state
    log_probability : float
        log p(states, evidence) in nats.
    log_evidence : float
        log p(evidence) in nats.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> net.most_probable({"wet": "yes"})
    variable  state
    rain      yes
    wet       yes
    p(all of it | evidence) = 0.692308
    """

    states: dict[str, Cell]
    log_probability: float
    log_evidence: float

    def __getitem__(self, name: str) -> Cell:
        require_variable(name, self.states)
        return self.states[name]

    @property
    def probability(self) -> float:
        """p(states | evidence)."""
        return float(np.exp(self.log_probability - self.log_evidence))

    def __repr__(self) -> str:
        rows = [["variable", "state"], *([name, str(state)] for name, state in self.states.items())]
        return "\n".join([*aligned(rows, 2), f"p(all of it | evidence) = {self.probability:.6g}"])

    def _repr_html_(self) -> str:
        return states_html(self.states, self.probability)


def evidence_words(evidence: Mapping[str, Any]) -> list[str]:
    """Format evidence as in p(… | smoke = yes); soft evidence as its likelihoods."""
    return [f"{name} = {_finding(finding)}" for name, finding in evidence.items()]


def _finding(finding: Any) -> str:
    if isinstance(finding, Mapping):
        return "{" + ", ".join(f"{state}: {weight:g}" for state, weight in finding.items()) + "}"
    if isinstance(finding, set | frozenset | list | tuple):
        return " or ".join(sorted(map(str, finding)) if isinstance(finding, set | frozenset) else map(str, finding))
    return str(finding)
