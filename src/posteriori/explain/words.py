"""The words of columns of counts and of text: the factors of those of a row, and those that distinguish classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.densities import WordDensity, implements
from posteriori.model import Block, GenerativeModel, Posterior
from posteriori.statistics import ExposedCounts, JointStatistics, WordCounts, WordRepeats
from posteriori.support.typing import Array
from posteriori.tables import Bags, Batch, Column


@dataclass(frozen=True)
class WordFactors:
    """The log factor of a column of counts in one row, as an exact sum: Σ_words factor + rest.

    Attributes
    ----------
    factors : dict of str to ndarray (C,)
        The log factor of each word of the row, in nats; of a word without a name, "x" and its position.
    rest : ndarray (C,)
        What does not depend on the words of the row: 0, except with `posteriori.Presence`, whose rest is that of a row
        without any word, and with feature weights and in pools, whose bias the columns share.
    """

    factors: Mapping[str, Array]
    rest: Array

    @property
    def total(self) -> Array:
        """The log factor of the column in nats, (C,)."""
        total: Array = self.rest + sum(self.factors.values(), np.zeros_like(self.rest))
        return total

    def strongest(self, first: int, second: int, most: int | None = None) -> dict[str, float]:
        """Return the contribution of each word to the log-odds of a class against another, in nats, the greatest first.

        Parameters
        ----------
        first, second : int
            The positions of the classes.
        most : int, optional
            How many words; default all.
        """
        with np.errstate(invalid="ignore"):  # of words that both classes lack
            nats = {word: float(factors[first] - factors[second]) for word, factors in self.factors.items()}
        return dict(sorted(nats.items(), key=lambda entry: (-abs(entry[1]), entry[0]))[:most])

    def listed(self, most: int) -> Iterator[tuple[str, Array]]:
        """Yield names and log factors (C,) that sum to the total: of the words that differ most, and of the others."""
        order = sorted(self.factors, key=lambda word: (-float(np.ptp(self.factors[word])), word))
        for word in order[:most]:
            yield word, self.factors[word]
        others = [self.factors[word] for word in order[most:]]
        if others:
            yield f"{len(others)} other word{'s' if len(others) > 1 else ''}", sum(others, np.zeros_like(self.rest))
        if self.rest.any():
            yield "words that the row lacks", self.rest


def word_factors(model: GenerativeModel, batch: Batch) -> list[dict[str, WordFactors]]:
    """Return, for each row of a batch, the factors of the words of each column of counts, by the name of the column.

    They are empty for classes of several components, whose densities are not products over words.
    """
    rows: list[dict[str, WordFactors]] = [{} for _ in range(len(batch))]
    for block, parameters, column in _of_words(model):
        density: Any = block.density
        bags = block.tile(batch)
        assert isinstance(bags, Bags)
        weight = 1.0 if model.weights is None else float(model.weights.weight[block.columns[0]])
        factors, rest = (weight * part for part in density.word_factors(parameters, bags))
        shares_offset = model.known(batch)[:, block.columns[0]]
        rest = rest + np.where(shares_offset[:, np.newaxis], model.part_of_offset, 0.0)
        for i, row in enumerate(rows):
            cells = range(int(bags.starts[i]), int(bags.starts[i + 1]))
            row[column.name] = WordFactors({column.word(int(bags.words[k])): factors[k] for k in cells}, rest[i])
    return rows


def _of_words(model: GenerativeModel) -> Iterator[tuple[Block, Any, Column]]:
    """Yield the blocks that are columns of counts with factors of words, their parameters and the column."""
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        column = model.schema.columns[block.columns[0]]
        if column.kind == "counts" and not model.of_class and implements(block.density, WordDensity):
            yield block, parameters, column


def single_word_factors(model: GenerativeModel) -> dict[str, Array]:
    """Return the log factor of one occurrence of each word in nats, (C, V), by the name of the column of counts.

    It is the log share of the word, with `posteriori.Multinomial`. A model whose classes have several components has
    none, because its densities are not products over words.
    """
    found = {}
    for block, parameters, column in _of_words(model):
        density: Any = block.density
        words = np.arange(column.width)
        each = Bags(np.arange(column.width + 1), words.astype(np.int32), np.ones(column.width), column.width)
        found[column.name] = np.ascontiguousarray(density.word_factors(parameters, each)[0].T)
    return found


@dataclass(frozen=True)
class CharacteristicWord:
    """A word that speaks for a class."""

    word: str
    log_odds: float  # what one occurrence adds to the log-odds of the class against all others, in nats
    # the weighted sum of its counts in the training rows of the class, or of the other classes if it speaks against the
    # class; NaN if the model has not counted them
    count: float


def characteristic_words(
    model: GenerativeModel, statistics: JointStatistics | None, most: int = 10, *, against: bool = False
) -> dict[str, list[list[CharacteristicWord]]]:
    """Return the words that distinguish each class from the others, by the name of the column of counts, per class.

    Words are sorted by their count in the class times their log-odds: a rare word with high odds matters in few rows.
    Words that speak against a class are sorted by their count in the other classes.

    Parameters
    ----------
    statistics : JointStatistics or None
        Those that the model was learned from; None if they are unknown. Then words are sorted by their log-odds.
    most : int
        How many words per class.
    against : bool, default False
        Whether to return the words that speak against each class, whose log-odds are negative.
    """
    counts = {} if statistics is None else _counts(model, statistics)
    prior = np.exp(model.class_log_prior)
    return {
        name: [_of_class(model, name, factors, prior, c, counts.get(name), most, against) for c in range(len(prior))]
        for name, factors in single_word_factors(model).items()
    }


def _of_class(
    model: GenerativeModel,
    name: str,
    factors: Array,
    prior: Array,
    c: int,
    counts: Array | None,
    most: int,
    against: bool,
) -> list[CharacteristicWord]:
    others = [k for k in range(len(prior)) if k != c]
    if not others:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weight = np.log(prior[others] / prior[others].sum())[:, np.newaxis]
        log_odds = np.nan_to_num(factors[c] - np.logaddexp.reduce(log_weight + factors[others], axis=0))
    if against:
        log_odds, counts = -log_odds, None if counts is None else counts.sum(axis=0) - counts
    score = log_odds if counts is None else log_odds * counts[c]
    column = model.schema.columns[model.schema.names.index(name)]
    order = [int(j) for j in np.argsort(-score, kind="stable")[:most] if score[j] > 0]
    return [
        CharacteristicWord(
            column.word(j),
            float(-log_odds[j] if against else log_odds[j]),
            float("nan") if counts is None else float(counts[c, j]),
        )
        for j in order
    ]


def _counts(model: GenerativeModel, statistics: JointStatistics) -> dict[str, Array]:
    """Return the sums of the counts of each word per class, (C, V), by the name of the column."""
    found = {}
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        column = model.schema.columns[block.columns[0]]
        if column.kind == "counts" and isinstance(sums, WordCounts | ExposedCounts):
            found[column.name] = sums.count
        elif column.kind == "counts" and isinstance(sums, WordRepeats):
            found[column.name] = sums.at_least.sum(axis=2)
    return found


def word_factors_of(posterior: Posterior, batch: Batch, log_factors: Array) -> list[dict[str, WordFactors]]:
    """Return the factors of the words of each row: the weighted sums over the models of a pool.

    They sum to the log factors of the columns, (n, C, d), those of `Posterior.explaining_factors`.
    They are without columns whose words one model does not divide. A model that has no density for a column of counts
    adds nothing to its factors.
    """
    pool = posterior.pool
    weights = [1.0] if pool is None else pool.weights(pool.parts(batch))
    rows: list[dict[str, WordFactors]] = [{} for _ in range(len(batch))]
    undivided: set[str] = set()
    for model, weight in zip(posterior.models, weights, strict=True):
        reads = {model.schema.names[j] for block in model.blocks for j in block.columns}
        of_rows = np.broadcast_to(np.asarray(weight, np.float64), len(batch)).tolist()
        found_in = word_factors(model, batch.with_schema(model.schema))
        for row, of_row, own in zip(rows, found_in, of_rows, strict=True):
            undivided |= (reads - of_row.keys()) & {model.schema.names[j] for j in model.schema.of_kind("counts")}
            for name, found in of_row.items():
                row[name] = _added(row.get(name), own, found)
    divided = [{name: found for name, found in row.items() if name not in undivided} for row in rows]
    if pool is None:
        return divided
    places = {name: j for j, name in enumerate(posterior.schema.names)}
    return [
        {name: _of_total(found, of_row[:, places[name]]) for name, found in row.items()}
        for row, of_row in zip(divided, log_factors, strict=True)
    ]


def _of_total(found: WordFactors, total: Array) -> WordFactors:
    """Return the factors of words with the rest that makes them sum to the factor of their column, (C,)."""
    return WordFactors(found.factors, total - sum(found.factors.values(), np.zeros_like(total)))


def _added(known: WordFactors | None, weight: float, found: WordFactors) -> WordFactors:
    factors = {word: weight * factor for word, factor in found.factors.items()}
    if known is None:
        return WordFactors(factors, weight * found.rest)
    # Every model has the words of the row, in the same order.
    summed = {word: factor + factors[word] for word, factor in known.factors.items()}
    return WordFactors(summed, known.rest + weight * found.rest)
