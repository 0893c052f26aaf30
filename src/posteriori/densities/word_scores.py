"""What the densities of counts share: sums of scores of words, over the rows of bags or of dense columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.base import BaseDensity
from posteriori.invariants import check_pseudo_count
from posteriori.kernels.compiling import runs_compiled
from posteriori.kernels.few_rows import LANES
from posteriori.statistics.word_counts import bags_of, n_columns_of
from posteriori.tables.bags import LARGEST_COUNT, Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import CellKind
from posteriori.typing import Array


def invalid_counts(tile: Bags | Numbers, *, whole: bool = False) -> Array:
    """Return which columns of each row hold a negative or infinite count, or a fraction if counts are whole: (n, d)."""
    if isinstance(tile, Bags) and tile.are_counts and not whole:
        return np.zeros((len(tile), 1), np.bool_)
    counts = tile.counts if isinstance(tile, Bags) else tile.values
    invalid = (counts < 0) | (counts > LARGEST_COUNT)
    if whole:
        invalid |= ~np.isnan(counts) & (counts != np.floor(counts))
    if isinstance(tile, Numbers):
        return np.asarray(invalid)
    rows = np.zeros((len(tile), 1), np.bool_)
    if invalid.any():
        rows[tile.row_of_cell[invalid]] = True
    return rows


@dataclass(frozen=True)
class WordScores:
    """Scores of words, (Z, V), which bags of words add up.

    Attributes
    ----------
    scores : ndarray (Z, V)
    """

    scores: Array

    @cached_property
    def by_word(self) -> Array:
        """The scores with those of a word side by side, padded as `add_word_scores` reads them."""
        n_components, n_words = self.scores.shape
        if n_components <= 2:
            return np.ascontiguousarray(self.scores.T)
        padded = np.zeros((n_words, -(-n_components // LANES) * LANES))
        padded[:, :n_components] = self.scores.T
        return padded.reshape(-1, LANES)

    def sums(self, tile: Bags | Numbers) -> Array:
        """Return Σ_j x_j·score_j per row, (n, Z). O(stored cells · Z)."""
        bags = bags_of(tile)
        if not runs_compiled(len(bags)):
            return bags.sums_per_row(self.of_cells(bags))
        from posteriori.kernels.word_scores import add_word_scores  # imported here, because it imports Numba

        out = np.zeros((len(bags), len(self.scores)))
        add_word_scores(bags.starts, bags.words, bags.counts, self.by_word, out)
        return out

    def of_cells(self, bags: Bags) -> Array:
        """Return x·score of the word of each stored cell, (m, Z)."""
        out = np.empty((len(bags.words), len(self.scores)))
        kernels.write_word_scores(bags.words, bags.counts, self.scores, out)
        return out


def by_column(tile: Bags | Numbers, of_cells: Array) -> Array:
    """Return values of the stored cells, (m, Z), summed over each column of the table, (n, Z, d)."""
    if isinstance(tile, Bags):
        return tile.sums_per_row(of_cells)[:, :, np.newaxis]
    n, d = tile.values.shape
    return np.ascontiguousarray(of_cells.reshape(n, d, -1).transpose(0, 2, 1))


def sum_of_present(of_words: Array, whole: Array, bags: Bags) -> Array:
    """Return the sum of values of words, (Z, V), over those whose count is not missing, (n, Z); whole is over all."""
    total = np.tile(whole, (len(bags), 1))
    if has_missing(bags):
        missing = np.zeros_like(total)
        kernels.add_missing_words(bags.starts, bags.words, bags.counts, np.ascontiguousarray(of_words.T), missing)
        total = np.maximum(total - missing, 0.0)
    return total


def has_missing(bags: Bags) -> bool:
    """Return whether the count of a word is missing."""
    return not bags.are_counts and bool(np.isnan(bags.counts).any())


def draw_bags(probability: Array, mean_total: Array | float, component: Array, rng: np.random.Generator) -> Bags:
    """Draw bags of words from a multinomial per row, with Poisson totals of this mean, or of one mean per row.

    probability (Z, V) sums to 1 over the words.
    """
    n_words, total = probability.shape[1], rng.poisson(mean_total, len(component))
    row = np.repeat(np.arange(len(component)), total)
    word, u = np.empty(len(row), np.int64), rng.random(len(row))
    for z in np.unique(component):
        of_z = component[row] == z
        cumulative = np.cumsum(probability[z])
        word[of_z] = np.searchsorted(cumulative, u[of_z] * cumulative[-1], side="right")
    cells, counts = np.unique(row * n_words + np.minimum(word, n_words - 1), return_counts=True)
    starts = np.searchsorted(cells, np.arange(len(component) + 1) * n_words)
    return Bags(starts, (cells % n_words).astype(np.int32), counts.astype(np.float64), n_words)


class BaseWordDensity(BaseDensity):
    """What the densities of counts share: those of bags, or of columns of numbers that are one word each."""

    kind: ClassVar[CellKind] = "counts"
    support = "a count or a weight of a word, 0 or more"
    has_full_support = False
    learns_from_complete_rows = True
    has_whole_counts = False

    def out_of_support(self, tile: Bags | Numbers) -> Array:
        """Return which cells the density cannot produce, (n, d): counts that are negative, infinite, fractional."""
        return invalid_counts(tile, whole=self.has_whole_counts)

    @abstractmethod
    def word_factors(self, parameters: Any, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density per row, (n, Z)."""

    def log_factors(self, parameters: Any, tile: Bags | Numbers) -> Array:
        """Return the log factors in nats, (n, Z, d): of each column of numbers, or of all words of a bag."""
        return by_column(tile, self.word_factors(parameters, tile)[0])

    def left_out(self, parameters: Any, statistics: Any, tile: Bags | Numbers, assignment: Assignment) -> Array:
        """Return NaN, (n, Z, d): there is no closed form, and the parameters are estimated again without each row."""
        del parameters, statistics
        return np.full((len(bags_of(tile)), assignment.n_components, n_columns_of(tile)), np.nan)


class LinearWordDensity(BaseWordDensity):
    """score(x | z) = Σ_j x_j·s_zj − N·log p_z of the words whose count is not missing, of counts x with the sum N.

    The scores s are `parameters.of_words`. They are no density unless a subclass says so and draws rows.
    """

    alpha: float
    name: str
    is_normalised = False

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    def _read(self, tile: Bags | Numbers) -> Bags | Numbers:
        """Return the counts x as the scores take them."""
        return tile

    def _log_present(self, parameters: Any, bags: Bags) -> Array | None:
        """Return log p_z per row, (n, Z); None for 0, as where no count is missing."""
        del parameters, bags
        return None

    def log_density(self, parameters: Any, tile: Bags | Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z), or the scores."""
        bags = bags_of(self._read(tile))
        out: Array = parameters.of_words.sums(bags)
        present = self._log_present(parameters, bags)
        if present is not None:
            total = bags.totals[:, np.newaxis]
            with np.errstate(invalid="ignore"):  # all present words have probability 0
                out -= np.where(total > 0, total * present, 0.0)
        return out

    def word_factors(self, parameters: Any, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density, which is 0, (n, Z)."""
        bags = bags_of(self._read(tile))
        factors: Array = parameters.of_words.of_cells(bags)
        present = self._log_present(parameters, bags)
        if present is not None:
            counts = bags.counts[:, np.newaxis]
            with np.errstate(invalid="ignore"):
                factors -= np.where(counts > 0, counts * present[bags.row_of_cell], 0.0)
        return factors, np.zeros((len(bags), factors.shape[1]))

    def sample(self, parameters: Any, component: Array, rng: np.random.Generator) -> Bags:
        """Raise ValueError: the scores are not a density."""
        raise ValueError(f"{self.name} scores are not a density, so that no rows can be drawn; use multinomial")

    def n_parameters(self, parameters: Any) -> int:
        """Return Z·(V − 1): the scores of a component follow from those of all words but one."""
        n_components, n_words = parameters.of_words.scores.shape
        return int(n_components * (n_words - 1))
