"""Former path of rows assigned to folds, now in `posteriori.model_selection.folded_data`."""

from posteriori.learning.forwarding import forward

__getattr__ = forward(
    __name__,
    "posteriori.model_selection.folded_data",
    (
        "FoldedData",
        "MOST_EVALUATED",
        "cross_fit_and_score",
        "held_out_prior",
        "held_out_rows",
        "judge_and_sample",
        "sample_of",
    ),
)
