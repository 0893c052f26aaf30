"""Former path of the metrics, now in `posteriori.model_selection.metrics`."""

from posteriori.deprecation import renamed_module_attributes

_MOVED = (
    "Calibration",
    "PerClass",
    "accuracy",
    "brier_score",
    "calibration",
    "confusion_matrix",
    "fill_undefined",
    "log_loss",
    "precision_recall",
)

__getattr__ = renamed_module_attributes(
    __name__, {name: f"posteriori.model_selection.metrics.{name}" for name in _MOVED}
)
