"""The list of signatures: every kernel that a fit compiles is in it, so that machine code can be made ahead of time."""

import re

import numpy as np
import polars as pl
import pytest
from numba.core.caching import NullCache
from scipy.sparse import csr_array

from posteriori import JointModel, load, save
from posteriori.kernels.machine import numba_compiler, signatures
from posteriori.kernels.machine.compiling import Kernel
from posteriori.registry import MODELS, REGRESSORS


def test_every_line_is_a_kernel_with_types_written_as_read():
    lines = signatures.listed()
    assert lines == sorted(set(lines))
    for line in lines:
        kernel, types = signatures.read_line(line)
        assert not kernel.is_part
        assert signatures.write_line(kernel, types) == line


def test_every_kernel_that_is_called_from_python_is_listed():
    listed = {signatures.read_line(line)[0] for line in signatures.listed()}
    assert [k.__name__ for k in signatures.all_kernels() if not k.is_part and k not in listed] == []


@pytest.mark.parametrize("line", ["f(float64)", "bayes.normalise", "bayes.normalise(spam)", "bayes.normalise(1)"])
def test_a_line_that_is_no_signature_is_refused(line):
    with pytest.raises((ValueError, AttributeError)):
        signatures.read_line(line)


@pytest.fixture
def fresh_kernels(monkeypatch):
    """Kernels as a new process has them; what they have compiled before is in the cache."""
    kernels = list(signatures.all_kernels())
    for kernel in kernels:
        monkeypatch.setattr(kernel, "_compiled", None)
    return kernels


def numbers(rng, n):
    return {f"x{j}": np.where(rng.random(n) < 0.05, np.nan, rng.normal(size=n)) for j in range(3)}


def categories(rng, n):
    return {f"c{j}": rng.choice(["u", "v", "w", None], n, p=[0.4, 0.3, 0.25, 0.05]).tolist() for j in range(3)}


TABLES = {
    "numbers": numbers,
    "categories": categories,
    "mixed": lambda rng, n: numbers(rng, n) | categories(rng, n) | {"day": rng.integers(0, 50, n)},
    "wide": lambda rng, n: {f"x{j}": rng.normal(size=n) for j in range(70)},
}


@pytest.mark.parametrize("kind", [*TABLES, "counts"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_compiles_nothing_that_the_list_lacks(kind, fresh_kernels, tmp_path):
    rng = np.random.default_rng(0)
    n = 60
    y = np.array(["p", "q", "r"])[rng.integers(0, 3, n)]
    X = csr_array(rng.poisson(1.0, (n, 8))) if kind == "counts" else pl.DataFrame(TABLES[kind](rng, n), strict=False)
    for spec in MODELS.values():
        if spec.generative and spec.of_counts == (kind == "counts") and spec.name != "pool":
            model = spec.make(n_jobs=1)
            try:
                model.fit(X, y)
            except ValueError:  # weights of a covariance are learned from complete rows
                continue
            model.predict_proba(X)
            if model.model_.has_density:
                model.score_samples(X)
            model.explain(X[:5])
    assert sorted(set(signatures.lines_of(fresh_kernels)) - set(signatures.listed())) == []


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_regressors_and_joint_models_compile_nothing_new(dtype, fresh_kernels, tmp_path):
    rng, n = np.random.default_rng(0), 60
    X = pl.DataFrame(TABLES["mixed"](rng, n), strict=False).with_columns(
        pl.col("x0", "x1").cast(pl.Float32 if dtype is np.float32 else pl.Float64),
        town=pl.Series([f"town {k}" for k in range(n)]),
    )
    y = rng.normal(size=n).astype(dtype)
    for name, spec in REGRESSORS.items():
        path = tmp_path / f"{name}.posteriori"
        save(spec.make(n_jobs=1).fit(X, y, sample_weight=rng.random(n)), path)
        model = load(path)
        model.predict_density(X).crps(y)
        if name == "regressor":
            model.explain(X[:2])
    joint = JointModel(n_jobs=1).fit(X)
    joint.impute(joint.sample(3, random_state=0))
    joint.predict(X[:5], "c0")
    assert sorted(set(signatures.lines_of(fresh_kernels)) - set(signatures.listed())) == []


def test_kernels_that_other_kernels_call_are_parts():
    called = [
        kernel.__wrapped__.__globals__.get(name)
        for kernel in signatures.all_kernels()
        for name in kernel.__wrapped__.__code__.co_names
    ]
    assert {one.__name__ for one in called if isinstance(one, Kernel) and not one.is_part} == set()


def test_a_kernel_holds_its_parts():
    # Otherwise its code depends on which kernels were compiled or loaded before: they share parts, each rounds its own.
    line = next(line for line in signatures.listed() if line.startswith("cells.cell_objective("))
    found, types = signatures.read_line(line)
    fresh = numba_compiler.compiled(found.__wrapped__, found._fastmath)
    fresh._cache = NullCache()
    fresh.compile(types)
    (code,) = fresh.inspect_llvm().values()
    outside = re.findall(r"^declare [^\n]*|^define (?:linkonce_odr|weak)[^\n]*", code, re.MULTILINE)
    assert [text for text in outside if "kernels" in text] == []
