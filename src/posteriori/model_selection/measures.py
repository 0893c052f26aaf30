"""The measures by which models are compared: how tables, sentences and axes name them, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass

from posteriori.support.formatting import UNDEFINED, number


@dataclass(frozen=True)
class Measure:
    """A score of a model, or the time that it takes."""

    title: str  # at the head of a column
    in_text: str  # in sentences
    long: str  # alone on a line or an axis
    unit: str = ""
    more_is_better: bool = False
    decimals: int | None = 3  # None: four significant digits, in units of the target
    is_time: bool = False

    def line(self, of_rows: str = "") -> str:
        """Return the name with its unit, alone on a line."""
        return self.long + of_rows + (f" ({self.unit})" if self.unit else "")

    def text(self, value: float | None, error: float | None = None, decimals: int | None = None) -> str:
        """Write a value, with its standard error after ± if there is one."""
        if value is None:
            return UNDEFINED
        places = decimals or self.decimals
        pairs = ((one, digits) for one, digits in ((value, 4), (error, 2)) if one is not None)
        return " ± ".join(
            number(one, digits) if self.decimals is None else f"{one:.{places}f}" for one, digits in pairs
        )


MEASURES = {
    "accuracy": Measure("accuracy", "accuracy", "accuracy", more_is_better=True),
    "log_loss": Measure("log-loss", "log loss", "log-loss", "nats per row"),
    "brier": Measure("Brier", "brier", "Brier score"),
    "ranked_score": Measure("ranked", "ranked score", "ranked probability score", "levels"),
    "auc": Measure("AUC", "AUC", "AUC", more_is_better=True),
    "calibration_error": Measure("calibration", "calibration error", "calibration error"),
    "crps": Measure("CRPS", "CRPS", "CRPS", decimals=None),
    "log_score": Measure("log score", "log score", "log score", "nats", decimals=None),
    "rmse": Measure("RMSE", "RMSE", "RMSE", decimals=None),
    "mae": Measure("MAE", "MAE", "MAE", decimals=None),
    "r2": Measure("R²", "R²", "R²", more_is_better=True, decimals=None),
    "coverage": Measure("coverage", "coverage", "coverage of 90% intervals", decimals=None),
    "width": Measure("width", "width", "their mean width", decimals=None),
    "fit_seconds": Measure("seconds", "fit seconds", "seconds to fit", is_time=True),
    "predict_seconds": Measure("seconds", "predict seconds", "seconds to predict the held-out rows", is_time=True),
}
OF_CLASSES = ("log_loss", "accuracy", "brier", "auc", "calibration_error")
OF_NUMBERS = ("crps", "log_score", "rmse", "mae", "r2", "coverage", "width")
