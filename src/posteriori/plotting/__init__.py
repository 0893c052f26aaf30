"""Figures of fitted models. Each function draws on an Axes, by default one of a new figure, and returns it.

It reads what a fitted model has learned and scores rows of the caller. Matplotlib is imported when a figure is drawn,
and an ImportError says so if it is not installed.
"""

from posteriori.plotting.effects import plot_densities, plot_effect
from posteriori.plotting.graphs import plot_network, plot_tree
from posteriori.plotting.held_out import plot_calibration, plot_confusion, plot_lift, plot_precision_recall, plot_roc
from posteriori.plotting.importance import plot_feature_information
from posteriori.plotting.learning_curves import plot_learning_curves
from posteriori.plotting.predictions import plot_predictions
from posteriori.plotting.regions import plot_covariances, plot_decision_regions, plot_discriminants
from posteriori.plotting.waterfall import plot_explanation

__all__ = [
    "plot_calibration",
    "plot_confusion",
    "plot_covariances",
    "plot_decision_regions",
    "plot_densities",
    "plot_discriminants",
    "plot_effect",
    "plot_explanation",
    "plot_feature_information",
    "plot_learning_curves",
    "plot_lift",
    "plot_network",
    "plot_precision_recall",
    "plot_predictions",
    "plot_roc",
    "plot_tree",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
