"""Former path of the held-out weight, now in `posteriori.model_selection.held_out`."""

from posteriori.learning.forwarding import forward

__getattr__ = forward(
    __name__,
    "posteriori.model_selection.held_out",
    (
        "WEIGHT_GRID",
        "held_out_weight",
    ),
)
