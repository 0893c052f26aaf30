"""Evaluation of estimators on rows that they were not trained on.

It holds metrics, the comparison with the class prior, and out-of-fold and leave-one-out predictions.
`held_out_predictions.py` states the interface of the estimators that it takes, because it imports none.
"""

from posteriori.model_selection.held_out_predictions import (
    HeldOut,
    Learner,
    leave_one_out,
    out_of_fold,
)

__all__ = ["HeldOut", "Learner", "leave_one_out", "out_of_fold"]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
