"""Answers of a joint model: any column given others, drawn rows, and how strange each cell is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from posteriori.joint.copies import keys_of_drawn
from posteriori.joint.counting import Probability
from posteriori.joint.findings import (
    bounds_of,
    law_place,
    likelihood_if_any,
    likelihood_of,
    likelihoods_of,
    parts_of,
    require_probability,
)
from posteriori.joint.law import Law
from posteriori.joint.questions import read_question
from posteriori.joint.value import FittedJoint
from posteriori.model.blocks import known_cells
from posteriori.model.predictive import PredictiveDensity
from posteriori.sources import LabelledSource
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.writing import write_table

_TINY = float(np.finfo(np.float64).tiny)
_FEWEST_DRAWN = 1000  # rows at once, in place of copies
_FRUITLESS = 20_000  # draws without a row that is no copy, after which no more are tried
_DRAWS_PER_ROW = 100  # at most
_ANY = [(-np.inf, np.inf)]


def given_others(law: Law, source: LabelledSource, column: int) -> Array:
    """Return p(x_j | the other cells) of the codes of a column, (n, K), by its position in the schema."""
    return source.with_width(law.sizes[column]).map(lambda batch: law.of_others(batch, column))


@dataclass(frozen=True)
class CellFigures:
    """How well one column of some rows is predicted by the other cells, and without them; losses in nats per cell."""

    n: int  # known cells
    loss_given_others: float
    loss_alone: float
    accuracy: float
    accuracy_alone: float


def cell_figures(law: Law, source: LabelledSource) -> dict[int, CellFigures]:
    """Return for each column how well its codes are predicted, by its position."""
    alone = law.believe(likelihoods_of(law, {})).marginals()

    def of_batch(batch: Batch) -> Array:
        known = known_cells(batch)

        def of_rows(rows: slice) -> Array:
            likelihoods = law.likelihoods(batch.rows(rows))
            found = []
            for j, given in law.believe(likelihoods).given_others().items():
                own = likelihoods[j]
                for probability in (given, np.tile(alone[j], (len(own), 1))):
                    loss = -np.log(np.maximum((probability * own).sum(axis=1), _TINY))
                    right = own[np.arange(len(own)), probability.argmax(axis=1)]
                    found += [np.where(known[rows, j], one, np.nan) for one in (loss, right)]
            return np.column_stack(found)

        return np.concatenate(law.in_blocks(len(batch), of_rows))

    found = source.with_width(4 * len(law.columns)).map(of_batch)
    n_known = (~np.isnan(found)).sum(axis=0)
    mean = np.nansum(found, axis=0) / np.maximum(n_known, 1)
    return {
        j: CellFigures(int(n_known[4 * k]), *(float(mean[4 * k + place]) for place in (0, 2, 1, 3)))
        for k, j in enumerate(law.columns)
    }


def answer(law: Law, question: str) -> Any:
    """Answer a question; see `JointModel.query`."""
    read = read_question(question, law)
    if read.is_event:
        return probability(law, read.asked, read.given)
    beliefs = law.believe(likelihoods_of(law, read.given))
    if np.isneginf(beliefs.log_evidence[0]):
        raise ValueError(f"what is known in {question!r} is impossible; state something else")
    marginals = beliefs.marginals()
    found = {name: _distribution(law, law.place(name), marginals[law.place(name)], read.given) for name in read.asked}
    return next(iter(found.values())) if len(found) == 1 else found


def _distribution(law: Law, j: int, marginal: Array, given: Mapping[str, Any]) -> Any:
    """Return the density of a column of numbers, or the probability of each category."""
    of_law = law.answer(j, marginal).probability[0] if j in law.grids else marginal[0]
    p, counts = of_law, law.counts(given, {j: None})
    if counts is not None and law.counted is not None:
        of_codes = law.believe(law.of_counted(counts.lacking)).given_others()[j]
        of_lacking = law.answer(j, of_codes).probability if j in law.grids else of_codes
        p = counts.mixed(law.counted.shares(counts, j, len(p)), of_lacking, p)
    if j in law.grids:
        return PredictiveDensity(law.grids[j].cells, p[np.newaxis], law.schema.names[j])
    rows = 0.0 if counts is None else counts.rows
    return {one: Probability(of_one, rows) for one, of_one in zip(law.categories(j), p.tolist(), strict=True)}


def probability(law: Law, event: Mapping[str, Any], given: Mapping[str, Any]) -> Probability:
    """Return p(event | given); see `JointModel.probability`."""
    places = {law_place(law, name) for name in given}
    both = sorted(name for name in event if law_place(law, name) in places)
    if both:
        raise ValueError(f"{both[0]!r} is in the event and given; state it once")
    for name, finding in event.items():
        require_probability(law, name, finding)
    known = log_probability(law, given)
    if np.isneginf(known):
        raise ValueError("what is given is impossible; state something else")
    if not all(likelihood_if_any(law, name, finding).any() for name, finding in event.items()):
        return Probability(0.0, 0.0)
    p = float(np.exp(min(log_probability(law, {**given, **event}) - known, 0.0)))
    stated, stated_codes = parts_of(law, event), dict(likelihood_of(law, *one) for one in event.items())
    counts = law.counts(given, stated)
    if counts is None or law.counted is None:
        return Probability(p, 0.0)
    known_cells = law.of_counted(counts.lacking)
    with_event = dict(known_cells)
    for j, of_codes in stated_codes.items():  # of the cells that the rows lack
        lacks = law.counted.codes(j)[counts.lacking] == 0
        with_event[j] = np.where(lacks[:, np.newaxis], of_codes, known_cells[j])
    ratio = law.believe(with_event).log_evidence - law.believe(known_cells).log_evidence
    n_both = counts.part @ law.counted.part(stated)
    mixed = counts.mixed(np.array([n_both]), np.exp(np.minimum(ratio, 0.0))[:, np.newaxis], np.array([p]))
    return Probability(float(mixed[0]), counts.rows)


def log_probability(law: Law, findings: Mapping[str, Any]) -> float:
    """Return log p(findings) in nats."""
    return float(law.believe(likelihoods_of(law, findings)).log_evidence[0])


def is_known(batch: Batch, j: int) -> Array:
    """Return in which rows the cell of column j is known, (n,)."""
    return np.asarray(known_cells(batch)[:, j])


def cell_scores(law: Law, source: LabelledSource) -> Array:
    """Return −log p(x_j | the other cells) minus its expectation in nats, (n, d); NaN of a missing cell."""
    n_columns = len(law.schema.columns)

    def of_batch(batch: Batch) -> Array:
        known = known_cells(batch)

        def of_rows(rows: slice) -> Array:
            likelihoods = law.likelihoods(batch.rows(rows))
            found = np.full((rows.stop - rows.start, n_columns), np.nan)
            for j, given in law.believe(likelihoods).given_others().items():
                surprise = -np.log(np.maximum(given, _TINY))
                own, expected = (surprise * likelihoods[j]).sum(axis=1), (surprise * given).sum(axis=1)
                found[:, j] = np.where(known[rows, j], own - expected, np.nan)
            return found

        return np.concatenate(law.in_blocks(len(batch), of_rows))

    return source.with_width(n_columns).map(of_batch)


def explained(law: Law) -> Array:
    r"""Return the share of the entropy of each column that each column alone removes, (d, d), NaN where it has none.

    .. math:: \frac{I(x_i; x_j)}{H(x_j)} = \frac{1}{H(x_j)} \sum_k p(x_i = k) \sum_l p(l \mid k)
              \log \frac{p(x_j = l \mid x_i = k)}{p(x_j = l)}
    """
    columns, sizes = law.columns, law.sizes
    alone = law.believe({j: np.ones((1, size)) for j, size in sizes.items()}).marginals()
    found = np.full((len(columns), len(columns)), np.nan)
    entropy = np.array([-(xlogy(alone[j], alone[j])).sum() for j in columns])
    for a, i in enumerate(columns):
        known = {j: np.ones((sizes[i], size)) for j, size in sizes.items()}
        known[i] = np.eye(sizes[i])
        given = law.believe(known).marginals()
        for b, j in enumerate(columns):
            if entropy[b] > 0:
                gain = xlogy(given[j], given[j]) - xlogy(given[j], np.maximum(alone[j], _TINY))
                found[a, b] = float(alone[i][0] @ gain.sum(axis=1)) / entropy[b]
    return found


def draw(
    value: FittedJoint,
    n: int,
    given: Mapping[str, Any] | None,
    rng: np.random.Generator,
    copied: Collection[bytes] = frozenset(),
    respect_ranges: bool = True,
) -> Any:
    """Draw n rows given findings, as a table like that of training; rows whose keys are in `copied` are drawn again.

    Numbers stay within the range of the training rows, unless ranges are not respected.

    Raises
    ------
    ValueError
        Findings are impossible; or nearly all rows that can be drawn are copies.
    """
    likelihoods = likelihoods_of(value.law, given)
    within = _intervals(value, given, value.bounds if respect_ranges else {})
    for j, intervals in within.items():
        likelihoods[j] = value.law.grids[j].of_findings(intervals)[np.newaxis]
    beliefs = value.law.believe(likelihoods)

    def drawn_columns(n: int) -> list[Array]:
        return columns_of(value, beliefs.draw(rng, n), rng, within)

    columns = drawn_columns(n)
    left = np.flatnonzero(_are_copies(value, columns, copied))
    draws, fruitless = n, 0
    while len(left):
        if fruitless >= _FRUITLESS or draws >= _DRAWS_PER_ROW * n + _FRUITLESS:
            raise ValueError(
                f"{len(left):,} of {n:,} drawn rows are copies of rows of the table, and {draws:,} draws found no "
                "others: few values repeat by necessity; draw fewer rows, give fewer cells, or allow copies"
            )
        further = drawn_columns(max(len(left), _FEWEST_DRAWN))
        new = np.flatnonzero(~_are_copies(value, further, copied))[: len(left)]
        draws += len(further[0])
        fruitless = 0 if len(new) else fruitless + len(further[0])
        for column, others in zip(columns, further, strict=True):
            column[left[: len(new)]] = others[new]
        left = left[len(new) :]
    return write_table(value.schema, columns)


def _intervals(
    value: FittedJoint, given: Mapping[str, Any] | None, ranges: Mapping[int, tuple[float, float]]
) -> dict[int, list[tuple[float, float]]]:
    """Return the intervals of numbers that findings and ranges leave: those of findings alone where they disagree."""
    found = bounds_of(value.law, given)
    for j, (low, high) in ranges.items():
        inside = [(max(a, low), min(b, high)) for a, b in found.get(j, _ANY) if a <= high and b >= low]
        if inside and value.law.grids[j].of_findings(inside).any():
            found[j] = inside
    return found


def _are_copies(value: FittedJoint, columns: list[Array], copied: Collection[bytes]) -> Array:
    if not copied:
        return np.zeros(len(columns[0]), np.bool_)
    return np.array([key in copied for key in keys_of_drawn(value, columns)], np.bool_)


def columns_of(
    value: FittedJoint,
    codes: Mapping[int, Array],
    rng: np.random.Generator,
    bounds: Mapping[int, list[tuple[float, float]]],
) -> list[Array]:
    """Return columns with drawn codes, from 0 on, as numbers and codes of the schema; numbers within some intervals."""
    law, found = value.law, []
    for j, column in enumerate(value.schema.columns):
        n = len(next(iter(codes.values())))
        if j not in codes:
            found.append(np.full(n, np.nan) if column.kind != "categorical" else np.zeros(n, column.code_type))
        elif j in law.grids:
            found.append(law.grids[j].draw(codes[j], rng, bounds.get(j, _ANY)))
        else:
            found.append((codes[j] + 1).astype(column.code_type))
    return found
