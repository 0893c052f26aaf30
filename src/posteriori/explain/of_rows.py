"""The explanation of rows that a posterior has predicted, from their cells and log factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from posteriori.explain.sums import Explanation
from posteriori.explain.words import WordFactors, word_factors_of
from posteriori.model import Posterior
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.writing import decode


def explanation_of(
    posterior: Posterior,
    classes: Array,
    values: Array,
    log_factors: Array,
    apart: Array | None,
    words: Sequence[Mapping[str, WordFactors]] = (),
) -> Explanation:
    """Return the explanation of rows, without the columns that the model ignores.

    Parameters
    ----------
    posterior : Posterior
    classes : ndarray (C,)
    values : ndarray of object (n, d)
        The cells of all columns.
    log_factors, apart : ndarray (n, C, d)
        Those of `Posterior.explaining_factors`, with and without what all classes share; None where they share nothing.
    words : sequence of mapping (n)
        The factors of words of each row; empty without columns of counts.
    """
    schema = posterior.schema
    kept = list(schema.modelled)
    place = {j: k for k, j in enumerate(kept)}
    given = posterior.given
    return Explanation(
        classes,
        tuple(schema.names[j] for j in kept),
        values[:, kept],
        posterior.bias,
        log_factors[:, :, kept],
        given and tuple(tuple(place[i] for i in given[j] if i in place) for j in kept),
        posterior.is_weighted,
        tuple(words),
        posterior.begins_at_prior,
        None if apart is None else apart[:, :, kept],
    )


def explanation_of_batch(posterior: Posterior, classes: Array, batch: Batch) -> Explanation:
    """Return the explanation of the rows of a batch."""
    log_factors = posterior.explaining_factors(batch)
    words = word_factors_of(posterior, batch, log_factors) if posterior.schema.of_kind("counts") else ()
    apart = posterior.explaining_factors(batch, with_shared=False) if posterior.has_shared_factors else None
    return explanation_of(posterior, classes, decode(batch), log_factors, apart, words)
