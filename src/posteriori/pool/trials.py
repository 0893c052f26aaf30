"""Trials of costly candidates of a pool: whether they lower its log-loss, on as many rows as that takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from posteriori.fitting.recipe import Recipe
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.learning.folds import stratified_folds, stratified_subsample
from posteriori.learning.pool_weights import fit_pool
from posteriori.model import GenerativeModel, clip_log_posteriors
from posteriori.model_cost import Language
from posteriori.pool.candidates import SURE, TYPICAL_OF_FOREST, CandidateFits, trees_of, typical_weights
from posteriori.support.typing import Array
from posteriori.tables.progress import without_passes

FEWEST_TRIED = 500  # rows; on fewer, a trial saves nothing
_MOST_TRIED = 10_000  # rows that are tried whole, by 20 of 150 trees
_TREES, _FOLDS = 20, 5  # of a trial of all rows: four trees did not see a row
_TREES_OF_PART = 10  # of a trial of a part of the rows: none of them saw a judged row
_SHARE = 0.15  # of the trees times rows of the costly candidates, that the trials of parts may take together
_PARTS = (4, 2, 1)  # how many times fewer rows they have than the last one
_JUDGED_FOLDS, _MOST_JUDGED = 2, 20_000  # of five folds, and rows
_FURTHEST = 8  # times the rows of a part are the most that its gain is followed to
_ERRORS_TO_STOP = 2.0  # standard errors below the least gain, before the last trial
_FEW_ROWS = 5000
_LEAST_GAIN = 0.008  # of the log-loss of the pool, for a candidate to be fitted to all rows, of a trial on few rows
# The gain grows with the rows: on adult it is −0.7 % of 2,000 rows, 0.3 % of 5,000, 0.6 % of 10,000, and 1.0 % of all.
_LEAST_GAIN_OF_MANY = 0.004  # of a trial on more rows
_WEIGHT_PER_STRENGTH, _MOST_WEIGHT = 0.2, 20.0  # least weight of a node, in units of the strength of the back-off


@dataclass(frozen=True)
class Trial:
    """Result of a trial of costly candidates."""

    # the candidates to fit to all rows, with the least weight of a node that suits the table
    kept: dict[str, Recipe]
    skipped: dict[str, str]  # why the others are left out, by name
    models: dict[str, GenerativeModel] = field(default_factory=dict)  # the small ones, by the names of those kept
    n_trees: int = 0  # of each of these
    n_rows: int = 0  # that they were fitted to
    gain: str = ""  # what the trial shows, in a sentence

    def with_room(self, language: Language, taken: float, n_rows: int, fewest: int) -> tuple[Trial, str]:
        """Return the trial with as many trees as a language has room for, and a sentence on the trees that it lacks.

        Parameters
        ----------
        language : Language
        taken : float
            The size of the other candidates.
        n_rows : int
            Of the table: a tree grows in proportion to the rows.
        fewest : int
            With fewer trees a forest is left out.
        """
        kept, skipped, sentences = dict(self.kept), dict(self.skipped), []
        room = SURE * (language.most - taken) / max(len(kept), 1)
        for name, one in self.kept.items():
            wanted = trees_of(one, n_rows)
            per_tree = language.size(self.models[name]) / self.n_trees * max(n_rows / self.n_rows, 1.0)
            n_trees = int(max(room, 0.0) / per_tree)
            if n_trees >= wanted:
                continue
            if n_trees < fewest:
                del kept[name]
                skipped[name] = f"{language.too_large(per_tree * wanted)}; {self.gain}"
                sentences.append(f"{name!r} is left out: {skipped[name]}")
            else:
                kept[name] = one.with_(n_trees=n_trees)
                sentences.append(f"{name!r} has {n_trees} trees, not {wanted}: {language.what} has no room for more")
        return replace(self, kept=kept, skipped=skipped), "; ".join(sentences)


def cost_of_leaving_out(
    fits: CandidateFits, left_out: Iterable[str], folded: FoldedData, penalty: float
) -> tuple[float, float, float]:
    """Return the held-out log-loss of a pool without some candidates, by how much it rises, and its standard error."""
    n, names = len(folded.y_true), list(left_out)
    kept = fits.in_order([name for name in fits.recipes if name not in names])
    without, together = (
        _losses(one.log_posterior[:n], folded, penalty, typical_weights(one.recipes.values())) for one in (kept, fits)
    )
    risen = without - together
    return _mean(without, folded), _mean(risen, folded), _standard_error(risen, folded)


def try_costly(costly: Mapping[str, Recipe], others: CandidateFits, folded: FoldedData, penalty: float) -> Trial:
    """Return which costly candidates can lower the log-loss of the pool.

    Each of them is a forest. A pool of the other candidates and of small forests shows the gain, on held-out rows: with
    its standard error it must reach 0.8 % of the log-loss; on more than 5,000 rows 0.4 %. Up to 10,000 rows the small
    forests have 20 trees, of which four did not see a row.

    On more rows, ten trees are fitted to a part of them, and judged on two fifths that they do not see, at most 20,000
    rows. The others are not fitted again: their held-out predictions are known, by models of all rows, so that the gain
    of the part is rather too small. If it reaches the least gain, the forests join. If not, they are fitted to twice as
    many rows, at most three times. A line through the last two gains, over the square root of the rows, gives the gain
    of all rows, or of eight times as many. If this is less than the least gain by two standard errors, or by one in the
    last trial, the forests are left out; otherwise they join. All trials together take at most 15 % of the trees times
    rows of a fit to all rows.

    Parameters
    ----------
    costly : mapping
    others : CandidateFits
        The other candidates, fitted to all rows.
    folded : FoldedData
    penalty : float
        Of the weights of the pool.
    """
    with warnings.catch_warnings(), without_passes():
        warnings.simplefilter("ignore")
        judged, learned = _parts(folded)
        # Few groups of unequal sizes may leave few rows to judge or to learn from.
        if folded.n_labelled > _MOST_TRIED and min(len(judged), len(learned)) >= FEWEST_TRIED:
            return _tried_on_parts(costly, others, folded, penalty, judged, learned)
        n = len(folded.y_true)
        pools = _PoolsWith(others, np.arange(n), folded, penalty)
        found, fitted = _held_out(_small(costly, _TREES), folded.dealt(min(_FOLDS, folded.folds)))
        gain = pools.gain(found)
    least = _LEAST_GAIN if n <= _FEW_ROWS else _LEAST_GAIN_OF_MANY
    figures = f"in a trial with {_TREES} trees on {n:,} rows"
    if gain.mean + gain.error < least * pools.log_loss:
        reason = f"{figures}, the costly candidates lower {pools.stated(gain)}; it takes {least:.1%}"
        return Trial({}, dict.fromkeys(costly, reason))
    return _kept(costly, fitted, _TREES, n, f"{figures}, it lowers {pools.stated(gain)}")


def _parts(folded: FoldedData) -> tuple[Array, Array]:
    """Return the positions of the rows that judge forests, and of those that forests may learn; no group has both."""
    part = folded.dealt(min(_FOLDS, folded.folds), 1).fold
    is_judged = part < max((int(part.max()) + 1) * _JUDGED_FOLDS // _FOLDS, 1)
    judged = np.flatnonzero(is_judged)
    return judged[stratified_subsample(folded.y_true[judged], _MOST_JUDGED)], np.flatnonzero(~is_judged)


def _tried_on_parts(
    costly: Mapping[str, Recipe],
    others: CandidateFits,
    folded: FoldedData,
    penalty: float,
    judged: Array,
    learned: Array,
) -> Trial:
    """Return which costly candidates can lower the log-loss, by trials of growing parts of the rows."""
    rows, n_all = folded.chosen(judged), folded.n_labelled
    pools = _PoolsWith(others, judged, replace(rows, fold=stratified_folds(rows.y_true, _FOLDS)), penalty)
    least = _LEAST_GAIN_OF_MANY * pools.log_loss
    small = _small(costly, _TREES_OF_PART)
    affordable = _SHARE * n_all * sum(trees_of(one, n_all) for one in costly.values()) / (_TREES_OF_PART * len(small))
    most = min(int(affordable / sum(1.0 / times for times in _PARTS)), len(learned))
    before: tuple[int, Array] | None = None
    for times in _PARTS:
        n = most // times
        chosen = learned[stratified_subsample(folded.y_true[learned], n)]
        found, fitted = _held_out(small, folded.part(judged, chosen))
        gain = pools.gain(found)
        figures = f"in a trial with {_TREES_OF_PART} trees on {n:,} rows"
        if gain.mean >= least:
            break
        if before is not None:
            reached = min(n_all, _FURTHEST * n)
            risen, steps = gain.of_rows - before[1], (reached**0.5 - n**0.5) / (n**0.5 - before[0] ** 0.5)
            forecast = pools.summed(gain.of_rows + risen * steps)
            n_errors = 1.0 if times == _PARTS[-1] else _ERRORS_TO_STOP
            if max(forecast.mean, gain.mean) + n_errors * forecast.error < least:
                reason = (
                    f"{figures}, the costly candidates lower {pools.stated(gain)}; it takes {_LEAST_GAIN_OF_MANY:.1%}, "
                    f"and {reached:,} rows would give about {forecast.mean:.4f} ± {forecast.error:.4f}"
                )
                return Trial({}, dict.fromkeys(costly, reason))
        before = n, gain.of_rows
    return _kept(costly, fitted, _TREES_OF_PART, n, f"{figures}, it lowers {pools.stated(gain)}")


def _small(costly: Mapping[str, Recipe], n_trees: int) -> list[Recipe]:
    return [one.with_(n_trees=n_trees) for one in costly.values()]


def _kept(costly: Mapping[str, Recipe], fitted: Sequence[CrossFitted], n_trees: int, n_rows: int, gain: str) -> Trial:
    """Return the trial of candidates that are kept, with the least weight of a node that the small ones show."""
    kept = {}
    for (name, one), fits in zip(costly.items(), fitted, strict=True):
        density: Any = fits.full.model.blocks[0].density
        strength = float(np.exp(np.log(np.maximum(density.strengths[0], 1e-6)).mean()))
        weight = float(np.clip(_WEIGHT_PER_STRENGTH * strength, 2.0, _MOST_WEIGHT))
        kept[name] = one.with_(min_weight=weight)
    models = {name: fits.full.model for name, fits in zip(costly, fitted, strict=True)}
    return Trial(kept, {}, models, n_trees, n_rows, gain)


@dataclass(frozen=True)
class _Gain:
    """By how much the log-loss falls, in nats."""

    of_rows: Array  # (n,)
    mean: float
    error: float


class _PoolsWith:
    """Pools of the other candidates, with and without further ones, on the rows at some positions."""

    def __init__(self, others: CandidateFits, positions: Array, rows: FoldedData, penalty: float) -> None:
        self._log_posterior = others.log_posterior[positions]
        self._typical = typical_weights(others.recipes.values())
        self._rows, self._penalty = rows, penalty
        self._without = _losses(self._log_posterior, rows, penalty, self._typical)
        self.log_loss = _mean(self._without, rows)  # without further ones

    def gain(self, found: Array) -> _Gain:
        """Return the gain by forests with held-out predictions (n, C, M)."""
        together = np.concatenate([self._log_posterior, found], axis=2)
        typical = np.append(self._typical, np.full(found.shape[2], TYPICAL_OF_FOREST))
        return self.summed(self._without - _losses(together, self._rows, self._penalty, typical))

    def summed(self, of_rows: Array) -> _Gain:
        """Return the mean of gains of the rows, with its standard error."""
        return _Gain(of_rows, _mean(of_rows, self._rows), _standard_error(of_rows, self._rows))

    def stated(self, gain: _Gain) -> str:
        """Return the end of a sentence after a form of "lower": the log-loss of the pool, and by how much."""
        return f"the log-loss of the pool, {self.log_loss:.4f}, by {gain.mean:.4f} ± {gain.error:.4f}"


def _held_out(recipes: Sequence[Recipe], folded: FoldedData) -> tuple[Array, list[CrossFitted]]:
    """Return the held-out predictions of some models, (n, C, M), clipped, and their models."""
    plans = [one.plan(folded.source.schema, folded.target) for one in recipes]
    found, fitted, _ = judge_and_sample(plans, folded, leave_trees_out=True)
    return clip_log_posteriors(found), fitted


def _losses(log_posterior: Array, folded: FoldedData, penalty: float, typical: Array) -> Array:
    """Return the log-loss of each row in nats, (n,), by a pool whose weights are fitted without its fold."""
    y_true, fold, weight = folded.y_true, folded.fold, folded.weight
    start = fit_pool(log_posterior, y_true, weight, penalty, typical=typical)
    found = np.empty(len(y_true))
    for k in range(folded.folds):
        inside = fold == k
        pool = fit_pool(log_posterior[~inside], y_true[~inside], weight[~inside], penalty, start, typical)
        held_out = pool.log_posterior(log_posterior[inside])
        found[inside] = -held_out[np.arange(len(held_out)), y_true[inside]]
    return found


def _mean(losses: Array, folded: FoldedData) -> float:
    return float(folded.weight @ losses / folded.weight.sum())


def _standard_error(differences: Array, folded: FoldedData) -> float:
    deviation = folded.weight * (differences - _mean(differences, folded))
    return float(np.sqrt((deviation**2).sum()) / folded.weight.sum())
