"""The few figures of held-out predictions behind the sentences about them, which a model and its file keep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.support.checks import check_not_negative, check_share, require

_ROWS_ARE = ("held-out rows", "training rows", "rows")
_VERDICTS = ("informative", "uninformative", "overconfident")
_ROUNDING = 1e-6  # relative, of sums of weights


@dataclass(frozen=True)
class HeldOutFigures:
    """How many rows of each class there are, are predicted and are predicted correctly, and how sure the model was.

    Attributes
    ----------
    true, predicted, correct : tuple of float (C,)
        The weight of the rows of each class, of those predicted as it, and of those that are both.
    confidence : float
        The mean probability of the predicted class.
    gap_error : float
        The standard error of the difference between accuracy and confidence.
    verdict : {"informative", "uninformative", "overconfident"}
        The comparison with the class prior (`metrics.AgainstPrior`).
    rows_are, how : str
        As in `HeldOut`.
    by_folds : bool
        Whether the predictions are those of a cross-validation.
    positive : int or None
        The index of the class of interest, if one was chosen.
    levels : tuple of float, or None
        Of ordered classes: the share of rows whose median level is the true one, of those where it is at most one level
        away, the share of true levels within the central 90 % intervals, and the mean number of levels that these hold.
    """

    true: tuple[float, ...]
    predicted: tuple[float, ...]
    correct: tuple[float, ...]
    confidence: float
    gap_error: float
    verdict: str
    rows_are: str
    how: str
    by_folds: bool
    positive: int | None = None
    levels: tuple[float, float, float, float] | None = None

    def check(self) -> None:
        """Raise ValueError unless the figures, which may come from a file, fit together."""
        n_classes = len(self.true)
        require(n_classes > 0, "the figures of held-out predictions are of no class")
        same = len(self.predicted) == len(self.correct) == n_classes
        require(same, "the figures of held-out predictions are of several numbers of classes")
        for true, predicted, correct in zip(self.true, self.predicted, self.correct, strict=True):
            for number in (true, predicted, correct):
                check_not_negative("the number of held-out rows of a class", number)
            most = (1.0 + _ROUNDING) * min(true, predicted)
            require(correct <= most, "more rows of a class are predicted correctly than there are")
        n, n_predicted = sum(self.true), sum(self.predicted)
        require(0.0 < n < float("inf"), "the figures of held-out predictions are of no row")
        require(abs(n - n_predicted) <= _ROUNDING * n, "not every held-out row has one prediction")
        check_share("the mean probability of the predicted class", self.confidence)
        check_not_negative("the standard error of the calibration", self.gap_error)
        require(self.verdict in _VERDICTS, f"{self.verdict!r} is no verdict on held-out predictions")
        require(self.rows_are in _ROWS_ARE, f"{self.rows_are!r} is no kind of rows")
        known = self.positive is None or 0 <= self.positive < n_classes
        require(known, "the class of interest is not a class")
        if self.levels is not None:
            *shares, n_levels = self.levels
            for share in shares:
                check_share("a share of held-out levels", share)
            require(1.0 <= n_levels <= n_classes * (1.0 + _ROUNDING), "intervals hold more levels than there are")

    @property
    def n(self) -> float:
        """The weight of all rows."""
        return sum(self.true)

    @property
    def accuracy(self) -> float:
        """The share of rows that are predicted correctly."""
        return min(1.0, sum(self.correct) / self.n)

    @property
    def commonest(self) -> int:
        """The index of the class with the most rows."""
        return int(np.argmax(self.true))

    @property
    def of_interest(self) -> int | None:
        """The class of interest: the chosen one, else the rarer of two; None where there are more or only one."""
        if len(self.true) < 2:
            return None
        if self.positive is not None:
            return self.positive
        return int(np.argmin(self.true)) if len(self.true) == 2 and all(self.true) else None
