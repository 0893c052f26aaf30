"""Predictions of a number for one row at a time, given as a dict: of regressors that are sums, from their files too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from posteriori.model.predictive import NumberCells, PredictiveDensity
from posteriori.model_files import parse, read_file, refuse_unknown, unpack
from posteriori.scoring.posterior import RowsOfDicts
from posteriori.support.checks import require
from posteriori.support.formatting import plural
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_COVERAGE = 0.9


class Sums(Protocol):
    """Sums of features with Student's t around them: `posteriori.regression.locations.Locations`."""

    @property
    def cells(self) -> NumberCells:
        """The cells of the target."""

    def student_probability(self, batch: Batch) -> Array:
        """Return the probability of each cell, (n, G)."""


@dataclass(frozen=True)
class NumberScorer:
    """The mean and the 90 % interval of a number, from one row as a dict to a dict, for services.

    The numbers are those of `predict` and `predict_interval`, and the keys those of the columns that
    ``posteriori predict`` writes. No data frame is made, and the object can be pickled. A key that the row lacks, None
    and NaN are missing cells. Keys that are not columns are ignored, and unseen categories count as missing, both with
    a UserWarning.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins().drop_nulls("body_mass_g")
    >>> score = po.AdditiveRegressor().fit(penguins, "body_mass_g").scorer()
    >>> list(score({"species": "Gentoo", "sex": "male", "island": None}))
    ['prediction', 'prediction_low', 'prediction_high']
    """

    sums: Sums
    schema: Schema
    model: str  # the name of the model in messages

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the training table, which are keys of a row."""
        return self.schema.given

    def __repr__(self) -> str:
        return f"<NumberScorer: {plural(len(self.names), 'column')}>"

    @cached_property
    def _rows(self) -> RowsOfDicts:
        return RowsOfDicts(self.schema, self.model, "predict")

    def __call__(self, row: Mapping[str, Any]) -> dict[str, float]:
        """Return the mean and the ends of the central 90 % interval.

        Parameters and errors are those of `Scorer`.
        """
        density = self.density(row)
        low, high = density.interval(_COVERAGE)[0].tolist()
        return {"prediction": float(density.mean[0]), "prediction_low": low, "prediction_high": high}

    def density(self, row: Mapping[str, Any]) -> PredictiveDensity:
        """Return the density of the number of a row, with quantiles and probabilities of ranges: of one row."""
        probability = self.sums.student_probability(self._rows.batch(row))
        return PredictiveDensity(self.sums.cells, probability, self.schema.target or "y")


def number_scorer(path: Path) -> NumberScorer:
    """Read the scorer of a regressor out of a model file, without scikit-learn and SciPy.

    Raises
    ------
    ValueError
        As `posteriori.load`; or the file holds a `GenerativeRegressor`, whose trees need Numba.
    """
    metadata, arrays = read_file(path)
    with refuse_unknown(path):
        fitted = parse(metadata["content"])["fitted"]
        fields = fitted["fields"]
        if fitted["type"] == "FittedGaussian":
            found, schema = (unpack(fields[key], arrays) for key in ("found", "of_columns"))
            require(isinstance(schema, Schema) and len(found.locations) == 1, "there is not one location")
            found.check_locations(schema)
            return NumberScorer(found, schema, fields["recipe"]["estimator"]["recipe"])
    raise ValueError(
        f"{str(path)!r} predicts a number by a GenerativeRegressor, which has no scorer: use "
        "posteriori.load(path).predict, or save its additive_member()"
    )
