"""What the densities of counts share: sums of scores of words, over the rows of bags or of dense columns."""

from __future__ import annotations

import numpy as np

from posteriori import kernels
from posteriori.statistics.word_counts import bags_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Numbers
from posteriori.typing import Array

_LARGEST = 1e15  # larger counts are no whole numbers of float64


def invalid_counts(tile: Bags | Numbers, *, whole: bool = False) -> Array:
    """Return which columns of each row hold a negative or infinite count, or a fraction if counts are whole: (n, d)."""
    counts = tile.counts if isinstance(tile, Bags) else tile.values
    invalid = (counts < 0) | (counts > _LARGEST)
    if whole:
        invalid |= ~np.isnan(counts) & (counts != np.floor(counts))
    if isinstance(tile, Numbers):
        return np.asarray(invalid)
    rows = np.zeros((len(tile), 1), np.bool_)
    if invalid.any():
        rows[tile.row_of_cell[invalid]] = True
    return rows


def summed_scores(score: Array, tile: Bags | Numbers) -> Array:
    """Return Σ_j x_j·score_j per row, (n, Z), from the scores of the words, (V, Z). O(stored cells · Z)."""
    bags = bags_of(tile)
    out = np.zeros((len(bags), score.shape[1]))
    kernels.add_word_scores(bags.starts, bags.words, bags.counts, score, out)
    return out


def scores_of_cells(score: Array, bags: Bags) -> Array:
    """Return x·score of the word of each stored cell, (m, Z), from the scores of the words, (V, Z)."""
    out = np.empty((len(bags.words), score.shape[1]))
    kernels.write_word_scores(bags.words, bags.counts, score, out)
    return out


def by_column(tile: Bags | Numbers, of_cells: Array) -> Array:
    """Return values of the stored cells, (m, Z), summed over each column of the table, (n, Z, d)."""
    if isinstance(tile, Bags):
        return tile.sums_per_row(of_cells)[:, :, np.newaxis]
    n, d = tile.values.shape
    return np.ascontiguousarray(of_cells.reshape(n, d, -1).transpose(0, 2, 1))


def log_present(probability: Array, tile: Bags | Numbers) -> Array | None:
    """Return the log of the probability of all words that are present in each row, (n, Z); None if no count is missing.

    probability (V, Z) sums to 1 over the words.
    """
    bags = bags_of(tile)
    if not np.isnan(bags.counts).any():
        return None
    missing = np.zeros((len(bags), probability.shape[1]))
    kernels.add_missing_words(bags.starts, bags.words, bags.counts, probability, missing)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1.0 - missing, 0.0))


def draw_bags(probability: Array, mean_total: float, component: Array, rng: np.random.Generator) -> Bags:
    """Draw bags of words from a multinomial per row, with Poisson totals of this mean for all components.

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
