"""Evaluation of estimators on rows that they were not trained on."""

from posteriori.model_selection.held_out_predictions import (
    HeldOut,
    Learner,
    leave_one_out,
    out_of_fold,
)

__all__ = ["HeldOut", "Learner", "leave_one_out", "out_of_fold"]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
