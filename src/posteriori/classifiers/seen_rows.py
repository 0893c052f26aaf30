"""Whether rows are among those that a classifier was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from posteriori.statistics.row_fingerprints import RowFingerprints, hash_rows

if TYPE_CHECKING:
    from posteriori.classifiers.table_classifier import TableClassifier

ATTRIBUTE = "row_fingerprints_"
ALERTS = "alerts_"  # on the columns of the training rows, recorded by the command line


def record_rows(estimator: TableClassifier, X: Any) -> None:
    """Record the training rows X in a fitted classifier and its model file, as `RowFingerprints`.

    `fit`, `unlearn` and `merge` drop the record, and `partial_fit` keeps it.
    """
    setattr(estimator, ATTRIBUTE, RowFingerprints.of(estimator._source(X).map(hash_rows)))


def share_of_seen_rows(estimator: TableClassifier, X: Any) -> float:
    """Return the share of the rows X that the classifier was trained on, as far as its record shows; else 0."""
    record: RowFingerprints | None = getattr(estimator, ATTRIBUTE, None)
    return 0.0 if record is None else record.overlap(estimator._source(X).map(hash_rows))


def forget_rows(estimator: Any) -> None:
    """Drop the record of training rows and the alerts on them, which are no longer those of the classifier."""
    for name in (ATTRIBUTE, ALERTS):
        vars(estimator).pop(name, None)
