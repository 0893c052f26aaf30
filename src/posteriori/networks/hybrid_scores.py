"""Scores of families with continuous variables: BIC and AIC of conditional linear Gaussians, and BGe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import multigammaln

from posteriori.networks.family_moments import Moments
from posteriori.networks.hybrid_learning import regression
from posteriori.networks.scores import MOST_CELLS, FamilyScores, Score
from posteriori.statistics.distinct_rows import DistinctRows
from posteriori.tables import Assignment, Codes, Column
from posteriori.typing import Array

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class HybridRows:
    """Rows of codes and numbers, all in memory.

    Attributes
    ----------
    cardinalities : tuple of int
        Of the discrete variables.
    codes : ndarray (n, number of discrete variables)
        0 is a missing cell.
    numbers : ndarray (n, number of continuous variables)
    weight : ndarray (n,)
    """

    cardinalities: tuple[int, ...]
    codes: Array
    numbers: Array
    weight: Array

    @classmethod
    def of(cls, tile: Codes, numbers: Array, weight: Array) -> HybridRows:
        """Return the rows of a tile; rows of weight 0 are left out."""
        kept = weight > 0
        return cls(tile.cardinalities, tile.values[kept], numbers[kept], weight[kept])

    def __add__(self, other: HybridRows) -> HybridRows:
        return HybridRows(
            self.cardinalities,
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.weight, other.weight]),
        )

    @property
    def has_gaps(self) -> bool:
        """Whether a cell is missing."""
        return bool((self.codes == 0).any() or np.isnan(self.numbers).any())

    @property
    def categories(self) -> DistinctRows:
        """The distinct rows of the discrete variables."""
        assignment = Assignment(np.zeros(len(self.codes), np.int32), self.weight, 1)
        return DistinctRows.of(Codes(self.codes, self.cardinalities), assignment)

    def covariance(self) -> tuple[Array, float]:
        """Return the covariance of the continuous variables, and the weight of all rows."""
        zeros = np.zeros(len(self.numbers), np.int64)
        moments = Moments.of(zeros, (), self.numbers, self.weight)
        return moments.scatter / float(moments.weight), float(moments.weight)


@dataclass(frozen=True)
class BGe:
    r"""The log marginal likelihood of normal variables under a normal-Wishart prior; equal for equivalent graphs.

    The prior mean is that of the data, its precision α_μ, α_w = d + α_μ + 1, and T = t·I with t = α_μ(α_w − d − 1) /
    (α_μ + 1), after each variable is divided by its standard deviation.

    Parameters
    ----------
    prior_rows : float, default 1
        α_μ, > 0.

    References
    ----------
    Geiger & Heckerman (2002), Parameter priors for directed acyclic graphical models, Annals of Statistics 30;
    Kuipers, Moffa & Heckerman (2014), Addendum, Annals of Statistics 42.
    """

    prior_rows: float = 1.0

    pseudo_rows = 0.0
    is_normal = True

    def __post_init__(self) -> None:
        if isinstance(self.prior_rows, bool) or not 0 < self.prior_rows < math.inf:
            raise ValueError(f"prior_rows is {self.prior_rows!r}; it must be a number of rows above 0")

    def penalty(self, n: float) -> float:
        """Return 0: the marginal likelihood already penalises parameters."""
        return 0.0


@dataclass(frozen=True)
class HybridScores:
    """The scores of families on complete rows, each computed once, with the interface of `FamilyScores`.

    Attributes
    ----------
    columns : tuple of Column (V,)
    rows : HybridRows
    score : Score
    """

    columns: tuple[Column, ...]
    rows: HybridRows
    score: Score
    n_jobs: int | None = None
    _known: dict[tuple[int, int], float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.columns)

    @property
    def n_counted(self) -> int:
        """The number of families computed so far."""
        return len(self._known)

    @cached_property
    def _place(self) -> dict[int, int]:
        """The position of each variable among those of its kind."""
        numbers = [v for v, column in enumerate(self.columns) if column.kind == "continuous"]
        others = [v for v, column in enumerate(self.columns) if column.kind != "continuous"]
        return {v: k for group in (numbers, others) for k, v in enumerate(group)}

    @cached_property
    def _categories(self) -> FamilyScores:
        return FamilyScores.of(self.rows.categories, self.score, self.n_jobs)

    @cached_property
    def _codes(self) -> Array:
        return np.ascontiguousarray(self.rows.codes.T).astype(np.int64) - 1

    @cached_property
    def _total(self) -> float:
        return float(self.rows.weight.sum())

    def family(self, v: int, parents: Sequence[int]) -> float:
        """Return the score of a variable with its parents; −inf for a discrete child of a continuous variable."""
        key = (v, sum(1 << u for u in parents))
        if key not in self._known:
            self._known[key] = self._scored(v, sorted(parents))
        return self._known[key]

    def graph(self, parents: Sequence[Sequence[int]]) -> float:
        """Return the score of the graph in which each variable has these parents."""
        return math.fsum(self.family(v, family) for v, family in enumerate(parents))

    def with_each(self, v: int, parents: Sequence[int], added: Sequence[int]) -> Array:
        """Return the scores of a variable with its parents and one more parent, for each of the added parents."""
        return np.array([self.family(v, [*parents, u]) for u in added])

    def _scored(self, v: int, parents: list[int]) -> float:
        numbers = [u for u in parents if self.columns[u].kind == "continuous"]
        others = [u for u in parents if self.columns[u].kind != "continuous"]
        if self.columns[v].kind != "continuous":
            return -math.inf if numbers else self._categories.family(self._place[v], [self._place[u] for u in others])
        if getattr(self.score, "is_normal", False):
            return self._marginal([self._place[u] for u in [*numbers, v]]) - self._marginal(
                [self._place[u] for u in numbers]
            )
        shape = tuple(self.columns[u].cardinality for u in others)
        size = math.prod(shape)
        if size > MOST_CELLS // (len(numbers) + 2):
            return -math.inf
        configuration = np.zeros(len(self.rows.weight), np.int64)
        for u, cardinality in zip(others, shape, strict=True):
            configuration = configuration * cardinality + self._codes[self._place[u]]
        members = [self._place[u] for u in [*numbers, v]]
        moments = Moments.of(configuration, (size,), self.rows.numbers[:, members], self.rows.weight)
        intercept, coefficients, variance = regression(moments)
        contrast = np.concatenate([-coefficients, np.ones((size, 1))], axis=1)
        off = np.einsum("qi,qi->q", contrast, moments.mean) - intercept
        square = np.einsum("qi,qij,qj->q", contrast, moments.scatter, contrast) + moments.weight * off**2
        log_likelihood = -0.5 * float((moments.weight * (np.log(variance) + _LOG_2PI) + square / variance).sum())
        return log_likelihood - self.score.penalty(self._total) * size * (len(numbers) + 2)

    @cached_property
    def _scatter(self) -> Array:
        covariance, n = self.rows.covariance()
        deviation = np.sqrt(np.diag(covariance))
        deviation = np.where(deviation > 0, deviation, 1.0)
        scatter: Array = covariance / np.outer(deviation, deviation) * n
        return scatter

    def _marginal(self, members: list[int]) -> float:
        """Return log p(data of some variables) under the prior of BGe (Kuipers et al. 2014, equation A.7)."""
        part = len(members)
        if not part:
            return 0.0
        d, n, a_mu = self.rows.numbers.shape[1], self._total, getattr(self.score, "prior_rows", 1.0)
        a_w = d + a_mu + 1.0
        t = a_mu * (a_w - d - 1.0) / (a_mu + 1.0)
        freedom = a_w - d + part
        posterior = t * np.eye(part) + self._scatter[np.ix_(members, members)]
        return float(
            0.5 * part * (math.log(a_mu) - math.log(n + a_mu))
            + multigammaln(0.5 * (n + freedom), part)
            - multigammaln(0.5 * freedom, part)
            - 0.5 * part * n * math.log(math.pi)
            + 0.5 * freedom * part * math.log(t)
            - 0.5 * (n + freedom) * np.linalg.slogdet(posterior)[1]
        )
