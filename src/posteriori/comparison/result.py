"""The result of a comparison of models: its curves, their crossings, and its text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from posteriori.model_selection.measures import MEASURES
from posteriori.support.markup import paragraph, side_by_side
from posteriori.support.markup import table as html_table
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def crossing_sentence(crossing: Mapping[str, Any]) -> str:
    """Write a row of `Comparison.crossings` as a sentence.

    Examples
    --------
    >>> crossing_sentence(
    ...     {
    ...         "generative": "LDA",
    ...         "discriminative": "logistic regression",
    ...         "measure": "log_loss",
    ...         "n_rows": 83.2,
    ...         "leads_before": "LDA",
    ...         "leads_after": "logistic regression",
    ...         "n_crossings": 1,
    ...         "sure": True,
    ...     }
    ... )
    'log loss: logistic regression overtakes LDA at about 83 rows'
    """
    measure = MEASURES[crossing["measure"]].in_text
    pair = crossing["generative"], crossing["discriminative"]
    leader = crossing["leads_after"]
    if leader is None:
        return f"{measure}: {pair[0]} and {pair[1]} do not differ"
    behind = pair[1] if leader == pair[0] else pair[0]
    if crossing["n_rows"] is None:
        return f"{measure}: {leader} leads {behind} throughout"
    doubt = "" if crossing["sure"] else ", which may be chance"
    often = f" for the last of {crossing['n_crossings']} times" if crossing["n_crossings"] > 1 else ""
    return f"{measure}: {leader} overtakes {behind} at about {crossing['n_rows']:.0f} rows{often}{doubt}"


def text_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as text: right-aligned columns, two blanks apart."""
    rows = [head, *lines]
    widths = [max(len(row[position]) for row in rows) for position in range(len(head))]
    pairs = (zip(row, widths, strict=True) for row in rows)
    return "\n".join("  ".join(cell.rjust(width) for cell, width in pair) for pair in pairs)


_SIGNIFICANT = 3.0  # standard errors


@dataclass(frozen=True)
class Crossing:
    """The last crossing of two curves: the lead of the first over the second changes its sign.

    Attributes
    ----------
    n_rows : float or None
        The number of rows at which the mean lead changes its sign for the last time; None if it never does.
    first, last : int
        The leader before and after: 1 for the first curve, −1 for the second; 0 if the two never differ.
    n_crossings : int
        The number of sign changes. It can exceed 1 by chance if the curves are close.
    sure : bool
        Whether the leader before the crossing leads at some size by more than three standard errors, and the leader
        after it does at some later size.
    """

    n_rows: float | None
    first: int
    last: int
    n_crossings: int
    sure: bool


def find_crossing(n_rows: Array, lead: Array) -> Crossing:
    """Locate the last sign change of the mean lead, by linear interpolation over log n.

    Parameters
    ----------
    n_rows : ndarray (S,)
        The training sizes, ascending.
    lead : ndarray (S, R)
        The lead for each size and repeat: above 0 if the first curve is better.

    Examples
    --------
    >>> crossing = find_crossing(np.array([10, 1000]), np.array([[0.25], [-0.25]]))
    >>> round(crossing.n_rows, 6), crossing.first, crossing.last
    (100.0, 1, -1)
    """
    mean, log_n = lead.mean(axis=1), np.log(n_rows)
    decided = np.flatnonzero(mean)
    if not len(decided):
        return Crossing(None, 0, 0, 0, False)
    sign = np.sign(mean[decided]).astype(int)
    changes = np.flatnonzero(sign[1:] != sign[:-1])
    if not len(changes):
        return Crossing(None, int(sign[0]), int(sign[0]), 0, False)
    before, after = decided[changes[-1]], decided[changes[-1] + 1]
    if after == before + 1:
        fraction = mean[before] / (mean[before] - mean[after])
        position = log_n[before] + fraction * (log_n[after] - log_n[before])
    else:  # the curves are equal at the sizes in between: take the middle
        position = (log_n[before + 1] + log_n[after - 1]) / 2
    first, last = int(sign[changes[-1]]), int(sign[changes[-1] + 1])
    sure = _leads_clearly(first * lead[:after]) and _leads_clearly(last * lead[after:])
    return Crossing(float(np.exp(position)), first, last, len(changes), sure)


def _leads_clearly(lead: Array) -> bool:
    """Whether the mean lead over repeats, (S, R), exceeds three of its standard errors at some size."""
    repeats = lead.shape[1]
    if repeats < 2:
        return False
    return bool((lead.mean(axis=1) > _SIGNIFICANT * lead.std(axis=1, ddof=1) / np.sqrt(repeats)).any())


_KEYS = ("model", "n_rows", "repeat")
_ASIDE = ("brier", "predict_seconds")  # measures that no page shows


@dataclass(frozen=True)
class Comparison:
    """Learning curves of several models on the same rows.

    Attributes
    ----------
    scores : polars DataFrame
        One row per ``model``, training size ``n_rows`` and ``repeat``: ``accuracy``, ``log_loss`` (nats per row),
        ``brier`` (in [0, 2]), ``fit_seconds`` and ``predict_seconds`` (for all test rows). Of numbers ``crps``, null
        without a density, and ``rmse`` in place of the first three.
    generative, discriminative : tuple of str
        The titles of the models of p(x, y), and of the models of p(y | x) alone.
    n_test : int
        The number of test rows in each repeat.
    notes : polars DataFrame
        Warnings of the models: ``model``, ``n_rows``, ``message``, and ``repeats``, the number of repeats with the
        warning.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> comparison = po.compare(["nb", "lda"], table, "species", sizes=[50, 200], repeats=2)
    >>> comparison.scores.columns
    ['model', 'n_rows', 'repeat', 'accuracy', 'log_loss', 'brier', 'fit_seconds', 'predict_seconds']
    >>> comparison.generative, comparison.discriminative
    (('naive Bayes', 'LDA'), ())
    """

    scores: pl.DataFrame
    generative: tuple[str, ...]
    discriminative: tuple[str, ...]
    n_test: int
    notes: pl.DataFrame

    @property
    def models(self) -> tuple[str, ...]:
        """The titles of the models, in the order in which they were given."""
        return tuple(self.scores["model"].unique(maintain_order=True).to_list())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The training sizes, ascending."""
        return tuple(self.scores["n_rows"].unique().sort().to_list())

    @property
    def repeats(self) -> int:
        """The number of random divisions into training and test rows."""
        return self.scores["repeat"].n_unique()

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the scores, and of the times."""
        return tuple(name for name in self.scores.columns if name not in _KEYS)

    @property
    def shown(self) -> tuple[str, ...]:
        """The measures that pages show."""
        return tuple(name for name in self.measures if name not in _ASIDE)

    @property
    def main_measure(self) -> str:
        """The score by which models are judged first: log_loss, or rmse of numbers, which all models have."""
        return "log_loss" if "log_loss" in self.measures else "rmse"

    @cached_property
    def summary(self) -> pl.DataFrame:
        """The mean of every measure over the repeats, per model and size, and its standard error as ``…_error``.

        The error is null if there is one repeat only. Repeats share the rows of one table: the error measures the
        variation between divisions of these rows, and not the variation between tables.
        """
        root = self.repeats**0.5
        means = [pl.col(name).mean() for name in self.measures]
        errors = [(pl.col(name).std() / root).alias(f"{name}_error") for name in self.measures]
        pairs = itertools.chain.from_iterable(zip(means, errors, strict=True))
        return self.scores.group_by("model", "n_rows", maintain_order=True).agg(*pairs)

    @cached_property
    def crossings(self) -> pl.DataFrame:
        """Crossings of the mean curves of each generative and each discriminative model.

        One row per pair and score (accuracy, log_loss and brier; of numbers rmse, and crps if both have it):

        - ``n_rows``: the training size of the last crossing, interpolated over log n; null if there is none;
        - ``leads_before`` and ``leads_after``: the better model before and after it; null if the two never differ;
        - ``n_crossings``: the number of crossings;
        - ``sure``: whether the first of these leads at some size before by more than three standard errors over the
          repeats, and the second at some size after. Other crossings may be chance.
        """
        columns = {
            "generative": pl.String,
            "discriminative": pl.String,
            "measure": pl.String,
            "n_rows": pl.Float64,
            "leads_before": pl.String,
            "leads_after": pl.String,
            "n_crossings": pl.Int64,
            "sure": pl.Boolean,
        }
        return pl.DataFrame(list(self._crossings()), columns, orient="row")

    def _crossings(self) -> Iterator[tuple[Any, ...]]:
        scores = [name for name in self.measures if not MEASURES[name].is_time]
        for generative, discriminative, measure in itertools.product(self.generative, self.discriminative, scores):
            lead = self._curves(generative, measure) - self._curves(discriminative, measure)
            if np.isnan(lead).all():
                continue
            crossing = find_crossing(
                pl.Series(self.sizes).to_numpy(), lead if MEASURES[measure].more_is_better else -lead
            )
            titles = {1: generative, -1: discriminative, 0: None}
            leaders = titles[crossing.first], titles[crossing.last]
            yield generative, discriminative, measure, crossing.n_rows, *leaders, crossing.n_crossings, crossing.sure

    def _curves(self, model: str, measure: str) -> Any:
        """Return a measure of a model by size and repeat, (S, R)."""
        rows = self.scores.filter(pl.col("model") == model).sort("n_rows", "repeat")
        return rows[measure].cast(pl.Float64).to_numpy().reshape(len(self.sizes), -1)

    def plot(self, measure: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the learning curves of one measure; see `posteriori.plotting.plot_learning_curves`."""
        from posteriori.plotting import plot_learning_curves

        return plot_learning_curves(self, measure, ax=ax)

    def __str__(self) -> str:
        tables = (f"{title}\n{text_table(head, lines)}" for title, head, lines in self._tables())
        return "\n\n".join(part for part in (self._title, *tables, "\n".join(self._sentences())) if part)

    def _repr_html_(self) -> str:
        tables = side_by_side(html_table(*parts) for parts in self._tables())
        return paragraph(self._title) + tables + "".join(map(paragraph, self._sentences()))

    @property
    def _title(self) -> str:
        return f"{self.repeats} repeat{'s' if self.repeats > 1 else ''}, {self.n_test} rows to test"

    def _tables(self) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """Yield the title, the head and the lines of the table of each shown measure."""
        rows = {(row["model"], row["n_rows"]): row for row in self.summary.iter_rows(named=True)}
        for name in self.shown:
            measure = MEASURES[name]
            error = "" if measure.is_time else f"{name}_error"
            cells = {key: measure.text(row[name], row.get(error)) for key, row in rows.items()}
            lines = [[str(size), *(cells[model, size] for model in self.models)] for size in self.sizes]
            yield measure.in_text, ["rows", *self.models], lines

    def _sentences(self) -> list[str]:
        crossings = self.crossings.filter(pl.col("measure") == self.main_measure)
        return [crossing_sentence(row) for row in crossings.iter_rows(named=True)]
