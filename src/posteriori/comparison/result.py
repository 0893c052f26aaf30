"""What a comparison has found."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from posteriori.comparison.crossings import find_crossing
from posteriori.comparison.writing import crossing_sentence, text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What is measured, and whether more of it is better.
SCORES = {"accuracy": True, "log_loss": False, "brier": False}
MEASURES = (*SCORES, "fit_seconds", "predict_seconds")


@dataclass(frozen=True)
class Comparison:
    """Learning curves of several models on the same rows.

    Attributes
    ----------
    scores : polars DataFrame
        A row for each ``model``, ``n_rows`` learned from and ``repeat``: ``accuracy``, ``log_loss`` (nats a row),
        ``brier`` (in [0, 2]), ``fit_seconds`` and ``predict_seconds`` (of all test rows).
    generative, discriminative : tuple of str
        The models that have p(x, y), and those that have p(y | x) alone.
    n_test : int
        How many rows the models are judged on, in each repeat.
    notes : polars DataFrame
        What the models warned of: ``model``, ``n_rows``, ``message``, and ``repeats``, in how many of them.
    """

    scores: pl.DataFrame
    generative: tuple[str, ...]
    discriminative: tuple[str, ...]
    n_test: int
    notes: pl.DataFrame

    @property
    def models(self) -> tuple[str, ...]:
        """What the models are called, in the order they were given."""
        return tuple(self.scores["model"].unique(maintain_order=True).to_list())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of rows learned from, ascending."""
        return tuple(self.scores["n_rows"].unique().sort().to_list())

    @property
    def repeats(self) -> int:
        """How often rows were divided anew."""
        return self.scores["repeat"].n_unique()

    @cached_property
    def summary(self) -> pl.DataFrame:
        """The mean over the repeats of every measure of each model and size, and its standard error as ``…_error``.

        The error is null where there is one repeat only. Repeats share rows of one table: the error is that of how
        rows were divided, and says nothing of how the curves would be on another table.
        """
        root = self.repeats**0.5
        means = [pl.col(name).mean() for name in MEASURES]
        errors = [(pl.col(name).std() / root).alias(f"{name}_error") for name in MEASURES]
        pairs = itertools.chain.from_iterable(zip(means, errors, strict=True))
        return self.scores.group_by("model", "n_rows", maintain_order=True).agg(*pairs)

    @cached_property
    def crossings(self) -> pl.DataFrame:
        """Where the mean curves of each generative and each discriminative model cross.

        A row for each pair and each of accuracy, log_loss and brier:

        - ``n_rows``: where one overtakes the other for the last time, interpolated over log n; null if it never does;
        - ``leads_before`` and ``leads_after``: the better model before and after; null if the two never differ;
        - ``n_crossings``: how often they cross;
        - ``sure``: whether the one that leads before does so at some size by more than three standard errors of the
          lead over the repeats, and the other at some size after. A crossing that is not sure may be chance.
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
        for one, other, measure in itertools.product(self.generative, self.discriminative, SCORES):
            lead = self._curves(one, measure) - self._curves(other, measure)
            found = find_crossing(pl.Series(self.sizes).to_numpy(), lead if SCORES[measure] else -lead)
            who = {1: one, -1: other, 0: None}
            leaders = who[found.first], who[found.last]
            yield one, other, measure, found.n_rows, *leaders, found.n_crossings, found.sure

    def _curves(self, model: str, measure: str) -> Any:
        """Return a measure of a model, (S, R)."""
        rows = self.scores.filter(pl.col("model") == model).sort("n_rows", "repeat")
        return rows[measure].to_numpy().reshape(len(self.sizes), -1)

    def plot(self, measure: str = "log_loss", ax: Axes | None = None) -> Axes:
        """Draw the learning curves of one measure; see `posteriori.plotting.plot_learning_curves`."""
        from posteriori.plotting import plot_learning_curves

        return plot_learning_curves(self, measure, ax=ax)

    def __str__(self) -> str:
        plural = "s" if self.repeats > 1 else ""
        parts = [f"{self.repeats} repeat{plural}, {self.n_test} rows to test"]
        for measure in ("accuracy", "log_loss", "fit_seconds"):
            head = ["rows", *self.models]
            lines = [[str(size), *(self._cell(model, size, measure) for model in self.models)] for size in self.sizes]
            parts.append(f"{measure.replace('_', ' ')}\n{text_table(head, lines)}")
        log_loss = self.crossings.filter(pl.col("measure") == "log_loss")
        parts.append("\n".join(crossing_sentence(row) for row in log_loss.iter_rows(named=True)))
        return "\n\n".join(part for part in parts if part)

    def _cell(self, model: str, size: int, measure: str) -> str:
        row = self.summary.row(by_predicate=(pl.col("model") == model) & (pl.col("n_rows") == size), named=True)
        error = row[f"{measure}_error"]
        return f"{row[measure]:.3f}" + ("" if error is None or measure == "fit_seconds" else f" ± {error:.3f}")

    def _repr_html_(self) -> str:
        return f"{self.summary._repr_html_()}{self.crossings._repr_html_()}"
