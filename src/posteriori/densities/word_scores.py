"""What the densities of counts share: sums of scores of words, over the rows of bags or of dense columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori import kernels
from posteriori.kernels.compiling import runs_compiled
from posteriori.kernels.few_rows import LANES
from posteriori.statistics.word_counts import bags_of
from posteriori.tables.bags import LARGEST_COUNT, Bags
from posteriori.tables.batch import Numbers
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


def log_present(log_probability: Array, tile: Bags | Numbers) -> Array | None:
    """Return the log of the probability of all words that are present in each row, (n, Z); None if no count is missing.

    log_probability is (Z, V); the probabilities sum to 1 over the words.
    """
    bags = bags_of(tile)
    if bags.are_counts or not np.isnan(bags.counts).any():
        return None
    missing = np.zeros((len(bags), len(log_probability)))
    probability = np.ascontiguousarray(np.exp(log_probability).T)
    kernels.add_missing_words(bags.starts, bags.words, bags.counts, probability, missing)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1.0 - missing, 0.0))


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
