"""A small record of training rows, by which many of them are recognised together, but none alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from posteriori.invariants import check_share, require
from posteriori.kernels.hashing import mixed
from posteriori.tables import Batch
from posteriori.typing import Array

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


def _at(hashes: Array, level: int) -> Array:
    kept: Array = hashes[hashes & np.uint64((1 << level) - 1) == 0]
    return kept


def _places(hashes: Array, level: int, width: int) -> Array:
    return ((hashes >> np.uint64(level)) & np.uint64(width - 1)).astype(np.int64)


def hash_rows(batch: Batch) -> Array:
    """Return a hash of 64 bits of each row, (n,), the same in every process and for every order of the columns.

    The hash is a sum over columns, so that a row has one hash whatever the codes of its categories are.
    """
    schema = batch.schema
    numbers = batch.numbers.values + 0.0  # -0.0 becomes 0.0
    total = np.zeros(len(batch), np.uint64)
    for place, j in enumerate(schema.of_kind("continuous")):
        cells = np.where(np.isnan(numbers[:, place]), np.nan, numbers[:, place])
        total += mixed(np.ascontiguousarray(cells).view(np.uint64) ^ _hash_of(schema.columns[j].name))
    for j in schema.of_kind("categorical"):
        column = schema.columns[j]
        of_code = [_hash_of(f"{column.name}\x00{cell!r}") for cell in (None, *column.categories)]
        total += np.array(of_code, np.uint64)[batch.codes.values[:, schema.coded.index(j)]]
    return np.asarray(mixed(total))


def _hash_of(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()))
