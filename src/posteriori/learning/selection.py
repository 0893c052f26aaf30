"""Former path of out-of-fold predictions, now in `posteriori.model_selection`."""

from posteriori.learning.forwarding import forward

__getattr__ = forward(
    __name__,
    "posteriori.model_selection",
    (
        "OutOfFold",
        "out_of_fold",
    ),
)
