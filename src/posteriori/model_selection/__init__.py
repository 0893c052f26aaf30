"""Evaluation of estimators on rows that they were not trained on."""

from posteriori.model_selection.estimators import LearnedEstimator, TrainableEstimator
from posteriori.model_selection.leave_one_out_predictions import LeaveOneOut, leave_one_out
from posteriori.model_selection.out_of_fold_predictions import OutOfFold, out_of_fold

__all__ = ["LearnedEstimator", "LeaveOneOut", "OutOfFold", "TrainableEstimator", "leave_one_out", "out_of_fold"]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
