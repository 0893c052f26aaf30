"""Answers of a network: distributions with named states, and mixtures of normal densities."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr

from posteriori.networks.graph.naming import States, require_variable, state_code
from posteriori.networks.inference.printing import aligned, conditional_lines, heading, joint_lines, six_digits
from posteriori.networks.notebooks import conditional_html, joint_html, marginals_html, states_html
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Cell


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

    def __init__(
        self, distributions: Mapping[str, Distribution], known: Mapping[str, Any], variables: Collection[str]
    ) -> None:
        self._distributions = dict(distributions)
        self._known = dict(known)  # the states of the variables that are evidence
        self._variables = variables  # all those of the network

    def __getitem__(self, name: str) -> Distribution:
        require_variable(name, self._variables)
        if name in self._known:
            raise ValueError(f"{name!r} is evidence, {self._known[name]!r}, and has no distribution; ask for another")
        if name not in self._distributions:
            raise ValueError(f"the query did not ask for {name!r}; name it in the query")
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
                shown = six_digits(p) if isinstance(marginal, Distribution) else f"{p:.6g}"
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


_STEPS = 200  # of bisection: more than the digits of a float


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    r"""p(variables | evidence) of continuous variables: exactly a mixture of normal densities.

    .. math:: p(x) = \sum_m w_m \, \mathcal{N}(x;\; \mu_m, \Sigma_m)

    Its components are the configurations of the discrete variables. `mean` and `covariance` are exact. A normal density
    with these two, which many programs return (the weak marginal), has the right moments and another shape.

    Attributes
    ----------
    variables : tuple of str
    weights : ndarray (M,)
    means : ndarray (M, d)
    covariances : ndarray (M, d, d)
    evidence : dict
    """

    variables: tuple[str, ...]
    weights: Array
    means: Array
    covariances: Array
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> Any:
        """The mean: a float for one variable, else an array (d,)."""
        mean = self.weights @ self.means
        return float(mean[0]) if len(self.variables) == 1 else mean

    @property
    def covariance(self) -> Array:
        """The covariance of the mixture, (d, d): within and between its components."""
        centred = self.means - self.weights @ self.means
        within = np.einsum("m,mij->ij", self.weights, self.covariances)
        covariance: Array = within + np.einsum("m,mi,mj->ij", self.weights, centred, centred)
        return covariance

    @property
    def variance(self) -> Any:
        """The variance: a float for one variable, else an array (d,)."""
        variance = np.diag(self.covariance)
        return float(variance[0]) if len(self.variables) == 1 else variance.copy()

    @property
    def standard_deviation(self) -> Any:
        """The square root of `variance`."""
        return math.sqrt(self.variance) if len(self.variables) == 1 else np.sqrt(self.variance)

    def marginal(self, *variables: str) -> GaussianMixture:
        """Return the density of some of the variables, in this order; ValueError for others."""
        for name in variables:
            require_variable(name, self.variables)
        kept = [self.variables.index(name) for name in variables]
        return GaussianMixture(
            variables, self.weights, self.means[:, kept], self.covariances[:, kept][:, :, kept], self.evidence
        )

    def pdf(self, x: Any) -> Array:
        """Return the density at points (n,) of one variable or (n, d); inf at a point mass."""
        points = np.asarray(x, np.float64)
        points = points.reshape(-1, 1) if len(self.variables) == 1 else np.atleast_2d(points)
        out = np.zeros(len(points))
        for weight, mean, covariance in zip(self.weights, self.means, self.covariances, strict=True):
            if weight > 0:
                out += weight * np.exp(_log_normal(points - mean, covariance))
        return out

    def cdf(self, x: Any) -> Any:
        """Return p(variable ≤ x) of a single variable; ValueError if there are several."""
        points = np.asarray(x, np.float64)
        below = self._below(points, at=np.inf)
        return float(below) if points.ndim == 0 else below

    def interval(self, low: float | None, high: float | None) -> float:
        """Return p(low ≤ variable ≤ high) of a single variable, None for no end; ValueError if there are several."""
        above = 1.0 if high is None else float(self._below(np.asarray(high, np.float64), at=np.inf))
        below = 0.0 if low is None else float(self._below(np.asarray(low, np.float64), at=-np.inf))
        return max(above - below, 0.0)

    def _below(self, points: Array, at: float) -> Array:
        """Return p(variable < point), with the mass at the point itself if at is ∞ and without it if at is −∞."""
        mean, deviation = self._single()
        centred = points[..., np.newaxis] - mean
        beyond = np.where(centred == 0, at, np.copysign(np.inf, centred))
        z = np.divide(centred, deviation, out=beyond, where=deviation > 0)
        below: Array = ndtr(z) @ self.weights
        return below

    def quantile(self, q: float) -> float:
        """Return x with p(variable ≤ x) = q, by bisection; ValueError unless q is between 0 and 1."""
        if not 0 < q < 1:
            raise ValueError(f"q is {q!r}; it must be between 0 and 1")
        mean, deviation = self._single()
        used = self.weights > 0
        low = float((mean - 40 * deviation)[used].min())
        high = float((mean + 40 * deviation)[used].max())
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.cdf(middle) < q else (low, middle)
        return high

    def _single(self) -> tuple[Array, Array]:
        if len(self.variables) != 1:
            raise ValueError(f"{heading(self.variables)} has several variables; take the marginal of one first")
        return self.means[:, 0], np.sqrt(self.covariances[:, 0, 0])

    def to_dict(self) -> dict[str, float]:
        """Return the mean and the standard deviation of a single variable."""
        self._single()
        return {"mean": self.mean, "standard deviation": self.standard_deviation}

    def row(self) -> list[list[str]]:
        """Return a line of text for each variable: mean, standard deviation and the central 95 %."""
        lines = []
        for name in self.variables:
            one = self.marginal(name)
            cells = (one.mean, one.standard_deviation, one.quantile(0.025), one.quantile(0.975))
            lines.append([name, *(f"{cell:.6g}" for cell in cells)])
        return lines

    def __repr__(self) -> str:
        title = heading(self.variables, evidence_words(self.evidence))
        rows = [["variable", "mean", "sd", "2.5 %", "97.5 %"], *self.row()]
        n = int((self.weights > 0).sum())
        of = "a normal density" if n == 1 else f"a mixture of {n:,} normal densities"
        return "\n".join([title, *aligned(rows, 1), of])


@dataclass(frozen=True, eq=False)
class MixedDistribution:
    """p(discrete, continuous | evidence): a density of the continuous variables for each configuration of the others.

    An index is a state, or a tuple of states in the order of the discrete variables; it gives the density
    p(continuous | these states, evidence).

    Attributes
    ----------
    discrete : Distribution
        p(discrete variables | evidence).
    densities : dict from tuple of int to GaussianMixture
        By the codes of the states.
    """

    discrete: Distribution
    densities: dict[tuple[int, ...], GaussianMixture]

    def __getitem__(self, key: Any) -> GaussianMixture:
        place = self.discrete._index(key)
        return self.densities[tuple(int(k) for k in place)]

    def _rows(self) -> Iterator[list[str]]:
        for place, density in self.densities.items():
            states = [str(known[k]) for known, k in zip(self.discrete.states.values(), place, strict=True)]
            for line in density.row():
                yield [*states, six_digits(float(self.discrete.probabilities[place])), *line]

    def __repr__(self) -> str:
        names = tuple(self.discrete.states)
        continuous = next(iter(self.densities.values())).variables
        title = heading((*names, *continuous), evidence_words(self.discrete.evidence))
        rows = [[*names, "probability", "variable", "mean", "sd", "2.5 %", "97.5 %"], *self._rows()]
        return "\n".join([title, *aligned(rows, len(names))])


def _log_normal(centred: Array, covariance: Array) -> Array:
    """Return log N(centred; 0, covariance) of rows (n, d)."""
    d = covariance.shape[0]
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # a point mass in some direction
        at = np.abs(centred).max(axis=1) == 0
        return np.where(at, np.inf, -np.inf)
    z = np.linalg.solve(root, centred.T)
    log_determinant = 2.0 * np.log(np.diag(root)).sum()
    density: Array = -0.5 * ((z**2).sum(axis=0) + log_determinant + d * math.log(2.0 * math.pi))
    return density
