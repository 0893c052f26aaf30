"""Candidates of a pool that are fitted within a time budget."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

from posteriori.fitting.recipe import Recipe
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.pool.candidates import CANNOT_FIT, CandidateFits, CandidateFitter, is_forest, reason_of, trees_of
from posteriori.tables.progress import without_passes

_RESERVE = 0.2  # of the budget, for the weights and the scores of the pool
_SAMPLED = 1000  # rows on which a candidate is timed
_MOST_REFUSED = 3  # candidates that are timed and take too long; the others are not even timed
_FEWEST_TREES = 10
_TIMED_TREES = 10


@dataclass(frozen=True)
class TimeBudget:
    """Seconds for a fit."""

    seconds: float
    begun: float  # when the fit began, by `time.monotonic`

    def left(self) -> float:
        """Return the seconds that candidates may still take."""
        return self.seconds * (1.0 - _RESERVE) - (time.monotonic() - self.begun)


def fit_within(
    budget: TimeBudget, fitter: CandidateFitter, recipes: Mapping[str, Recipe]
) -> tuple[CandidateFits, dict[str, str]]:
    """Fit the candidates one by one while there is time; return them, and why the others are left out.

    A candidate is timed on 1,000 rows, if the table has four times as many, and its time on all rows is predicted to be
    in proportion to the rows, corrected by what the earlier candidates took. Without a sample it is expected to take as
    long as the longest so far. A forest gets as many trees as fit into the time that is left. Candidates are tried in
    the order given, and the first that can be fitted is fitted in any case.

    Raises
    ------
    ValueError
        All candidates fail.
    """
    folded = fitter.folded
    fits: CandidateFits | None = None
    skipped: dict[str, str] = {}
    errors: dict[str, Exception] = {}
    refused = 0
    forecast = _Forecast(folded)
    for name, one in recipes.items():
        candidate, expected = one, 0.0
        if fits is not None:
            if budget.left() <= 0 or refused == _MOST_REFUSED:
                skipped[name] = f"too little time is left of the budget of {budget.seconds:g} s"
                continue
            try:
                suited, expected = forecast.affordable(one, budget)
            except CANNOT_FIT as error:
                errors[name] = error
                continue
            if suited is None:
                refused += 1
                skipped[name] = (
                    f"it would take about {expected:.2g} s, and {max(budget.left(), 0.0):.2g} s are left of the budget "
                    f"of {budget.seconds:g} s"
                )
                continue
            candidate = suited
        begun = time.monotonic()
        try:
            found = fitter.fit({name: candidate})
        except CANNOT_FIT as error:
            errors[name] = error
            continue
        seconds = time.monotonic() - begun
        if fits is None and budget.left() > 0:
            expected = forecast.seconds(one)
        forecast.learn(expected, seconds)
        fits = found if fits is None else fits.joined(found)
    if fits is None:
        raise next(iter(errors.values()))
    failed = {name: reason_of(error) for name, error in errors.items()}
    return replace(fits, failed=fits.failed | failed), skipped


class _Forecast:
    """Expected seconds of candidates, from a sample of the rows and from the candidates so far."""

    def __init__(self, folded: FoldedData) -> None:
        self._folded = folded
        self._sample: FoldedData | None = None
        self._longest = 0.0
        self._ratio = 1.0  # of the time that the last candidate took to that expected from the sample

    def affordable(self, one: Recipe, budget: TimeBudget) -> tuple[Recipe | None, float]:
        """Return the candidate, with as many trees as fit into the budget, or None; and its expected seconds."""
        if not is_forest(one):
            expected = self.seconds(one)
            return (one if expected <= budget.left() else None), expected
        wanted = trees_of(one, self._folded.n_labelled)
        per_tree = self.seconds(one.with_(n_trees=_TIMED_TREES)) / _TIMED_TREES
        fewest = min(wanted, max(_FEWEST_TREES, self._folded.folds))
        n_trees = wanted if per_tree * wanted <= budget.left() else int(budget.left() / per_tree)
        if n_trees < fewest:
            return None, per_tree * fewest
        return one.with_(n_trees=n_trees), per_tree * n_trees

    def learn(self, expected: float, seconds: float) -> None:
        """Correct the following forecasts by what a candidate took."""
        self._longest = max(self._longest, seconds)
        if expected > 0 and self._sample is not None:
            self._ratio = min(max(self._ratio * seconds / expected, 0.1), 10.0)

    def seconds(self, one: Recipe) -> float:
        """Return how long a candidate is expected to take on all rows, from a sample of them."""
        folded = self._folded
        if folded.n_labelled < 4 * _SAMPLED:
            return self._longest
        if self._sample is None:
            self._sample = folded.sample(_SAMPLED)
        begun = time.monotonic()
        with warnings.catch_warnings(), without_passes():
            warnings.simplefilter("ignore")
            plan = one.plan(self._sample.source.schema, self._sample.target)
            judge_and_sample([plan], self._sample, leave_trees_out=True)
        return self._ratio * (time.monotonic() - begun) * folded.n_labelled / len(self._sample.y_true)
