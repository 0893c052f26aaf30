"""Former path of the scores, now in `posteriori.model_selection.scores`."""

from posteriori.learning.forwarding import forward

__getattr__ = forward(
    __name__,
    "posteriori.model_selection.scores",
    (
        "Scores",
        "area_under_curve",
        "scores_of",
    ),
)
