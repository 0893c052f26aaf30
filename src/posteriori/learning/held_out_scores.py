"""Log posteriors of held-out rows by the models of the rows outside their folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.work_bounds import SCORING
from posteriori.sources import LabelledSource
from posteriori.support.threads import in_order, n_threads, one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.batch import joined
from posteriori.tables.progress import start_candidates


def score_held_out(
    source: LabelledSource,
    fold: Array,
    fitted: Sequence[CrossFitted],
    progress: Callable[[int], None] | None = None,
    sampled: Array | None = None,
) -> tuple[Array, Batch | None]:
    """Return log p(y | x) in nats of each row that is in a fold, by the models of the rows outside it, (m, C, M).

    The values of a row that no class can produce are NaN. The second result holds the cells of the rows that the mask
    `sampled` (n,) marks, so that they need no further pass; it is None without a mask.
    """
    n_classes = fitted[0].full.model.n_classes

    def score(batch: Batch) -> tuple[Array, Batch | None]:
        assert batch.fold is not None
        kept = None if sampled is None else batch.rows(sampled[batch.start : batch.start + len(batch)])
        log_posterior = np.empty((np.count_nonzero(batch.fold >= 0), n_classes, len(fitted)))
        position = np.cumsum(batch.fold >= 0) - 1
        for k in range(len(fitted[0].without)):
            rows = np.flatnonzero(batch.fold == k)
            held_out = batch.rows(rows)
            for m, models in enumerate(fitted):
                log_posterior[position[rows], :, m] = models.without[k].log_posterior(held_out)
        return log_posterior, kept

    with one_blas_thread():
        scores, kept = zip(*source.with_folds(fold).with_progress(progress).stream(score), strict=True)
    return np.concatenate(scores), None if sampled is None else joined(kept)


def score_batch(
    held_out: Batch,
    fitted: Sequence[CrossFitted],
    n_jobs: int | None,
    n_rows: int,
    progress: Callable[[int], None] | None = None,
) -> Array:
    """Return log p(y | x) in nats of the rows of a batch by the models of the rows outside their folds, (m, C, M).

    `progress` is called with numbers of rows whose sum is `n_rows`.
    """
    n_classes = fitted[0].full.model.n_classes
    log_posterior = np.empty((len(held_out), n_classes, len(fitted)))
    assert held_out.fold is not None
    positions = [np.flatnonzero(held_out.fold == k) for k in range(len(fitted[0].without))]
    in_fold = [held_out.rows(rows) for rows in positions]
    tasks = [(k, m) for m in range(len(fitted)) for k in range(len(positions))]

    def score(task: tuple[int, int]) -> None:
        k, m = task
        log_posterior[positions[k], :, m] = fitted[m].without[k].log_posterior(in_fold[k])

    done = 0
    advance = start_candidates(SCORING, len(fitted))
    for number, _ in enumerate(in_order(tasks, score, n_threads(n_jobs)), start=1):
        if number % len(positions) == 0:
            advance(1)
        if progress is not None:
            rows = n_rows * number // len(tasks)
            progress(rows - done)
            done = rows
    return log_posterior
