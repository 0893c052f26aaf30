"""Starts of EM if labels do not determine the component: responsibilities from labels, and from k-means++ seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posteriori.kernels.loops.hashing import splitmix64
from posteriori.model import Block, reject_outside
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics, from_responsibilities
from posteriori.support.typing import Array
from posteriori.tables import Batch

_SAMPLED_ROWS = 4096  # rows that seeds are drawn from
# The squared distance of a missing cell from any other, and of two different categories: the expected squared distance
# of two independent cells of a column of variance 1.
_UNKNOWN_DISTANCE = 2.0


@dataclass(frozen=True)
class SampledRows:
    """A uniform sample of the distinct rows, each with the weight of all rows that equal it.

    The kept rows are those whose cells have the smallest hashes. Therefore the sample does not depend on the order or
    the size of batches, and a row of weight 2 counts as two equal rows of weight 1.

    Attributes
    ----------
    key : ndarray (m,)
        The hash of the cells.
    numbers : ndarray (m, d)
        The cells of numeric columns; NaN if missing.
    codes : ndarray (m, d)
        The cells of categorical columns; 0 if missing.
    weight : ndarray (m,)
        The weight of all rows with these cells.
    count : ndarray (m,)
        The number of rows with these cells, of any weight.
    """

    key: Array
    numbers: Array
    codes: Array
    weight: Array
    count: Array

    @classmethod
    def of(cls, batch: Batch, chosen: Array) -> SampledRows:
        """Return the sample of the rows of a batch that a mask marks."""
        weight = np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
        numbers, codes = batch.numbers.values[chosen], batch.codes.values[chosen]
        return cls(_hashes(numbers, codes), numbers, codes, weight[chosen], np.ones(len(numbers)))._smallest()

    def __add__(self, other: SampledRows) -> SampledRows:
        names = ("key", "numbers", "codes", "weight", "count")
        return SampledRows(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))._smallest()

    def _smallest(self) -> SampledRows:
        """Return the distinct rows of the smallest hashes, ascending."""
        key, first, position = np.unique(self.key, return_index=True, return_inverse=True)
        weight, count = (np.bincount(position, amount, len(key)) for amount in (self.weight, self.count))
        first = first[:_SAMPLED_ROWS]
        m = len(first)
        return SampledRows(key[:m], self.numbers[first], self.codes[first], weight[:m], count[:m])


def _hashes(numbers: Array, codes: Array) -> Array:
    """Return a hash of the cells of each row, (n,); equal rows have equal hashes."""
    key: Array = np.zeros(len(numbers), np.uint64)
    cells = numbers.astype(np.float64) + 0.0  # −0.0 becomes 0.0
    cells[np.isnan(cells)] = np.nan  # one bit pattern for every NaN
    for column in (*cells.view(np.uint64).T, *codes.astype(np.uint64).T):
        key = splitmix64(key ^ column)
    return key


@dataclass(frozen=True)
class Seeds:
    """The initial centre of each component.

    Attributes
    ----------
    numbers, codes : ndarray (Z, d)
        The cells of the rows that are the centres.
    unit : ndarray (d,)
        The standard deviation of each numeric column, which is the unit of its distances.
    """

    numbers: Array
    codes: Array
    unit: Array

    def distance(self, numbers: Array, codes: Array) -> Array:
        """Return the squared distance of rows from each seed, (n, Z); unequal categories add 2."""
        total = np.zeros((len(numbers), len(self.numbers)))
        for z in range(total.shape[1]):
            apart = ((numbers - self.numbers[z]) / self.unit) ** 2
            total[:, z] = np.where(np.isnan(apart), _UNKNOWN_DISTANCE, apart).sum(axis=1)
            unequal = (codes != self.codes[z]) | (codes == 0)
            total[:, z] += _UNKNOWN_DISTANCE * unequal.sum(axis=1)
        return total

    def nearest(self, batch: Batch) -> Array:
        """Return the index of the nearest seed of each row of a batch, (n,)."""
        nearest: Array = self.distance(batch.numbers.values, batch.codes.values).argmin(axis=1)
        return nearest


@dataclass(frozen=True)
class Samples:
    """A sample per group of rows; samples of different rows add up."""

    rows: tuple[SampledRows, ...]

    def __add__(self, other: Samples) -> Samples:
        return Samples(tuple(a + b for a, b in zip(self.rows, other.rows, strict=True)))


def sampled(
    source: LabelledSource, blocks: tuple[Block, ...], members: Callable[[Batch], Array] | None = None
) -> tuple[SampledRows, ...]:
    """Return a sample of distinct rows of positive weight for each group, in one pass.

    Parameters
    ----------
    source : LabelledSource
    blocks : tuple of Block
        Their cells are checked.
    members : callable, optional
        Returns for a batch which rows belong to each group, (n, G) booleans; default: one group of all rows.

    Raises
    ------
    ValueError
        A cell is infinite.
    """

    def accumulate(batch: Batch) -> Samples:
        for block in blocks:
            reject_outside(block, batch)
        weight = np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
        groups = np.ones((len(batch), 1), np.bool_) if members is None else members(batch)
        counted = groups & (weight > 0)[:, np.newaxis]
        return Samples(tuple(SampledRows.of(batch, chosen) for chosen in counted.T))

    return source.reduce(accumulate).rows


@dataclass(frozen=True)
class Initialization:
    """Responsibilities before there is a model: p(z | label), and within a class the component of the nearest seed.

    Attributes
    ----------
    seeds : tuple of Seeds
        The seeds of each class; empty if every class is one component.
    """

    seeds: tuple[Seeds, ...]

    def responsibilities(self, batch: Batch) -> Array:
        """Return the responsibilities of the components, (n, Z); 0 for a row whose label has no information."""
        assert batch.assignment is not None
        label_likelihood = batch.assignment.label_likelihood
        assert label_likelihood is not None
        informative = (label_likelihood.recorded >= 0) | np.isneginf(label_likelihood.log_likelihood).any(axis=1)
        responsibilities = np.exp(label_likelihood.log_likelihood) * informative[:, np.newaxis]
        if self.seeds:
            nearest = [
                np.eye(len(seeds.numbers))[seeds.nearest(batch)] if len(seeds.numbers) > 1 else np.ones((len(batch), 1))
                for seeds in self.seeds
            ]
            responsibilities *= np.concatenate(nearest, axis=1)
        total: Array = np.where(informative, responsibilities.sum(axis=1), 1.0)
        return responsibilities / total[:, np.newaxis]

    def collect(self, blocks: tuple[Block, ...]) -> Callable[[Batch], JointStatistics]:
        """Return the function from a batch to its statistics under these responsibilities."""

        def accumulate(batch: Batch) -> JointStatistics:
            assert batch.assignment is not None
            responsibilities = self.responsibilities(batch) * batch.assignment.weight[:, np.newaxis]
            sums = tuple(
                from_responsibilities(block.density.sufficient_statistics, block.tile(batch), responsibilities)
                for block in blocks
            )
            return JointStatistics(responsibilities.sum(axis=0), sums)

        return accumulate


def initializations(
    source: LabelledSource, blocks: tuple[Block, ...], of_class: tuple[int, ...], n_starts: int, seed: int
) -> list[Initialization]:
    """Return the initializations of EM: `n_starts` with different seeds if a class has several components, else one.

    Raises
    ------
    ValueError
        A class has fewer rows than components.
    """
    if not of_class:
        return [Initialization(())]
    n_components = np.bincount(of_class)
    first = np.searchsorted(of_class, np.arange(len(n_components)))  # the first component of each class

    def members(batch: Batch) -> Array:
        assert batch.assignment is not None
        assert batch.assignment.label_likelihood is not None
        label_likelihood = batch.assignment.label_likelihood
        recorded = np.where(label_likelihood.recorded >= 0, label_likelihood.recorded, -1)
        of_recorded: Array = recorded[:, np.newaxis] == np.arange(len(n_components))
        # A label that only rules classes out: the row belongs to every class that is left.
        partial = (label_likelihood.recorded < 0) & np.isneginf(label_likelihood.log_likelihood).any(axis=1)
        possible = label_likelihood.log_likelihood[:, first] > -np.inf
        return of_recorded | (partial[:, np.newaxis] & possible)

    samples = sampled(source, blocks, members)
    for c, (rows, size) in enumerate(zip(samples, n_components, strict=True)):
        if rows.count.sum() < size:
            label = source.classes.categories[c] if source.classes else c
            raise ValueError(
                f"class {label!r} has {rows.count.sum():.0f} rows, fewer than its {size} components; ask for fewer"
            )
    rng = np.random.default_rng(seed)
    return [
        Initialization(
            tuple(spread_seeds(rows, int(size), rng) for rows, size in zip(samples, n_components, strict=True))
        )
        for _ in range(n_starts)
    ]


def spread_seeds(rows: SampledRows, n_components: int, rng: np.random.Generator) -> Seeds:
    """Return seeds by greedy k-means++.

    Each seed after the first is the best of 2 + ⌊log Z⌋ candidates. Candidates are drawn with probabilities
    proportional to the squared distance from the nearest seed so far. The best one leaves the smallest sum of these
    distances.

    References
    ----------
    Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, SODA 2007, section 2.2; section 7 on the
    greedy variant.
    """
    unit = _standard_deviations(rows)
    n_candidates = 2 + int(math.log(n_components))
    by_weight = rows.weight / rows.weight.sum()
    positions = [int(rng.choice(len(by_weight), p=by_weight))]
    nearest = np.full(len(by_weight), np.inf)
    while True:
        last = Seeds(rows.numbers[positions[-1:]], rows.codes[positions[-1:]], unit)
        nearest = np.minimum(nearest, last.distance(rows.numbers, rows.codes)[:, 0])
        if len(positions) == n_components:
            return Seeds(rows.numbers[positions], rows.codes[positions], unit)
        probability = rows.weight * nearest
        # Every row equals a seed: draw by weight, so that seeds repeat.
        probability = probability / probability.sum() if probability.sum() > 0 else by_weight
        drawn = rng.choice(len(by_weight), size=n_candidates, p=probability)
        distance = Seeds(rows.numbers[drawn], rows.codes[drawn], unit).distance(rows.numbers, rows.codes)
        inertia = rows.weight @ np.minimum(nearest[:, np.newaxis], distance)
        positions.append(int(drawn[inertia.argmin()]))


def _standard_deviations(rows: SampledRows) -> Array:
    """Return the standard deviation of each numeric column, (d,); 1 if it is constant."""
    weight = np.where(np.isnan(rows.numbers), 0.0, rows.weight[:, np.newaxis])
    values = np.where(np.isnan(rows.numbers), 0.0, rows.numbers)
    total = np.maximum(weight.sum(axis=0), 1e-300)  # a column that is entirely missing
    mean = (weight * values).sum(axis=0) / total
    variance = (weight * (values - mean) ** 2).sum(axis=0) / total
    return np.sqrt(np.where(variance > 0, variance, 1.0))
