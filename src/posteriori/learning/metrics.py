"""Former path of the metrics, now in `posteriori.model_selection.metrics`."""

from posteriori.learning.forwarding import forward

__getattr__ = forward(
    __name__,
    "posteriori.model_selection.metrics",
    (
        "Calibration",
        "PerClass",
        "accuracy",
        "brier_score",
        "calibration",
        "confusion_matrix",
        "fill_undefined",
        "log_loss",
        "precision_recall",
    ),
)
