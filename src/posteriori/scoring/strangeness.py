"""How strange rows are under a model: log p(x), and its rank among rows drawn from the model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from posteriori.model import GenerativeModel, Posterior, draw_rows
from posteriori.sources import Source
from posteriori.support.typing import Array
from posteriori.tables import Batch

_DRAWN = 1000  # rows that a row is compared with


@dataclass(frozen=True)
class Strangeness:
    """Ranks rows by log p(x) among rows that the model draws, with the same cells missing.

    The strangeness of a row x is the share of rows x' drawn from the model with p(x') > p(x), where both densities are
    over the cells that x has. It is uniform on [0, 1] for rows from the model: a value of 0.999 is reached by one row
    in a thousand. log p(x) itself depends on the units of the columns and on which cells are missing.

    The model of a pool is the mixture of its members, whose shares are their weights divided by the sum of the weights.
    """

    posterior: Posterior
    drawn: Batch  # rows drawn from the model, with a fixed seed
    _sorted: dict[bytes, Array] = field(
        default_factory=dict, compare=False
    )  # log p of the drawn rows, by missing cells

    @classmethod
    def of(cls, posterior: Posterior) -> Strangeness:
        """Draw the rows to compare with.

        Raises
        ------
        ValueError
            The model has no log p(x).
        """
        if not posterior.has_density:
            raise ValueError(
                "the model has no log p(x), because not every model of the counts of words is a density; use naive "
                "Bayes with multinomial counts for the strangeness of rows"
            )
        return cls(posterior, _draw(posterior, np.random.default_rng(0)))

    def log_density(self, batch: Batch) -> Array:
        """Return log p(x) in nats, (n,), as `score_samples`."""
        return self.posterior.log_evidence(batch)

    def ranks(self, batch: Batch, log_density: Array) -> Array:
        """Return the strangeness of rows, (n,) in [0, 1], given their log densities."""
        numbers, categories = _cells(batch)
        missing = np.concatenate([np.isnan(numbers), categories == 0], axis=1)
        ranks = np.empty(len(batch))
        patterns, of_row = np.unique(missing, axis=0, return_inverse=True)
        for position, pattern in enumerate(patterns):
            rows = np.flatnonzero(of_row.reshape(-1) == position)
            reference = self._reference(pattern)
            above = len(reference) - np.searchsorted(reference, log_density[rows], side="right")
            ranks[rows] = above / len(reference)
        return ranks

    def of_rows(self, source: Source) -> tuple[Array, Array]:
        """Return log p(x) and the strangeness of all rows of a source, (n,) each."""

        def both(batch: Batch) -> Array:
            log_density = self.log_density(batch)
            return np.column_stack([log_density, self.ranks(batch, log_density)])

        log_density, ranks = source.map(both).T
        return log_density, ranks

    def _reference(self, missing: Array) -> Array:
        """Return the sorted log densities of the drawn rows without some of their cells."""
        # A missing cell that is informative is a value of its own, which the model has drawn.
        if self._models_missingness:
            missing = np.zeros_like(missing)
        key = missing.tobytes()
        if key not in self._sorted:
            numbers, categories = (cells.copy() for cells in _cells(self.drawn))
            numbers[:, missing[: numbers.shape[1]]] = np.nan
            categories[:, missing[numbers.shape[1] :]] = 0
            schema = self.drawn.schema
            self._sorted[key] = np.sort(self.log_density(Batch.of(schema, 0, numbers, categories, {})))
        return self._sorted[key]

    @property
    def _models_missingness(self) -> bool:
        return any(block.models_missingness for model in self.posterior.models for block in model.blocks)


def _draw(posterior: Posterior, rng: np.random.Generator) -> Batch:
    schema = posterior.schema
    numbers = np.full((_DRAWN, len(schema.of_kind("continuous"))), np.nan)
    categories = np.zeros((_DRAWN, len(schema.of_kind("categorical"))), schema.code_dtype)
    member = rng.choice(len(posterior.models), size=_DRAWN, p=posterior.shares)
    for position, model in enumerate(posterior.models):
        rows = np.flatnonzero(member == position)
        columns = _rows_of(model, len(rows), rng) if len(rows) else []
        for cells, kind in ((numbers, "continuous"), (categories, "categorical")):
            for place, j in enumerate(schema.of_kind(kind) if columns else ()):  # type: ignore[arg-type]
                cells[rows, place] = columns[j]
    return Batch.of(schema, 0, numbers, categories, {})


def _rows_of(model: GenerativeModel, n: int, rng: np.random.Generator) -> list[Array]:
    prior = np.exp(model.log_prior)
    return draw_rows(model, rng.choice(len(prior), size=n, p=prior / prior.sum()), rng)


def _cells(batch: Batch) -> tuple[Array, Array]:
    """Return the numbers and the codes of the categorical columns, without those of binned columns."""
    coded, categorical = batch.schema.coded, batch.schema.of_kind("categorical")
    return batch.numbers.values, batch.codes.values[:, [coded.index(j) for j in categorical]]
