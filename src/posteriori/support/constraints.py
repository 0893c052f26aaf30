"""Constraints on parameters that estimators share, for the validation of scikit-learn."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval

# Threads: None or −1 for one per core, −2 for all cores but one; 0 would be no thread at all.
N_JOBS: list[Any] = [None, Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left")]
PSEUDO_COUNT = Interval(Real, 0, 1e15, closed="both")  # more says no more; it fits into 64 bits as an integer
