"""Records of rows: a uniform sample, fingerprints, and distinct rows with weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from posteriori import kernels
from posteriori.kernels.loops.hashing import mixed, splitmix64
from posteriori.support.checks import check_share, require
from posteriori.support.typing import Array
from posteriori.tables import Bags, Batch, Column
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import smallest_code_type

_MOST_ROWS = 4096  # rows that are recorded
_SPARSITY = 4  # bits per recorded row, or more up to 8: 12 to 22 % of the bits are set, and other rows match by chance
_FEWEST_MATCHED = 20  # recorded rows by which an overlap is judged
_CERTAIN = 5.0  # standard errors


@dataclass(frozen=True)
class RowFingerprints:
    """Bits that the hashes of some training rows set: a Bloom filter with one hash function (Bloom 1970).

    One in five to eight rows that the model was not trained on matches a bit by chance. A match therefore hardly shows
    that one row is a training row. Of many rows, the share of matches shows how many of them are.

    Attributes
    ----------
    bits : ndarray of uint8 (m / 8,)
        The m bits, where m is a power of two.
    level : int
        Only rows are recorded whose hash ends in this many zeros, so that a large table has a small record.
    repeated : float
        The share of the recorded rows that are equal to another one. It is the expected share of new rows that equal a
        training row (Good & Turing, as in `Occurrences.unseen_share`).
    """

    KEPT_OF_ROWS: ClassVar = "fingerprints of up to 4,096 rows, by which evaluate recognises rows"

    bits: Array
    level: int
    repeated: float

    @classmethod
    def of(cls, hashes: Array) -> RowFingerprints:
        """Return the record of rows with these hashes, (n,)."""
        level = 0
        while len(_at(hashes, level)) > _MOST_ROWS:
            level += 1
        kept = _at(hashes, level)
        _, counts = np.unique(kept, return_counts=True)
        width = 1 << max(4, int(np.ceil(np.log2(max(1, _SPARSITY * len(counts))))))
        bits = np.zeros(width, np.bool_)
        bits[_places(kept, level, width)] = True
        return cls(np.packbits(bits), level, 1.0 - float((counts == 1).sum()) / max(1, len(kept)))

    def check(self) -> None:
        """Raise ValueError unless the fields, which may come from a file, fit together."""
        width = len(self.bits)
        require(self.bits.dtype == np.uint8 and self.bits.ndim == 1, "the fingerprints of rows are not bytes")
        require(width > 0 and width & (width - 1) == 0, "the number of fingerprints is not a power of two")
        require(0 <= self.level < 64, "the level of the fingerprints is not from 0 to 63")
        check_share("the share of repeated rows", self.repeated)

    def overlap(self, hashes: Array) -> float:
        """Return the share of rows that equal a training row; 0 if new rows might do so as often by chance.

        With s the share of matching rows and f the share of set bits, the share is (s − f) / (1 − f). It is 0 unless s
        exceeds its expectation for new rows, f + (1 − f)·repeated, by five standard errors.
        """
        kept, bits = _at(hashes, self.level), np.unpackbits(self.bits)
        chance = float(bits.mean())
        if len(kept) < _FEWEST_MATCHED or chance == 1.0:
            return 0.0
        matched = float(bits[_places(kept, self.level, len(bits))].mean())
        expected = chance + (1.0 - chance) * self.repeated
        error = np.sqrt(max(expected * (1.0 - expected), 1e-12) / len(kept))
        if matched < expected + _CERTAIN * error:
            return 0.0
        return min(1.0, (matched - chance) / (1.0 - chance))

    def shared(self, other: RowFingerprints) -> float:
        """Return the share of the rows of the smaller record that the other one has too; 0 if that may be by chance.

        Of two sets of a and b bits of m, a·b/m are common by chance. The record of the higher level, and of fewer bits,
        cannot be compared with the other, unless both are equal in level: then the wider one is folded.
        """
        if self.level != other.level:
            return 0.0
        bits = [np.unpackbits(self.bits), np.unpackbits(other.bits)]
        width = min(len(one) for one in bits)
        first, second = (one.reshape(-1, width).any(axis=0) for one in bits)
        a, b, common = int(first.sum()), int(second.sum()), int((first & second).sum())
        chance = a * b / width
        fewer = min(a, b)
        if fewer < _FEWEST_MATCHED or common < chance + _CERTAIN * np.sqrt(chance + 1.0) or fewer <= chance:
            return 0.0
        return min(1.0, (common - chance) / (fewer - chance))


def _at(hashes: Array, level: int) -> Array:
    kept: Array = hashes[hashes & np.uint64((1 << level) - 1) == 0]
    return kept


def _places(hashes: Array, level: int, width: int) -> Array:
    return ((hashes >> np.uint64(level)) & np.uint64(width - 1)).astype(np.int64)


def hash_rows(batch: Batch) -> Array:
    """Return a hash of 64 bits of each row, (n,), the same in every process and for every order of the columns.

    The hash is a sum over columns, so that a row has one hash whatever the codes of its categories are.
    """
    return np.asarray(mixed(sum(hash_cells(batch), np.zeros(len(batch), np.uint64))))


def hash_cells(batch: Batch) -> Iterator[Array]:
    """Yield a hash of 64 bits of each cell of a column, (n,), for each column."""
    schema = batch.schema
    for place, j in enumerate(schema.of_kind("continuous")):
        yield hash_numbers(batch.numbers.values[:, place], schema.columns[j].name)
    for j in schema.of_kind("categorical"):
        column = schema.columns[j]
        of_code = [hash_of_text(f"{column.name}\x00{cell!r}") for cell in (None, *column.categories)]
        yield np.array(of_code, np.uint64)[batch.codes.values[:, schema.coded.index(j)]]
    for bags, j in zip(batch.bags, schema.of_kind("counts"), strict=True):
        yield _hash_bags(bags, schema.columns[j])


def hash_numbers(numbers: Array, name: str = "") -> Array:
    """Return a hash of 64 bits of each number of a column, (n,); all missing ones have the same."""
    known = numbers.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    cells = np.where(np.isnan(known), np.nan, known)
    return np.asarray(mixed(np.ascontiguousarray(cells).view(np.uint64) ^ hash_of_text(name)))


def _hash_bags(bags: Bags, column: Column) -> Array:
    """Return a sum over the words of each row, (n,): the hash of the word mixed with that of its count."""
    held, place = np.unique(bags.words, return_inverse=True)
    of_word = np.array([hash_of_text(f"{column.name}\x00{column.word(k)}") for k in held.tolist()], np.uint64)
    counts = np.where(np.isnan(bags.counts), np.nan, bags.counts.astype(np.float64))
    terms = mixed(mixed(np.ascontiguousarray(counts).view(np.uint64)) + of_word[place])
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])  # modulo 2⁶⁴
    found: Array = sums[bags.starts[1:]] - sums[bags.starts[:-1]]
    return found


def hash_of_text(text: str) -> np.uint64:
    """Return 64 bits that depend on the text alone, the same in every process."""
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()))


@dataclass(frozen=True)
class RowSample:
    """A uniform sample without replacement of the rows of positive weight: all rows, up to a limit.

    The rows whose numbers have the smallest hashes are kept, so the sample does not depend on the order or the
    size of the batches: + is associative and commutative.

    Attributes
    ----------
    size : int
        The limit on the number of rows.
    n_rows : int
        The number of rows of positive weight, kept or not.
    number : ndarray (m,)
        The number of each row in its table; up to 2·size rows, so that not every addition has to select.
    values : ndarray (m, d)
        The numbers of some columns, NaN where missing.
    weight : ndarray (m,)
    component : ndarray (m,)
        The class of each row, −1 where it is unknown.
    fold : ndarray (m,)
        The cross-validation fold of each row, −1 where it is in none.
    """

    size: int
    n_rows: int
    number: Array
    values: Array
    weight: Array
    component: Array
    fold: Array

    @classmethod
    def of(cls, batch: Batch, columns: Sequence[int], size: int) -> RowSample:
        """Return the sample of a batch's rows: some continuous columns, by their positions in the schema."""
        positions = [batch.schema.of_kind("continuous").index(column) for column in columns]
        values = np.ascontiguousarray(batch.numbers.values[:, positions])
        n, labels = len(batch), batch.assignment
        weight = np.ones(n) if labels is None else labels.weight
        component = np.full(n, -1, np.int32) if labels is None else labels.component
        fold = np.full(n, -1, np.int32) if batch.fold is None else batch.fold
        number = np.arange(batch.start, batch.start + n, dtype=np.uint64)
        sample = cls(size, int(np.count_nonzero(weight > 0)), number, values, weight, component, fold)
        return (sample if sample.n_rows == n else sample._take(weight > 0))._smallest(2 * size)

    @property
    def is_complete(self) -> bool:
        """Whether the sample contains all rows of positive weight."""
        return self.n_rows <= self.size

    def __add__(self, other: RowSample) -> RowSample:
        pairs = zip(self._by_row, other._by_row, strict=True)
        return RowSample(self.size, self.n_rows + other.n_rows, *map(np.concatenate, pairs))._smallest(2 * self.size)

    def rows(self) -> RowSample:
        """Return exactly the rows of the sample, in the order of the table."""
        kept = self._smallest(self.size)
        return kept._take(np.argsort(kept.number))

    @property
    def _by_row(self) -> tuple[Array, ...]:
        return self.number, self.values, self.weight, self.component, self.fold

    def _take(self, chosen: Array) -> RowSample:
        return RowSample(self.size, self.n_rows, *(part[chosen] for part in self._by_row))

    def _smallest(self, most: int) -> RowSample:
        """Return the sample itself, or, if it holds more than `most` rows, the `size` rows with the smallest hashes."""
        if len(self.number) <= most:
            return self
        return self._take(np.argpartition(splitmix64(self.number), self.size - 1)[: self.size])


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows of codes with their weights: a table of categories without the order of its rows.

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column; code 0 is a missing cell.
    parts : tuple of pairs of ndarray
        Codes (m, d) and weights (m,), batch by batch; the rows of one part are distinct.
    """

    cardinalities: tuple[int, ...]
    parts: tuple[tuple[Array, Array], ...] = ()

    @classmethod
    def of(cls, tile: Codes, assignment: Assignment) -> DistinctRows:
        """Return the distinct rows of a tile; rows of weight 0 are omitted."""
        counted = assignment.weight > 0
        codes, weight = tile.values, assignment.weight
        if not counted.all():
            codes, weight = codes[counted], weight[counted]
        return cls(tile.cardinalities, (_merged(codes, weight),) if len(codes) else ())

    def __add__(self, other: DistinctRows) -> DistinctRows:
        return DistinctRows(self.cardinalities, self.parts + other.parts)

    @cached_property
    def _whole(self) -> tuple[Array, Array]:
        if not self.parts:
            return np.empty((0, len(self.cardinalities)), np.uint8), np.empty(0)
        if len(self.parts) == 1:
            return self.parts[0]
        return _merged(np.concatenate([codes for codes, _ in self.parts]), np.concatenate([w for _, w in self.parts]))

    @property
    def codes(self) -> Codes:
        """The distinct rows, (m, d), in the order of their first occurrence."""
        return Codes(self._whole[0], self.cardinalities)

    @property
    def weight(self) -> Array:
        """Their weights, (m,)."""
        return self._whole[1]

    @property
    def assignment(self) -> Assignment:
        """The rows assigned to a single component."""
        return Assignment(np.zeros(len(self.weight), np.int32), self.weight, 1)

    def merged(self) -> DistinctRows:
        """Return the same rows in one part."""
        return DistinctRows(self.cardinalities, (self._whole,) if len(self.weight) else ())

    def reindexed(self, columns: Sequence[Sequence[int]]) -> DistinctRows:
        """Return the rows in other codes; columns lists the current index of each category of the result, or −1."""
        cardinalities = tuple(len(positions) for positions in columns)
        dtype = smallest_code_type(max(cardinalities, default=0))
        codes = np.empty(self._whole[0].shape, dtype)
        for j, positions in enumerate(columns):
            moved = np.zeros(self.cardinalities[j] + 1, dtype)
            for new, old in enumerate(positions, start=1):
                if old >= 0:
                    moved[old + 1] = new
            codes[:, j] = moved[self._whole[0][:, j]]
        return DistinctRows(cardinalities, ((codes, self.weight),) if len(codes) else ())


def _merged(codes: Array, weight: Array) -> tuple[Array, Array]:
    codes = np.require(codes, requirements=["C", "A", "W"])
    number, first = np.empty((2, len(codes)), np.int64)
    n_distinct = kernels.index_distinct_rows(codes.view(np.uint8), number, first)  # equal bytes are equal rows
    if n_distinct == len(codes):
        return codes, weight
    return codes[first[:n_distinct]], np.bincount(number, weight, n_distinct)
