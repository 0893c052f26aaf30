"""The result of a comparison of models."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from posteriori.comparison.crossings import find_crossing
from posteriori.comparison.writing import crossing_sentence, text_table
from posteriori.html_tables import paragraph, side_by_side
from posteriori.html_tables import table as html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The scores, and whether a greater value is better.
SCORES = {"accuracy": True, "log_loss": False, "brier": False}
MEASURES = (*SCORES, "fit_seconds", "predict_seconds")


@dataclass(frozen=True)
class Comparison:
    """Learning curves of several models on the same rows.

    Attributes
    ----------
    scores : polars DataFrame
        One row per ``model``, training size ``n_rows`` and ``repeat``: ``accuracy``, ``log_loss`` (nats per row),
        ``brier`` (in [0, 2]), ``fit_seconds`` and ``predict_seconds`` (for all test rows).
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
    >>> comparison = po.compare(table, "species", models=["nb", "lda"], sizes=[50, 200], repeats=2)
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

    @cached_property
    def summary(self) -> pl.DataFrame:
        """The mean of every measure over the repeats, per model and size, and its standard error as ``…_error``.

        The error is null if there is one repeat only. Repeats share the rows of one table: the error measures the
        variation between divisions of these rows, and not the variation between tables.
        """
        root = self.repeats**0.5
        means = [pl.col(name).mean() for name in MEASURES]
        errors = [(pl.col(name).std() / root).alias(f"{name}_error") for name in MEASURES]
        pairs = itertools.chain.from_iterable(zip(means, errors, strict=True))
        return self.scores.group_by("model", "n_rows", maintain_order=True).agg(*pairs)

    @cached_property
    def crossings(self) -> pl.DataFrame:
        """Crossings of the mean curves of each generative and each discriminative model.

        One row per pair and score (accuracy, log_loss and brier):

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
        for generative, discriminative, measure in itertools.product(self.generative, self.discriminative, SCORES):
            lead = self._curves(generative, measure) - self._curves(discriminative, measure)
            crossing = find_crossing(pl.Series(self.sizes).to_numpy(), lead if SCORES[measure] else -lead)
            titles = {1: generative, -1: discriminative, 0: None}
            leaders = titles[crossing.first], titles[crossing.last]
            yield generative, discriminative, measure, crossing.n_rows, *leaders, crossing.n_crossings, crossing.sure

    def _curves(self, model: str, measure: str) -> Any:
        """Return a measure of a model by size and repeat, (S, R)."""
        rows = self.scores.filter(pl.col("model") == model).sort("n_rows", "repeat")
        return rows[measure].to_numpy().reshape(len(self.sizes), -1)

    def plot(self, measure: str = "log_loss", ax: Axes | None = None) -> Axes:
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
        for measure in ("accuracy", "log_loss", "fit_seconds"):
            lines = [[str(size), *(self._cell(model, size, measure) for model in self.models)] for size in self.sizes]
            yield measure.replace("_", " "), ["rows", *self.models], lines

    def _sentences(self) -> list[str]:
        log_loss = self.crossings.filter(pl.col("measure") == "log_loss")
        return [crossing_sentence(row) for row in log_loss.iter_rows(named=True)]

    def _cell(self, model: str, size: int, measure: str) -> str:
        row = self.summary.row(by_predicate=(pl.col("model") == model) & (pl.col("n_rows") == size), named=True)
        error = row[f"{measure}_error"]
        return f"{row[measure]:.3f}" + ("" if error is None or measure == "fit_seconds" else f" ± {error:.3f}")
