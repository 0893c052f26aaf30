"""The list of signatures is closed: what a public call can bring is one of its lines, or becomes one at the door."""

import re
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import posteriori as po
from posteriori import kernels
from posteriori.kernels.machine import signatures
from posteriori.kernels.machine.compiling import Kernel, kernel_of, machine_code
from posteriori.registry import MODELS, REGRESSORS


def all_kernels():
    """Return every kernel."""
    modules = {line.partition(".")[0] for line in signatures.listed()}
    found = [vars(__import__(f"posteriori.kernels.loops.{name}", fromlist=[name])) for name in sorted(modules)]
    return {id(one): one for values in found for one in values.values() if isinstance(one, Kernel)}.values()


def test_every_line_is_a_kernel_with_types_once():
    lines = signatures.listed()
    assert lines == sorted(set(lines))
    for line in lines:
        name, types = signatures.read_line(line)
        assert not kernel_of(name).is_part
        assert len(types) == kernel_of(name).loop.__code__.co_argcount


def test_every_kernel_that_is_called_from_python_is_listed():
    listed = signatures.of_kernels()
    assert [one.name for one in all_kernels() if not one.is_part and one.name not in listed] == []


def test_kernels_that_other_kernels_call_are_parts():
    called = [one.loop.__globals__.get(name) for one in all_kernels() for name in one.loop.__code__.co_names]
    assert {one.name for one in called if isinstance(one, Kernel) and not one.is_part} == set()


@pytest.mark.parametrize("line", ["f(float64)", "bayes.normalise", "bayes.normalise(spam)", "bayes.normalise(1)", "("])
def test_a_line_that_is_no_signature_is_refused(line):
    with pytest.raises(ValueError, match=r"^signatures\.txt: "):
        signatures.read_line(line)


# --- Arguments of each line, of every kind that a public call can bring


def an_array(kind, rng):
    shape = (3, 4, 2, 5)[: kind.n_axes]
    values = rng.integers(0, 2, shape) if kind.dtype.kind in "iub" else rng.normal(size=shape)
    return np.ascontiguousarray(values.astype(kind.dtype))


def arguments_of(types, rng, change=lambda array, kind: array):
    for kind in types:
        if isinstance(kind, signatures.TupleType):
            yield tuple(arguments_of(kind.members, rng, change))
        elif isinstance(kind, signatures.NumberType):
            yield kind.dtype.type(1)
        else:
            yield change(an_array(kind, rng), kind)


def strided(array, kind):
    wider = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wider[..., ::2] = array
    return wider[..., ::2]


def unaligned(array, kind):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def locked(array, kind):
    array.flags.writeable = kind.is_written
    return array


KINDS = {
    "Fortran order": lambda array, kind: np.asfortranarray(array),
    "big-endian": lambda array, kind: array.astype(array.dtype.newbyteorder(">")),
    "steps": strided,
    "reversed": lambda array, kind: np.ascontiguousarray(array[::-1])[::-1],
    "unaligned": unaligned,
    "read-only": locked,
    "float32": lambda array, kind: array if kind.is_written or array.dtype != float else array.astype(np.float32),
}


@pytest.mark.parametrize("line", signatures.listed())
def test_arrays_of_all_kinds_become_those_of_a_line(line):
    name, types = signatures.read_line(line)
    for change in KINDS.values():
        given = list(arguments_of(types, np.random.default_rng(0), change))
        plain = list(arguments_of(types, np.random.default_rng(0)))
        got = signatures.converted(name, given) or given
        pairs = signatures._arrays(types, got, given), signatures._arrays(types, plain, plain)
        for (_, new, old), (_, _, expected) in zip(*pairs, strict=True):
            assert new.flags.c_contiguous
            assert new.flags.aligned
            assert new.dtype.isnative
            assert new.shape == old.shape
            np.testing.assert_allclose(new, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_gives_the_same_numbers_for_all_kinds(kind):
    change = KINDS[kind]
    rng = np.random.default_rng(0)
    codes, component = rng.integers(0, 3, (50, 2)).astype(np.uint8), rng.integers(0, 2, 50).astype(np.int32)
    weight, offsets = rng.integers(1, 5, 50).astype(float), np.array([0, 3])
    expected, counts = np.zeros((2, 6)), np.zeros((2, 6))
    kernels.add_counts(codes, component, weight, offsets, expected)
    np.testing.assert_allclose(expected.sum(), 2 * weight.sum())
    read, written = (signatures.ArrayType(np.dtype(float), 1, is_written) for is_written in (False, True))
    given = [change(one, read) for one in (codes, component, weight, offsets)]
    out = change(counts, written)
    kernels.add_counts(*given, out)
    assert_array_equal(out, expected)


def test_a_result_that_overlaps_with_what_is_read_is_not_lost():
    counts = np.array([[3.0, 4.0], [5.0, 6.0]])
    kernels.log_factorials(counts.T, counts)
    np.testing.assert_allclose(np.exp(counts), [[6.0, 120.0], [24.0, 720.0]])


def test_arguments_that_no_line_holds_are_warned_of():
    counts, numbers = np.zeros((2, 6)), np.zeros((3, 2))
    component, weight, offsets = np.zeros(3, np.int32), np.ones(3), np.array([0, 3])
    wrong = {
        "numbers as codes": (numbers, component, weight, offsets, counts),
        "too few": (numbers.astype(np.uint8), component, weight, offsets),
        "one axis": (np.zeros(3, np.uint8), component, weight, offsets, counts),
        "a list": (numbers.astype(np.uint8), [0, 0, 0], weight, offsets, counts),
        "result of another type": (numbers.astype(np.uint8), component, weight, offsets, counts.astype(np.float32)),
        "result that is locked": (numbers.astype(np.uint8), component, weight, offsets, locked(counts.copy(), _READ)),
        "wide component": (numbers.astype(np.uint8), component.astype(np.int64), weight, offsets, counts),
    }
    for arguments in wrong.values():
        line = signatures.line_of("summing.add_counts", arguments)
        with pytest.raises(UserWarning, match=re.escape(f"there is no machine code for {line}: it runs as plain")):
            kernels.add_counts(*arguments)


_READ = signatures.ArrayType(np.dtype(float), 2, False)


# --- Public calls


def table(n_categories, dtype=pl.Float64, n=600):
    rng = np.random.default_rng(0)
    town = np.concatenate([np.repeat(np.arange(n_categories), 2), rng.integers(0, n_categories, n)])[:n]
    columns = {
        "town": [f"t{k}" if rng.random() < 0.95 else None for k in rng.permutation(town)],
        "sky": rng.choice(["u", "v", None], n).tolist(),
        "x": np.where(rng.random(n) < 0.05, np.nan, rng.normal(size=n)),
        "z": rng.normal(size=n),
    }
    return pl.DataFrame(columns, strict=False).with_columns(pl.col("x", "z").cast(dtype))


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
@pytest.mark.parametrize("n_categories", [5, 300])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_model_runs_on_wide_codes_and_narrow_numbers(n_categories, dtype, tmp_path):
    warnings.filterwarnings("error", message="there is no machine code")
    X, y = table(n_categories, dtype), ["p", "q", None] * 200
    for name, spec in MODELS.items():
        if spec.generative and not spec.of_counts and name != "pool":
            try:
                model = spec.make(n_jobs=1).fit(X, y)
            except ValueError:  # weights of a covariance are learned from complete rows
                continue
            model.predict_proba(X)
            model.explain(X[:2])
    for spec in REGRESSORS.values():
        spec.make(n_jobs=1).fit(X, np.arange(600.0)).predict_density(X[:20]).crps(np.arange(20.0))
    po.MixtureModel(2, random_state=0).fit(X).predict_proba(X[:2])
    po.learn_network(X.select("town", "sky").with_columns(y=pl.Series(y))).sample(2, random_state=0)
    joint = po.JointModel(n_jobs=1).fit(X)
    joint.impute(joint.sample(3, random_state=0))
    path = tmp_path / "joint.posteriori"
    po.save(joint, path)
    po.load(path).predict(X[:5], "town", method="joint")  # from arrays that are read-only


@pytest.mark.skipif(machine_code() is None, reason="this installation has no machine code of its own")
def test_machine_code_refuses_what_is_not_exactly_a_line():
    rng = np.random.default_rng(0)
    for line in signatures.listed():
        name, types = signatures.read_line(line)
        arguments = list(arguments_of(types, rng))
        for position, kind in enumerate(types):
            if isinstance(kind, signatures.ArrayType):
                for wrong in (None, [1.0], 1.0, arguments[position][np.newaxis], strided(arguments[position], kind)):
                    with pytest.raises(TypeError, match="has no machine code for arguments of these types"):
                        machine_code()[name](*arguments[:position], wrong, *arguments[position + 1 :])
