"""Kernels that have another form for few rows give the same numbers by both."""

import numpy as np
import pytest

from posteriori import kernels
from posteriori.kernels import compiling
from posteriori.kernels.compiling import FEW_ROWS, Kernel, kernel

_CASES = {
    "write_word_scores": lambda rng: (
        np.array([0, 3, 1], np.int32),
        np.array([2.0, np.nan, 0.0]),
        np.full((4, 2), -np.inf),
        np.empty((3, 2)),
    ),
    "encode_integers": lambda rng: (
        np.array([[3, -9], [7, 2**62], [5, -(2**62)], [2, -8]]),
        np.array([3, -9]),
        np.arange(1, 6, dtype=np.uint16),
        np.array([0, 3, 5]),
        np.empty((4, 2), np.uint16),
    ),
    "digitise": lambda rng: (
        np.array([[1.0, 0.5], [np.nan, 2.0], [-np.inf, np.inf]], np.float32),
        np.array([1, 0]),
        np.array([0, 2, 2]),
        np.array([0.5, 1.0]),
        np.array([0, 2]),
        np.zeros((3, 3), np.uint8),
    ),
    "log_evidence": lambda rng: (np.array([[-np.inf, -np.inf], [-800.0, -801.0], [0.0, -np.inf]]), np.empty(3)),
    "normalise": lambda rng: (np.array([[-np.inf, -np.inf], [-800.0, -801.0], [0.0, -np.inf]]),),
}


@pytest.mark.parametrize("name", _CASES)
def test_both_forms_give_the_same_numbers(name, monkeypatch):
    results = []
    for in_use in (True, False):
        monkeypatch.setattr(compiling, "_numba_in_use", in_use)
        arguments = _CASES[name](np.random.default_rng(0))
        getattr(kernels, name)(*arguments)
        results.append(arguments)
    for compiled, light in zip(*results, strict=True):
        np.testing.assert_allclose(light, compiled, rtol=1e-13)


def test_what_is_compiled(monkeypatch):
    ways = []

    def fill(values):
        ways.append("python")
        values[:] = 1.0

    for is_part, in_use, has_numba, n_rows, expected in (
        (False, False, True, FEW_ROWS, "python"),
        (False, False, True, FEW_ROWS + 1, "compiled"),
        (False, True, True, 1, "compiled"),
        (False, False, False, FEW_ROWS + 1, "python"),
        (True, False, True, FEW_ROWS + 1, "python"),
    ):
        monkeypatch.setattr(compiling, "_numba_in_use", in_use)
        monkeypatch.setattr(compiling, "has_numba", has_numba)
        made = kernel(fill, few_rows=True, is_part=is_part)
        assert isinstance(made, Kernel)
        made._compiled = lambda values: ways.append("compiled")
        made(np.zeros(n_rows))
        assert ways.pop() == expected


def test_a_row_of_much_work_counts_as_many(monkeypatch):
    monkeypatch.setattr(compiling, "_numba_in_use", False)
    monkeypatch.setattr(compiling, "has_numba", True)
    made = kernel(lambda values: "python", few_rows=True, work=lambda values: 50 * len(values))
    made._compiled = lambda values: "compiled"
    assert made(np.zeros(FEW_ROWS // 50)) == "python"
    assert made(np.zeros(FEW_ROWS // 50 + 1)) == "compiled"
