"""Former path of the scores, now in `posteriori.model_selection.scores`."""

from posteriori.deprecation import renamed_module_attributes

_MOVED = (
    "Scores",
    "area_under_curve",
    "loss_difference",
    "scores_of",
)

__getattr__ = renamed_module_attributes(
    __name__, {name: f"posteriori.model_selection.scores.{name}" for name in _MOVED}
)
