"""Out-of-fold log posteriors of training rows, which rows of a table find by a hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

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
    are gone. Rows with equal cells and equal labels are interchangeable. A record without hashes, as a fit in Python
    keeps it, finds no row, and is what decisions are judged by.

    Attributes
    ----------
    hashes : ndarray of uint64 (m,), or (0,)
        Ascending; equal rows have equal hashes.
    log_posterior : ndarray of float16 (m, C)
        In nats, to three digits; NaN if no class can produce the row.
    component : ndarray of unsigned int (m,)
        The class of each row.
    fold : ndarray of unsigned int (m,)
        The fold of each row.
    class_prior : ndarray (K, C)
        p(y) under the model of each fold.
    """

    KEPT_OF_ROWS: ClassVar = "the label, the fold and the held-out log p(y | x) of up to 20,000 rows"

    hashes: Array
    log_posterior: Array
    component: Array
    fold: Array
    class_prior: Array

    @classmethod
    def of(
        cls, hashes: Array | None, log_posterior: Array, component: Array, fold: Array, class_prior: Array
    ) -> RowPosteriors:
        """Return the record of rows with these hashes (m,), log posteriors (m, C), classes (m,) and folds (m,)."""
        # Rows without hashes are sorted, too, so that the record does not show their order.
        order = np.lexsort((*log_posterior.T, fold, component)) if hashes is None else np.argsort(hashes, kind="stable")
        with np.errstate(over="ignore"):  # exp(−65,505) is 0
            rounded = log_posterior[order].astype(np.float16)
        of_rows = np.zeros(0, np.uint64) if hashes is None else hashes[order]
        of_class, of_fold = (np.min_scalar_type(max(n - 1, 0)) for n in class_prior.shape[::-1])
        return cls(of_rows, rounded, component[order].astype(of_class), fold[order].astype(of_fold), class_prior)

    def check(self) -> None:
        """Raise ValueError unless the fields, which may come from a file, fit together."""
        n_rows = len(self.fold)
        of_rows = self.hashes.shape in ((0,), (n_rows,))
        require(self.hashes.dtype == np.uint64 and of_rows, "the hashes of rows are not 64 bits")
        require(bool((self.hashes[1:] >= self.hashes[:-1]).all()), "the hashes of rows are not ascending")
        require(self.class_prior.ndim == 2 and len(self.class_prior) > 0, "the class priors of folds are not a table")
        n_folds, n_classes = self.class_prior.shape
        check_numbers("the class priors of the folds", self.class_prior, (n_folds, n_classes), 0.0, 1.0)
        require(
            self.log_posterior.dtype == np.float16 and self.log_posterior.shape == (n_rows, n_classes),
            "the out-of-fold predictions are not one number per row and class",
        )
        require(not (self.log_posterior > 0).any(), "an out-of-fold prediction is above 1")
        of_classes = self.component.dtype.kind == "u" and self.component.shape == (n_rows,)
        require(
            of_classes and bool((self.component < n_classes).all()), "the classes of rows are not one number per row"
        )
        require(self.fold.dtype.kind == "u" and self.fold.shape == (n_rows,), "the folds are not one number per row")
        require(bool((self.fold < n_folds).all()), "the fold of a row has no class prior")

    def moved(self, log_ratio: Array) -> RowPosteriors:
        """Return the record under class shares whose log ratio to the former ones is (C,), in nats."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            score = self.log_posterior.astype(np.float64) + log_ratio
            moved = score - np.logaddexp.reduce(score, axis=1, keepdims=True)
            prior = self.class_prior * np.exp(log_ratio)
            prior = prior / prior.sum(axis=1, keepdims=True)
        return replace(self, log_posterior=np.minimum(moved, 0.0).astype(np.float16), class_prior=prior)

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
