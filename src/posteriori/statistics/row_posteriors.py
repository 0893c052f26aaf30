"""Out-of-fold log posteriors of training rows, which rows of a table find by a hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.kernels.loops.hashing import mixed
from posteriori.statistics.row_records import hash_of_text
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array

_CERTAIN = 5.0  # standard errors


@dataclass(frozen=True)
class RowPosteriors:
    """Log p(y | x) of training rows by models that were not trained on them, without the cells of the rows.

    A row is found by a hash of its cells and its label, in whatever order the rows of a table are, and if some of them
    are gone. Rows with equal cells and equal labels are interchangeable.

    Attributes
    ----------
    hashes : ndarray of uint64 (m,)
        Ascending; equal rows have equal hashes.
    log_posterior : ndarray of float16 (m, C)
        In nats, to three digits; NaN if no class can produce the row.
    fold : ndarray of unsigned int (m,)
        The fold of each row.
    class_prior : ndarray (K, C)
        p(y) under the model of each fold.
    """

    hashes: Array
    log_posterior: Array
    fold: Array
    class_prior: Array

    @classmethod
    def of(cls, hashes: Array, log_posterior: Array, fold: Array, class_prior: Array) -> RowPosteriors:
        """Return the record of rows with these hashes (m,), log posteriors (m, C) and folds (m,)."""
        order = np.argsort(hashes, kind="stable")
        with np.errstate(over="ignore"):  # exp(−65,505) is 0
            rounded = log_posterior[order].astype(np.float16)
        smallest = np.min_scalar_type(max(len(class_prior) - 1, 0))
        return cls(hashes[order], rounded, fold[order].astype(smallest), class_prior)

    def check(self) -> None:
        """Raise ValueError unless the fields, which may come from a file, fit together."""
        n_rows = len(self.hashes)
        require(self.hashes.dtype == np.uint64 and self.hashes.shape == (n_rows,), "the hashes of rows are not 64 bits")
        require(bool((self.hashes[1:] >= self.hashes[:-1]).all()), "the hashes of rows are not ascending")
        require(self.class_prior.ndim == 2 and len(self.class_prior) > 0, "the class priors of folds are not a table")
        n_folds, n_classes = self.class_prior.shape
        check_numbers("the class priors of the folds", self.class_prior, (n_folds, n_classes), 0.0, 1.0)
        require(
            self.log_posterior.dtype == np.float16 and self.log_posterior.shape == (n_rows, n_classes),
            "the out-of-fold predictions are not one number per row and class",
        )
        require(not (self.log_posterior > 0).any(), "an out-of-fold prediction is above 1")
        require(self.fold.dtype.kind == "u" and self.fold.shape == (n_rows,), "the folds are not one number per row")
        require(bool((self.fold < n_folds).all()), "the fold of a row has no class prior")

    def find(self, hashes: Array) -> Array:
        """Return the position in the record of each of these rows, (n,), −1 where it has none.

        The k-th of several equal rows is the k-th of those in the record. All are −1 if rows that the model was not
        trained on might match as often: in tables of few categories, new rows equal training rows by chance. The share
        of matches has to exceed the share of training rows that equal another one by five standard errors, unless the
        table holds every row of the record.
        """
        order = np.argsort(hashes, kind="stable")
        asked = hashes[order]
        if not len(asked) or not len(self.hashes):
            return np.full(len(hashes), -1)
        position = np.searchsorted(self.hashes, asked) + _occurrence(asked)
        within = np.minimum(position, len(self.hashes) - 1)
        is_found = (position < len(self.hashes)) & (self.hashes[within] == asked)
        found = np.empty(len(hashes), np.int64)
        found[order] = np.where(is_found, position, -1)
        n_found = np.count_nonzero(is_found)
        expected = self._repeated
        error = np.sqrt(expected * (1.0 - expected) / len(hashes))
        by_chance = n_found / len(hashes) <= expected + _CERTAIN * error
        if by_chance and n_found < len(self.hashes):
            found[:] = -1
        return found

    @property
    def _repeated(self) -> float:
        """The share of the rows that equal another one."""
        _, counts = np.unique(self.hashes, return_counts=True)
        return 1.0 - float((counts == 1).sum()) / max(1, len(self.hashes))


def with_labels(hashes: Array, components: Array, categories: Sequence[object]) -> Array:
    """Return the hashes of rows together with their labels, (n,); the components index the categories."""
    of_class = np.array([hash_of_text(f"label\x00{category!r}") for category in categories], np.uint64)
    return np.asarray(mixed(hashes + of_class[components]))


def _occurrence(ascending: Array) -> Array:
    """Return how many equal entries precede each entry."""
    place = np.arange(len(ascending))
    is_first = np.ones(len(ascending), np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    occurrence: Array = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return occurrence
