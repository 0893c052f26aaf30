"""A model file gives back the model bit for bit, or says in one sentence why it does not."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import posteriori as po
from posteriori import model_files
from posteriori.classifiers.estimator import estimator_of


def mixed_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "height": rng.normal(1e6, 3, n),
            "sky": rng.choice(["clear", "Nebel ☁", 'a "quoted" one'], n),
            "windy": rng.integers(0, 2, n) > 0,
            "visits": rng.poisson(4, n),
        }
    )
    nothing = rng.random((4, n)) < 0.1
    return frame.select(
        pl.when(pl.Series(~nothing[j])).then(pl.col(name)).alias(name) for j, name in enumerate(frame.columns)
    )


def fit_mixed(**parameters):
    frame = mixed_rows(60)
    labels = np.array(["no", "yes", "maybe"])[np.arange(60) % 3]
    return po.NaiveBayes(**parameters).fit(frame, labels), mixed_rows(40, seed=1)


def fit_labels(labels):
    X = np.random.default_rng(0).normal(size=(40, 2))
    return po.NaiveBayes().fit(X, np.resize(labels, 40)), X


def from_parameters():
    model = po.NaiveBayes.from_parameters(
        priors={"a": 0.25, "b": 0.75},
        gaussian={"x": {"mean": [0.1, 2], "sd": [1, 1 / 3]}},
        categorical={"s": {"u": [0.5, 1], "v": [0.5, 0]}},
        poisson={"k": {"b": 2.5, "a": 1.1}},
    )
    return model, [[0.3, "u", 2], [None, "v", None], [5, None, 0]]


def fit_at_the_limits():
    X = np.array([[0.0], [2**53 + 1], [0], [3]])
    model = po.NaiveBayes(distributions=po.Gaussian(np.inf), alpha=0.0, columns=po.Columns(categorical_features=[0]))
    return model.fit(X.astype(np.int64), [0, 1, 1, 0]), X


MODELS = {
    "mixed": fit_mixed,
    "distributions": lambda: fit_mixed(distributions={"visits": "poisson", 0: po.Gaussian(0.5, ddof=1)}),
    "priors by class": lambda: fit_mixed(priors={"yes": 0.5, "no": 0.25, "maybe": 0.25}),
    "priors as an array": lambda: fit_mixed(priors=np.array([0.5, 0.25, 0.25])),
    "categories by mask": lambda: fit_mixed(
        columns=po.Columns(categorical_features=np.array([False, False, False, True]))
    ),
    "parameters": from_parameters,
    "limits": fit_at_the_limits,
    "boolean classes": lambda: fit_labels(np.array([True, False])),
    "integer classes": lambda: fit_labels(np.int16([-3, 2, 7])),
    "large classes": lambda: fit_labels(np.uint64([0, 2**64 - 1])),
    "float classes": lambda: fit_labels([0.0, 1.0]),
    "string classes": lambda: fit_labels(["b", "äöü"]),
    "object classes": lambda: fit_labels(np.array(["b", "c"], dtype=object)),
    "one class": lambda: fit_labels(["only"]),
    "pandas": lambda: (
        po.NaiveBayes().fit(pd.DataFrame({"a": pd.Categorical(["u", "v"], ["w", "v", "u"]), "b": [1.5, 2]}), [0, 1]),
        pd.DataFrame({"b": [1.0, None], "a": ["u", "w"]}),
    ),
}


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def fitted(request):
    return request.param()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a model.posteriori"


def save_and_load(model, path):
    po.save(model, path)
    return po.load(path)


def bits(values):
    return np.asarray(values).tobytes()


def test_a_loaded_model_is_the_same_bit_for_bit(fitted, path):
    model, X = fitted
    again = save_and_load(model, path)
    assert type(again) is type(model)
    assert bits(again.predict_proba(X)) == bits(model.predict_proba(X))
    assert bits(again.score_samples(X)) == bits(model.score_samples(X))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.schema_ == model.schema_
    assert again.model_.blocks == model.model_.blocks
    assert again.n_features_in_ == model.n_features_in_
    assert repr(again.get_params()) == repr(model.get_params())
    assert set(vars(again)) == set(vars(model))
    assert type(again.fitted_) is type(model.fitted_)
    assert str(clone(again)) == str(clone(model))


def test_a_loaded_model_draws_the_same_rows(fitted, path):
    model, _ = fitted
    again = save_and_load(model, path)
    rows, labels = model.sample(20, random_state=3)
    rows_again, labels_again = again.sample(20, random_state=3)
    assert type(rows_again) is type(rows)
    assert str(rows_again) == str(rows)
    assert labels_again.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: po.NaiveBayes(feature_weights="conditional"),
        lambda: po.NaiveBayes(feature_weights="cells", distributions="binned"),
        lambda: po.TreeAugmentedNaiveBayes(feature_weights="conditional"),
        lambda: po.GenerativeClassifier(["binned weighted", "cells", "nb"]),
    ],
)
def test_a_class_without_weight_is_read_again(make, path):
    rng = np.random.default_rng(0)
    y = np.resize(["a", "b", "c"], 90)
    X = rng.normal(size=(90, 2)) + (y == "a")[:, np.newaxis]
    model = make().fit(X, y, sample_weight=(y != "b").astype(float))
    po.save(model, path)
    assert_array_equal(po.load(path).predict_log_proba(X), model.predict_log_proba(X))
    row = {"x0": 0.5, "x1": None}
    assert po.scoring.load_scorer(path)(row) == model.scorer()(row)


def test_learning_goes_on_where_it_stopped(path):
    first, rest = mixed_rows(50), mixed_rows(30, seed=1)
    rest = rest.with_columns(sky=pl.lit("snow"))
    labels, others = np.arange(50) % 2, np.arange(30) % 3
    kept = po.NaiveBayes().partial_fit(first, labels)
    loaded = save_and_load(kept, path).partial_fit(rest, others)
    kept.partial_fit(rest, others)
    assert bits(loaded.predict_proba(first)) == bits(kept.predict_proba(first))
    assert bits(loaded.statistics_.weight) == bits(kept.statistics_.weight)


def test_classes_stay_closed(path):
    X = np.arange(6.0).reshape(-1, 1)
    model = save_and_load(po.NaiveBayes().partial_fit(X, [0, 1] * 3, classes=[0, 1, 2]), path)
    assert model.partial_fit(X, [2] * 6).class_count_.tolist() == [3, 3, 6]
    with pytest.raises(ValueError, match="y holds 3, which is not among the classes"):
        model.partial_fit(X, [3] * 6)


def test_a_model_of_parameters_has_no_rows_to_add_to(path):
    model = save_and_load(from_parameters()[0], path)
    with pytest.raises(ValueError, match=r"built from parameters.*use fit"):
        model.partial_fit([[0.3, "u", 2]], ["a"])


def test_saving_again_replaces_the_file(path):
    po.save(fit_labels([0, 1])[0], path)
    po.save(fit_labels(["a", "b"])[0], str(path))
    assert po.load(str(path)).classes_.tolist() == ["a", "b"]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# Files that are no models ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    po.save(fit_mixed()[0], path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "model"


def refused(path, match):
    with pytest.raises(ValueError, match=match) as caught:
        po.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_cut_short(content, damaged):
    for length in {*range(0, len(content), 23), *range(10), len(content) - 1}:
        damaged.write_bytes(content[:length])
        refused(damaged, "is not a posteriori model, or is cut short")
    damaged.write_bytes(content + b"\0")
    refused(damaged, "is not a posteriori model, or is cut short")


@given(data=st.data())
def test_any_changed_byte_is_noticed(content, damaged, data):
    changed = bytearray(content)
    for _ in range(30):
        position = data.draw(st.integers(0, len(content) - 1))
        changed[position] ^= data.draw(st.integers(1, 255))
        damaged.write_bytes(changed)
        refused(damaged, "damaged|cut short|not a posteriori model|newer than this one")
        changed[position] = content[position]


def forge(path, content=None, **changes):
    """Write a model file with a right checksum, and with other content or another header."""
    po.save(fit_labels([0, 1])[0], path)
    header, arrays = model_files.read_file(path)
    path.write_bytes(model_files.file_of(header["content"] if content is None else content, "{}", arrays, **changes))
    return json.loads(header["content"])


def test_a_forged_file_that_changes_nothing_is_read(path):
    forge(path)
    assert po.load(path).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("version", ["5", "999", "none", "-1", "²"])
def test_a_newer_format(path, version):
    forge(path, format=version, posteriori="9.9")
    refused(path, "written by posteriori 9.9, which is newer than this one; upgrade")


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_an_earlier_format_is_refused_with_the_remedy(path, version):
    forge(path, format=version, posteriori="0.1")
    refused(path, r"written by an earlier version, posteriori 0\.1; fit the model again")


def test_a_file_can_name_no_other_class_and_run_nothing(path):
    content = forge(path)
    fields = content["fitted"]["fields"]

    def asked(**change):
        recipe = {"estimator": fields["recipe"]["estimator"] | change}
        return {"fitted": {"type": "Fitted", "fields": fields | {"recipe": recipe}}}

    for change in (
        {"model": "GaussianNB"},
        {"model": "os.system"},
        asked(parameters={"type": "Path", "fields": {}}),
        asked(recipe="GaussianNB"),
        asked(recipe="GenerativeClassifier"),
        {"fitted": {"type": "Popen", "fields": {"args": "true"}}},
        {"fitted": {"type": "Fitted", "fields": {"model": {"type": "Popen", "fields": {}}, "target": None}}},
        {"fitted": None},
        {"fitted": {"type": "Fitted", "fields": {}}},
        asked(parameters={"dict": [["no_such_parameter", 1]]}),
    ):
        forge(path, content=json.dumps(content | change))
        refused(path, "does not hold a model that this version knows")


def test_foreign_files(path):
    safetensors.numpy.save_file({"weight": np.zeros(3)}, path)
    refused(path, "is a safetensors file, but not a posteriori model")
    safetensors.numpy.save_file({"weight": np.zeros(3)}, path, {"format": "pt"})
    refused(path, "is a safetensors file, but not a posteriori model")
    path.write_bytes(pickle.dumps(fit_labels([0, 1])[0]))
    refused(path, "is not a posteriori model")
    path.write_text("height,sky\n1,clear\n")
    refused(path, "is not a posteriori model")
    path.write_bytes(b"")
    refused(path, "is not a posteriori model")
    refused(path.parent, "is a folder; name the file of a model in it")
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*nowhere'"):
        po.load(path.parent / "nowhere")


# What cannot be saved --------------------------------------------------------------------------------------------


class Shy:
    """A density of a kind that no file may name."""

    name, kind = "shy", "continuous"

    def __getattr__(self, name):
        return getattr(po.Gaussian(), name)


def not_saved(model, path, error, match):
    with pytest.raises(error, match=match) as caught:
        po.save(model, path)
    assert "\n" not in str(caught.value)


def test_nothing_is_written_of_what_cannot_be_saved(path):
    not_saved(po.NaiveBayes(), path, NotFittedError, "not fitted yet")
    not_saved(GaussianNB(), path, TypeError, "a GaussianNB cannot be saved; posteriori saves its own models")
    not_saved("a model", path, TypeError, "a str cannot be saved")
    shy = po.NaiveBayes(distributions={0: Shy()})
    shy.fit(np.arange(4.0).reshape(-1, 1), [0, 1, 0, 1])
    not_saved(shy, path, TypeError, "cannot be saved: a model file may not name kinds of its own, here a Shy")
    assert list(path.parent.iterdir()) == []


def test_places_that_cannot_be_written_to(path, monkeypatch):
    model, _ = fit_labels([0, 1])
    not_saved(model, path.parent / "nowhere" / "m", FileNotFoundError, "there is no folder '.*nowhere' to write 'm' in")
    not_saved(model, path.parent, IsADirectoryError, "is a folder; name a file in it")
    assert list(path.parent.iterdir()) == []

    def forbid(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbid)
    not_saved(model, path, PermissionError, "may not be written to; choose another")


def test_a_failure_midway_leaves_the_old_file_and_no_other(path, monkeypatch):
    po.save(fit_labels([0, 1])[0], path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    for step in ("replace", "write_bytes"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, step, fail)
            not_saved(fit_labels(["a", "b"])[0], path, OSError, "No space left")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_replaced_while_it_is_read_is_whole(path, monkeypatch):
    first, second = (po.NaiveBayes().fit([["u"], ["v"], [cell]], ["a", "b", "a"]) for cell in "uv")
    other = path.with_name("other")
    po.save(first, path)
    po.save(second, other)
    read_bytes = Path.read_bytes

    def replaced_after_reading(file):
        content = read_bytes(file)
        other.replace(path)
        return content

    monkeypatch.setattr(Path, "read_bytes", replaced_after_reading)
    np.testing.assert_array_equal(po.load(path).predict_proba([["u"]]), first.predict_proba([["u"]]))
    assert not other.exists()


def test_a_file_may_be_read_by_those_who_may_read_others(path):
    other = path.parent / "other"
    other.touch()
    po.save(fit_labels([0, 1])[0], path)
    assert Path(path).stat().st_mode == other.stat().st_mode


def test_pickling_gives_the_same_model_too(fitted):
    model, X = fitted
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def large_model():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({f"x{j}": rng.integers(0, 30, 100).astype(str) for j in range(4)})
    return po.AveragedOneDependence().fit(X, rng.integers(0, 2, 100)), X


def test_large_arrays_are_packed_without_loss(path):
    model, X = large_model()
    po.save(model, path)
    header, arrays = model_files.read_file(path)
    packed = json.loads(header["packed"])
    assert packed.keys() <= arrays.keys()
    assert {stated.get("stored") for stated in packed.values()} >= {"|u1", None}
    assert path.stat().st_size < 0.2 * sum(array.nbytes for array in arrays.values())
    assert po.load(path).score_samples(X).tobytes() == model.score_samples(X).tobytes()
    counts = po.load(path).statistics_.blocks[0]
    assert (counts + counts).cells.sum() == 2 * model.statistics_.blocks[0].cells.sum()


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.0, 3.0], [70_000.0, 255.0]]),
        np.array([0.0, -0.0]),
        np.array([-1, 5]),
        np.array([0, 2**32 - 1]),
        np.array([0, 2**32]),
        np.array([True, False]),
        np.array([0.5, np.nan, np.inf], np.float32),
        np.empty((0, 3)),
        np.array(7.0),
    ],
)
@pytest.mark.parametrize("times", [1, 3000])
def test_arrays_of_every_kind_are_read_as_they_were(array, times, path):
    array = np.tile(array, times) if array.ndim else array
    other = np.random.default_rng(0).random(5)
    model_files.write_file(path, {"model": "none"}, {"first": array, "second": other}, lambda content, arrays: None)
    _, read = model_files.read_file(path)
    for before, after in ((array, read["first"]), (other, read["second"])):
        assert (before.dtype, before.shape, before.tobytes()) == (after.dtype, after.shape, after.tobytes())
        assert after.flags.writeable


@pytest.mark.parametrize("model", [po.AveragedOneDependence(), po.KDependenceBayes(k=2)])
def test_files_hold_counts_once_and_no_derived_tables(model, path):
    rng = np.random.default_rng(0)
    X = pl.DataFrame({f"x{j}": rng.integers(0, 30, 100).astype(str) for j in range(3)})
    po.save(model.fit(X, rng.integers(0, 2, 100)), path)
    _, arrays = model_files.read_file(path)
    assert max(array.size for array in arrays.values()) == model.statistics_.blocks[0].cells.size
    assert [name for name in arrays if name.endswith("cells")] == ["fitted.model.parameters.0.counts.cells"]


@pytest.mark.parametrize(
    ("size", "message"), [("3", "does not have its stated size"), ("-1", "damaged"), ("many", "damaged")]
)
def test_a_content_that_is_not_of_its_stated_size_is_refused(size, message, path):
    forge(path, size=size)
    refused(path, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [3]}, "does not have its stated size"),
        ({"shape": [10**9]}, "does not have its stated size"),
        ({"shape": [-1]}, "has the type '<f8' and the shape"),
        ({"shape": [2.0]}, "has the type '<f8' and the shape"),
        ({"dtype": "|O"}, r"has the type '\|O'"),
        ({"dtype": "what"}, "does not hold a model that this version knows"),
        (None, "is not valid|cannot be unpacked|does not hold"),
    ],
)
def test_a_packed_array_unlike_its_header_is_refused(path, change, message):
    po.save(large_model()[0], path)
    with safetensors.safe_open(path, framework="numpy") as opened:
        arrays = {name: opened.get_tensor(name) for name in opened.keys() if name != "content"}  # noqa: SIM118
    header, _ = model_files.read_file(path)
    packed = json.loads(header["packed"])
    name = next(name for name in arrays if name in packed)
    if change is None:
        arrays[name] = arrays[name][::-1].copy()
    else:
        packed[name] |= change
    path.write_bytes(model_files.file_of(header["content"], json.dumps(packed), arrays))
    refused(path, message)


def with_fitted(estimator, fitted):
    """Return an estimator of another fitted value, which need not be consistent."""
    return estimator_of(replace(fitted, recipe=estimator.recipe))


def with_nan(array):
    other = array.copy()
    other.flat[-1] = np.nan
    return other


def spoilt_pool():
    pool = po.GenerativeClassifier(["nb", "forest mixed"], folds=2, random_state=0)
    pool.fit(mixed_rows(60), np.resize(["no", "yes"], 60))
    member = pool.fitted_.members["forest mixed"]
    trees = member.model.parameters[0]
    counts = replace(trees.counts, leaves=with_nan(trees.counts.leaves))
    model = replace(member.model, parameters=(replace(trees, counts=counts), *member.model.parameters[1:]))
    members = {**pool.fitted_.members, "forest mixed": replace(member, model=model)}
    return with_fitted(pool, replace(pool.fitted_, members=members))


def spoilt_regressor():
    regressor = po.AdditiveRegressor(folds=3).fit(mixed_rows(60), np.arange(60.0))
    sums = regressor.fitted_.found.sums
    found = replace(regressor.fitted_.found, sums=replace(sums, squares=with_nan(sums.squares)))
    return with_fitted(regressor, replace(regressor.fitted_, found=found))


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (
            spoilt_pool,
            r"fitted\.members\.forest mixed\.model: the density .random trees. of columns .*: the weights of leaves",
        ),
        (spoilt_regressor, r"fitted\.found\.sums: the sums of squares"),
    ],
)
def test_save_writes_nothing_that_load_would_refuse(make, place, path):
    path.write_text("the file before")
    with pytest.raises(ValueError, match=f"cannot be saved, .*: {place}.* report this defect$"):
        po.save(make(), path)
    assert path.read_text() == "the file before"
    assert [one.name for one in path.parent.iterdir()] == [path.name]
