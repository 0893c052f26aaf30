"""Former path of the comparison with the class prior, now in `posteriori.model_selection.against_prior`."""

from posteriori.learning.forwarding import forward

__getattr__ = forward(
    __name__,
    "posteriori.model_selection.against_prior",
    (
        "AgainstPrior",
        "compare_with_prior",
    ),
)
