"""Kernels that have another form for few rows give the same numbers by both."""

import numpy as np
import pytest

from posteriori import kernels
from posteriori.kernels.machine import compiling
from posteriori.kernels.machine.compiling import FEW_ROWS, Kernel, kernel

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


def _smoothed(rng, backs_off):
    tables = [rng.exponential(2.0, shape) * rng.integers(0, 2, shape) for shape in [(3, 5, 4, 12), (2, 9, 1, 10)]]
    for table in tables:
        kernels.smoothed_tables(table, np.array([0.7, 2.3, 0.0]), 0.3, backs_off)
    return tables


def _averaged(rng, backs_off):
    cardinalities, n_components = np.array([3, 11, 2, 9]), 3
    widths = cardinalities + 1
    sizes = [n_components * widths[i] * widths[j] for i in range(4) for j in range(i + 1, 4)]
    cells = rng.exponential(2.0, sum(sizes)) * rng.integers(0, 2, sum(sizes))
    starts = np.cumsum(widths) - widths
    single, out = rng.random((widths.sum(), n_components)), np.ones((widths.sum(), widths.sum(), n_components))
    strengths = np.array([0.7, 2.3, 0.0, 5.1])
    offsets = np.cumsum(sizes) - sizes
    kernels.averaged_tables(cells, offsets, widths, starts, single, strengths, 0.3, backs_off, out)
    column = np.repeat(np.arange(4), widths)
    is_pair = (column != column[:, np.newaxis]) & ~np.isin(np.arange(len(out)), starts)
    return [out[is_pair & is_pair.T]]


@pytest.mark.parametrize("backs_off", [True, False])
@pytest.mark.parametrize("tables", [_smoothed, _averaged])
def test_tables_of_counts_are_the_same_bit_for_bit(tables, backs_off, monkeypatch):
    # Weights are fractions: their sums depend on the order.
    results = []
    for in_use in (True, False):
        monkeypatch.setattr(compiling, "_numba_in_use", in_use)
        results.append(tables(np.random.default_rng(0), backs_off))
    for compiled, light in zip(*results, strict=True):
        assert len(np.unique(light)) > 100
        np.testing.assert_array_equal(light, compiled)


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
