"""What the bytes of a model file may unpack to, and that equal fits are equal files."""

import json
import struct
import tracemalloc
import zlib

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori import model_files

_FREE = 1 << 26  # bytes that every file may take


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.posteriori"


@pytest.fixture
def parts(path):
    """The content of a model file, how its arrays are packed, and the arrays as they are stored."""
    po.save(po.NaiveBayes().fit([["u"], ["v"], ["u"]], ["a", "b", "a"]), path)
    header, arrays = model_files.read_file(path)
    stored, packed = model_files.packed_arrays(arrays)
    return header["content"], json.loads(packed), stored


def zeros(n):
    return np.frombuffer(zlib.compress(bytes(n), 9), np.uint8)


def unread_array(content, packed, stored):
    n = 100_000_000
    return content, packed | {"bomb": {"dtype": "<f8", "stored": "|u1", "shape": [n]}}, stored | {"bomb": zeros(n)}


def array_by_planes(content, packed, stored):
    n = 50_000_000
    stated = {"dtype": "<f8", "stored": "<u2", "shape": [n], "planes": True}
    return content, packed | {"bomb": stated}, stored | {"bomb": zeros(2 * n)}


def many_arrays(content, packed, stored):
    n = 10_000_000
    stated = {"dtype": "<i8", "stored": "|u1", "shape": [n]}
    names = [f"bomb{i}" for i in range(10)]
    return content, packed | dict.fromkeys(names, stated), stored | {name: zeros(n) for name in names}


def arrays_together(content, packed, stored):
    stated = {"dtype": "<f8", "stored": "|u1", "shape": [1_000_000], "together": True}
    packed = {name: one for name, one in packed.items() if not one.get("together")}
    return content, packed | {f"bomb{i}": stated for i in range(50)}, stored | {"together": zeros(50_000_000)}


def nested_lists(content, packed, stored):
    return content[:-1] + ', "bomb": [' + "[]," * 20_000_000 + "0]}", packed, stored


def nested_objects(content, packed, stored):
    return content[:-1] + ', "bomb": [' + '{"":0},' * 10_000_000 + "0]}", packed, stored


def a_long_text(content, packed, stored):
    return content[:-1] + ', "bomb": "' + "a" * 100_000_000 + '"}', packed, stored


BOMBS = [unread_array, array_by_planes, many_arrays, arrays_together, nested_lists, nested_objects, a_long_text]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_unpacks_a_thousandfold_is_refused(bomb, parts, path):
    content, packed, stored = bomb(*parts)
    path.write_bytes(model_files.file_of(content, json.dumps(packed), stored))
    del content, packed, stored
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"it would take more than 1,000 times its size in memory") as caught:
            po.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert peak < max(1000 * path.stat().st_size, _FREE)


def test_a_file_at_the_bound_takes_no_more(parts, path):
    """Objects of Python and arrays, as many as may be: what is counted is enough for what they take."""
    content, packed, stored = parts
    content = content[:-1] + ', "bomb": [' + '{"":0},' * 200_000 + "0]}"
    path.write_bytes(model_files.file_of(content, json.dumps(packed), stored))
    tracemalloc.start()
    try:
        po.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < _FREE


def test_a_model_of_zeros_is_written_so_that_it_can_be_read(path):
    arrays = {"zeros": np.zeros((3000, 3000)), "few": np.zeros(3)}
    model_files.write_file(path, {"model": "none"}, arrays, lambda content, arrays: None)
    assert 3 * arrays["zeros"].nbytes <= 1000 * path.stat().st_size
    _, read = model_files.read_file(path)
    assert read.keys() == arrays.keys()
    assert not read["zeros"].any()


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "F8_E5M2", "C64", "F4", "what", 7])
@pytest.mark.parametrize("load", [po.load, po.scoring.load_scorer])
def test_a_type_of_tensor_that_no_model_has_is_refused(kind, load, parts, path):
    content, packed, stored = parts
    path.write_bytes(retyped(model_files.file_of(content, json.dumps(packed), stored | {"other": np.zeros(8)}), kind))
    with pytest.raises(ValueError, match=r"is not a posteriori model, or is cut short: .*(type|variant)") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def retyped(written, kind):
    """Return a file in which the type of an array is another, with a right checksum."""
    (length,) = struct.unpack("<Q", written[:8])
    header = json.loads(written[8 : 8 + length])
    header["other"]["dtype"] = kind
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + written[8 + length :]


def table(n=200):
    rng = np.random.default_rng(0)
    y = np.repeat(["p", "q"], n // 2)
    first = np.where(rng.random(n) < 0.3, "u", np.where(y == "q", "v", "w"))
    return pl.DataFrame({"a": first, "b": rng.choice(["s", "t"], n), "x": rng.normal(size=n) + (y == "q")}), y


@pytest.mark.parametrize(
    "make",
    [
        po.NaiveBayes,
        po.TreeAugmentedNaiveBayes,
        po.GaussianDiscriminant,
        lambda: po.GenerativeClassifier(members=["nb predictive", "tan"]),
    ],
    ids=["nb", "tan", "gda", "pool"],
)
def test_equal_fits_write_equal_bytes(make, path):
    X, y = table()
    if make is po.GaussianDiscriminant:
        X = X[["x"]]
    written = []
    for _ in range(2):
        po.save(make().fit(X, y), path)
        written.append(path.read_bytes())
    assert written[0] == written[1]
    for _ in range(5):
        po.save(po.load(path), path)
        assert path.read_bytes() == written[0]


def test_equal_networks_write_equal_bytes(path):
    X, _ = table()
    written = []
    for _ in range(5):
        po.save(po.learn_network(X[["a", "b"]]), path)
        written.append(path.read_bytes())
    assert len(set(written)) == 1


@pytest.mark.filterwarnings("ignore:column 'none' has no cell with a value")
def test_a_valueless_column_is_read_again_with_stated_cut_points(path):
    X = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "none": pl.Series([None] * 4, dtype=pl.Float64)})
    model = po.NaiveBayes(distributions={"none": po.Binned([60.0, 75.0])}).fit(X, ["p", "q", "p", "q"])
    po.save(model, path)
    assert model.fitted_.schema.columns[1].valueless
    assert po.load(path).fitted_.schema == model.fitted_.schema
