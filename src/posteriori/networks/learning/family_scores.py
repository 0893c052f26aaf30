"""Scores of families, a variable with its parents, and their priors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import joblib
import numpy as np
from scipy.special import multigammaln

from posteriori import kernels
from posteriori.networks.learning.family_statistics import CaseRows, FamilyMoments, regression
from posteriori.statistics.row_records import DistinctRows
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Column, quote


class Score(Protocol):
    """A decomposable score, Σ_v score(v, parents of v), in nats; higher is better."""

    def penalty(self, n: float) -> float:
        """Return the penalty per free parameter, given the weight of all rows."""

    @property
    def pseudo_rows(self) -> float:
        """The equivalent sample size of a Bayesian score; 0 for a penalised log-likelihood.

        A score whose prior grows with the table has an attribute ``cell_prior`` instead: the pseudo-count of each cell.
        """


@dataclass(frozen=True)
class BIC:
    r"""The Bayesian information criterion, as a score to maximise.

    .. math::
        \sum_v \Bigl( \sum_{a,k} n_{vak} \log \frac{n_{vak}}{n_{va}} - \tfrac{1}{2} \log n \cdot q_v (K_v - 1) \Bigr)

    with q_v configurations a of the parents and K_v states k. Many programs report −2 times this number as BIC.
    Equivalent graphs, which imply the same independences, have the same score.

    References
    ----------
    Schwarz (1978), Estimating the dimension of a model, Annals of Statistics 6.
    """

    pseudo_rows = 0.0

    def penalty(self, n: float) -> float:
        """Return ½·log n."""
        return 0.5 * math.log(max(n, 1.0))


@dataclass(frozen=True)
class AIC:
    r"""Akaike's information criterion, as a score to maximise.

    .. math:: \sum_v \Bigl( \sum_{a,k} n_{vak} \log \frac{n_{vak}}{n_{va}} - q_v (K_v - 1) \Bigr)

    References
    ----------
    Akaike (1974), A new look at the statistical model identification, IEEE Transactions on Automatic Control 19.
    """

    pseudo_rows = 0.0

    def penalty(self, n: float) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class BDeu:
    r"""The log marginal likelihood under Dirichlet priors that give equivalent graphs the same score.

    .. math::
        \sum_v \sum_a \Bigl( \log \frac{\Gamma(s / q_v)}{\Gamma(n_{va} + s / q_v)}
        + \sum_k \log \frac{\Gamma(n_{vak} + s / (q_v K_v))}{\Gamma(s / (q_v K_v))} \Bigr)

    Parameters
    ----------
    equivalent_sample_size : float, default 10
        s in pseudo-rows, > 0. A larger s leads to denser graphs.

    References
    ----------
    Heckerman, Geiger & Chickering (1995), Learning Bayesian networks: the combination of knowledge and statistical
    data, Machine Learning 20, equation 28.
    """

    equivalent_sample_size: float = 10.0

    def __post_init__(self) -> None:
        require_sample_size(self.equivalent_sample_size)

    @property
    def pseudo_rows(self) -> float:
        """Return the equivalent sample size."""
        return float(self.equivalent_sample_size)

    def penalty(self, n: float) -> float:
        """Return 0: the marginal likelihood already penalises parameters."""
        return 0.0


@dataclass(frozen=True)
class K2:
    r"""The log marginal likelihood under uniform priors, one pseudo-count per cell; equivalent graphs may differ in it.

    .. math::
        \sum_v \sum_a \Big( \log \frac{(K_v - 1)!}{(n_{va} + K_v - 1)!} + \sum_k \log n_{vak}! \Big)

    References
    ----------
    Cooper & Herskovits (1992), A Bayesian method for the induction of probabilistic networks from data, Machine
    Learning 9, equation 5.
    """

    pseudo_rows = 0.0
    cell_prior = 1.0

    def penalty(self, n: float) -> float:
        """Return 0: the marginal likelihood already penalises parameters."""
        return 0.0


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


def require_sample_size(size: Any) -> None:
    """Raise ValueError unless an equivalent sample size is a positive number of rows."""
    if isinstance(size, bool) or not isinstance(size, int | float | np.number) or not 0 < size < math.inf:
        raise ValueError(f"equivalent_sample_size is {size!r}; it must be a number of rows above 0")


_BY_NAME: dict[str, Score] = {"bic": BIC(), "aic": AIC(), "bdeu": BDeu(), "k2": K2(), "bge": BGe()}


def as_score(score: Any) -> Score:
    """Return the score of this name, or the object itself; ValueError or TypeError for others."""
    if isinstance(score, str):
        if score.lower() not in _BY_NAME:
            raise ValueError(f"score is {score!r}; {closest(score, _BY_NAME)}")
        return _BY_NAME[score.lower()]
    if not (hasattr(score, "penalty") and hasattr(score, "pseudo_rows")):
        raise TypeError(f"score is {score!r}; give 'bic', 'aic', 'bdeu', 'k2', 'bge' or BDeu(equivalent_sample_size=…)")
    known: Score = score
    return known


MOST_CELLS = 1 << 22  # of a family: tables beyond this have more cells than rows to fill them
_WORTH_A_THREAD = 1 << 19  # increments
_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class CategoricalScores:
    """The scores of families on given rows, each counted once when it is first needed.

    Attributes
    ----------
    columns : ndarray (d + 1, m)
        The codes of the distinct rows, one row of the array per variable, and last a variable with a single state.
    weight : ndarray (m,)
        Integers if all weights are whole numbers: they add faster.
    cardinalities : ndarray (d + 1,)
    penalty, pseudo_rows, cell_prior : float
        See `Score`.
    n_jobs : int
    """

    columns: Array
    weight: Array
    cardinalities: Array
    penalty: float
    pseudo_rows: float
    cell_prior: float = 0.0
    n_jobs: int = 1
    _known: dict[tuple[int, int], float] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, rows: DistinctRows, score: Score, n_jobs: int | None = None) -> CategoricalScores:
        """Return the scores on rows without missing cells."""
        codes, weight = rows.codes.values, rows.weight
        columns = np.zeros((codes.shape[1] + 1, len(codes)), codes.dtype)
        np.subtract(codes.T, 1, out=columns[:-1])
        n = float(weight.sum())
        if n < 2**31 and (weight == np.floor(weight)).all():
            weight = weight.astype(np.int32)
        jobs = joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
        cardinalities = np.array([*rows.cardinalities, 1], np.int64)
        cell_prior = float(getattr(score, "cell_prior", 0.0))
        return cls(columns, weight, cardinalities, score.penalty(n), score.pseudo_rows, cell_prior, jobs)

    @property
    def n_variables(self) -> int:
        """The number of variables, d."""
        return len(self.cardinalities) - 1

    @property
    def n_counted(self) -> int:
        """The number of families counted so far."""
        return len(self._known)

    def family(self, v: int, parents: Sequence[int]) -> float:
        """Return the score of a variable with its parents; −inf if its table has more than MOST_CELLS cells."""
        # A root gets the variable of one state as its parent, so that the kernel needs no special case.
        *rest, last = sorted(parents) or [self.n_variables]
        return float(self.with_each(v, rest, [last])[0])

    def graph(self, parents: Sequence[Sequence[int]]) -> float:
        """Return the score of the graph in which each variable has these parents."""
        return math.fsum(self.family(v, family) for v, family in enumerate(parents))

    def with_each(self, v: int, parents: Sequence[int], added: Sequence[int]) -> Array:
        """Return the scores of a variable with its parents and one more parent, for each of the added parents.

        The kernel shares one pass over the rows between all of them. A family is keyed by its parents as a bit set.
        """
        rest = sum(1 << u for u in parents)
        keys = [(v, rest | 1 << u) for u in added]
        configurations = math.prod(int(self.cardinalities[u]) for u in parents)
        room = MOST_CELLS // (configurations * int(self.cardinalities[v]))
        for key, u in zip(keys, added, strict=True):
            if self.cardinalities[u] > room:
                self._known.setdefault(key, -math.inf)
        absent = [(key, u) for key, u in zip(keys, added, strict=True) if key not in self._known]
        if absent:
            scores = self._counted(v, parents, configurations, np.array([u for _, u in absent], np.int64))
            self._known.update((key, score) for (key, _), score in zip(absent, scores.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])

    def _counted(self, v: int, parents: Sequence[int], configurations: int, added: Array) -> Array:
        if not self.cell_prior:
            return self._counted_with(self.pseudo_rows, v, parents, configurations, added)
        out = np.empty(len(added))
        widths = self.cardinalities[added]
        for width in np.unique(widths).tolist():  # pseudo-rows of a table are the same for candidates of one width
            pseudo_rows = self.cell_prior * configurations * width * int(self.cardinalities[v])
            out[widths == width] = self._counted_with(pseudo_rows, v, parents, configurations, added[widths == width])
        return out

    def _counted_with(
        self, pseudo_rows: float, v: int, parents: Sequence[int], configurations: int, added: Array
    ) -> Array:
        encoded = np.empty(len(self.weight), np.uint32)
        kernels.encode_configurations(self.columns, self.cardinalities, np.array([*parents, v], np.int64), encoded)
        out = np.empty(len(added))

        def work(candidates: slice) -> None:
            kernels.score_families(
                self.columns, self.weight, self.cardinalities, encoded, configurations, int(self.cardinalities[v]),
                added[candidates], self.penalty, pseudo_rows, out[candidates],
            )  # fmt: skip

        n_parts = min(self.n_jobs, 1 + len(encoded) * len(added) // _WORTH_A_THREAD, len(added))
        if n_parts == 1:
            work(slice(None))
            return out
        size = -(-len(added) // n_parts)
        with ThreadPoolExecutor(n_parts) as threads:
            list(threads.map(work, [slice(start, start + size) for start in range(0, len(added), size)]))
        return out


@dataclass(frozen=True)
class FamilyScores:
    """The scores of families on complete rows, each computed once, when it is first needed.

    Attributes
    ----------
    columns : tuple of Column (V,)
    rows : CaseRows
    score : Score
    """

    columns: tuple[Column, ...]
    rows: CaseRows
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
        return len(self._known) if self._place else self._categories.n_counted

    @cached_property
    def _place(self) -> dict[int, int]:
        """The position of each variable among those of its kind; empty if all are discrete."""
        if all(column.kind != "continuous" for column in self.columns):
            return {}
        numbers = [v for v, column in enumerate(self.columns) if column.kind == "continuous"]
        others = [v for v, column in enumerate(self.columns) if column.kind != "continuous"]
        return {v: k for group in (numbers, others) for k, v in enumerate(group)}

    @cached_property
    def _categories(self) -> CategoricalScores:
        return CategoricalScores.of(self.rows.categories, self.score, self.n_jobs)

    @cached_property
    def _codes(self) -> Array:
        return np.ascontiguousarray(self.rows.codes.T).astype(np.int64) - 1

    @cached_property
    def _total(self) -> float:
        return float(self.rows.weight.sum())

    def family(self, v: int, parents: Sequence[int]) -> float:
        """Return the score of a variable with its parents; −inf for a discrete child of a continuous variable."""
        if not self._place:
            return self._categories.family(v, parents)
        key = (v, sum(1 << u for u in parents))
        if key not in self._known:
            self._known[key] = self._scored(v, sorted(parents))
        return self._known[key]

    def graph(self, parents: Sequence[Sequence[int]]) -> float:
        """Return the score of the graph in which each variable has these parents."""
        return math.fsum(self.family(v, family) for v, family in enumerate(parents))

    def with_each(self, v: int, parents: Sequence[int], added: Sequence[int]) -> Array:
        """Return the scores of a variable with its parents and one more parent, for each of the added parents."""
        if not self._place:
            return self._categories.with_each(v, parents, added)
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
        moments = FamilyMoments.of(configuration, (size,), self.rows.numbers[:, members], self.rows.weight)
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


def complete_scores(
    columns: tuple[Column, ...], rows: CaseRows, score: Score, n_jobs: int | None, purpose: str
) -> FamilyScores:
    """Return the scores of families.

    Raises
    ------
    ValueError
        A cell is missing: families with and without its column would be compared on different rows. Or the score takes
        columns of another kind.
    """
    require_kinds(score, columns)
    if rows.has_gaps:
        discrete = [column.name for column in columns if column.kind != "continuous"]
        numeric = [column.name for column in columns if column.kind == "continuous"]
        gaps = {*np.array(discrete, object)[(rows.codes == 0).any(axis=0)]}
        gaps |= {*np.array(numeric, object)[np.isnan(rows.numbers).any(axis=0)]} if numeric else set()
        names = quote([column.name for column in columns if column.name in gaps])
        raise ValueError(
            f"{names} lack cells, but {purpose} compares families on the same complete rows; drop such rows, fill the "
            "cells, or use method='chow_liu' or 'pc', which test variables on the rows that have them"
        )
    return FamilyScores(columns, rows, score, n_jobs)


def require_kinds(score: Score, columns: Sequence[Column]) -> None:
    """Raise ValueError if a score does not take columns of these kinds."""
    n_numeric = sum(column.kind == "continuous" for column in columns)
    is_normal = getattr(score, "is_normal", False)
    if is_normal and n_numeric < len(columns):
        raise ValueError("the score BGe takes measurements only; use 'bic' for columns with states")
    if n_numeric and not is_normal and score.penalty(3.0) == 0:
        raise ValueError(f"score is {score!r}, which takes categories only; use 'bic', 'aic' or 'bge'")
