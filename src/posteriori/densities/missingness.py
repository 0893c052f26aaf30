"""Informative missingness: p(m | z) of the missingness indicators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity, LinearTerms
from posteriori.statistics.counts import Counts, PresenceCounts, slot_offsets
from posteriori.statistics.moments import less
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.support.checks import check_pseudo_count
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Mixed
from posteriori.tables.messages import quote
from posteriori.tables.schema import CellKind, Column


@dataclass(frozen=True)
class MissingnessParameters(WithAxes):
    """log p(m_j | z), m_j = 1 where cell j is missing."""

    # log_missing, log_present (Z, d): in nats; both 0 for a column without a factor
    log_missing: Annotated[Array, Axes("the log-probabilities of missing cells", "z", "column", low=-np.inf, high=0.0)]
    log_present: Annotated[Array, Axes("the log-probabilities of present cells", "z", "column", low=-np.inf, high=0.0)]

    @cached_property
    def modelled_columns(self) -> Array:
        """Which columns have a factor, (d,)."""
        return np.asarray(((self.log_missing < 0) | (self.log_present < 0)).any(axis=0))

    @cached_property
    def table(self) -> Array:
        """Both side by side, (Z, 2·d), in the layout of the kernel: per column missing, then present."""
        return np.stack([self.log_missing, self.log_present], axis=2).reshape(len(self.log_missing), -1)

    def only(self, positions: Sequence[int]) -> MissingnessParameters:
        """Return the parameters with factors for these columns only."""
        kept = np.isin(np.arange(self.log_missing.shape[1]), positions)
        return MissingnessParameters(np.where(kept, self.log_missing, 0.0), np.where(kept, self.log_present, 0.0))


@dataclass(frozen=True)
class Missingness(BaseDensity):
    r"""p(m_j = 1 | z) = (n_zj + alpha) / (n_z + 2·alpha), n_zj the weight of the rows of z in which cell j is missing.

    It is a factor in addition to the densities of the cells of the same columns:

    .. math:: p(x_j, m_j \mid z) = p(m_j \mid z) \, p(x_j \mid z)^{1 - m_j}

    Given z, the indicators are assumed independent of the value of their own cell and of all other cells. A column in
    which no cell or every cell is missing has no factor. (If all missing cells of a column are in rows without label,
    the factor appears at the first step of EM. The likelihood may fall there, because it then covers more data.)

    Parameters
    ----------
    alpha : float, default 1.0
        Beta pseudo-count, ≥ 0, added to the missing and to the present cells of each component. If it is 0 and a
        component has no row, the pooled shares of all components are used.

    References
    ----------
    Rubin, Inference and missing data, Biometrika 63 (1976). Little & Rubin, Statistical Analysis with Missing Data, 2nd
    ed., chapter 15.
    """

    alpha: float = 1.0
    name = "missingness"
    kind: ClassVar[CellKind] = "mixed"
    sufficient_statistics = PresenceCounts
    fitted = MissingnessParameters
    support = "a cell, or none"
    models_missingness = True

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    def out_of_support(self, tile: Mixed) -> Array:
        """Return which cells the density cannot produce: none."""
        return np.zeros(tile.present.shape, np.bool_)

    def estimate(self, statistics: Counts) -> MissingnessParameters:
        """Return the smoothed shares."""
        present, missing = statistics.observed(), statistics.table[:, statistics.offsets[:-1]]
        modelled_columns = present.any(axis=0) & missing.any(axis=0)
        counts = np.stack([missing, present])
        pooled = counts.sum(axis=1, keepdims=True)
        total = counts.sum(axis=0) + 2.0 * self.alpha
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(total > 0, (counts + self.alpha) / total, pooled / pooled.sum(axis=0))
            log_missing, log_present = np.log(np.where(modelled_columns, shares, 1.0))
        return MissingnessParameters(log_missing, log_present)

    def log_density(self, parameters: MissingnessParameters, tile: Mixed) -> Array:
        """Return log p(m | z) in nats, (n, Z)."""
        present = tile.present
        out = np.zeros((len(present), len(parameters.table)))
        offsets = slot_offsets((1,) * present.shape[1])
        kernels.add_categorical(present.astype(np.uint8), offsets, parameters.table, out)
        return out

    def log_factors(self, parameters: MissingnessParameters, tile: Mixed) -> Array:
        """Return log p(m_j | z) in nats, (n, Z, d)."""
        present = tile.present[:, np.newaxis, :]
        return np.where(present, parameters.log_present, parameters.log_missing)

    def left_out(
        self, parameters: MissingnessParameters, statistics: Counts, tile: Mixed, assignment: Assignment
    ) -> Array:
        """Return log p(m_j | z) in nats, (n, Z, d), of each row under the shares without it."""
        del parameters
        here = tile.present
        n_rows, n_components = len(here), len(statistics.table)
        removed = np.zeros((n_rows, n_components, 1))
        removed[np.arange(n_rows), assignment.component, 0] = assignment.weight
        cells = np.stack([~here, here])[:, :, np.newaxis, :]
        counts = np.stack([statistics.table[:, statistics.offsets[:-1]], statistics.observed()])[:, np.newaxis]
        counts = less(np.broadcast_to(counts, (2, n_rows, *counts.shape[2:])), removed * cells)
        pooled = counts.sum(axis=2, keepdims=True)
        total = counts.sum(axis=0) + 2.0 * self.alpha
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(total > 0, (counts + self.alpha) / total, pooled / pooled.sum(axis=0))
            log_shares = np.log(np.where((pooled > 0).all(axis=0), shares, 1.0))
        out: Array = np.where(here[:, np.newaxis, :], log_shares[1], log_shares[0])
        return out

    def sample(self, parameters: MissingnessParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw which cells are missing, (n, d) booleans."""
        share = np.where(parameters.modelled_columns, np.exp(parameters.log_missing), 0.0)
        return rng.random((len(component), share.shape[1])) < share[component]

    def n_parameters(self, parameters: MissingnessParameters) -> int:
        """Return Z for each column that has a factor."""
        return len(parameters.log_missing) * int(parameters.modelled_columns.sum())

    def linear_terms(self, parameters: MissingnessParameters, columns: Sequence[Column]) -> LinearTerms:
        """Return Σ log p(m_j = 0 | z) as the bias, because a linear form is that of a complete row, and no terms."""
        log_present = parameters.log_present
        if not np.isfinite(log_present).all():
            always = [column.name for column, p in zip(columns, log_present.T, strict=True) if not np.isfinite(p).all()]
            raise ValueError(f"{quote(always)} is always missing in a class; set alpha > 0")
        return LinearTerms(log_present.sum(axis=1), [])
