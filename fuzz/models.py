"""Model files: damaged ones, and crafted ones whose checksum is right."""

from __future__ import annotations

import functools
import json
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import posteriori as po
from fuzz.estimators import FUNCTIONS, do_step, is_refused
from fuzz.target import Target, check_sentence, not_counted
from posteriori.model_files import file_of, read_file

_DEEP = "a place for deeply nested JSON"
_NUMBERS: tuple[Any, ...] = (
    *(-1, 0, 1, 2, 3, 7, 1_000_000, 2**31, 2**63, 10**30, -(10**30)),
    *(0.5, -0.5, 1.0, 1e-300, 5e-324, 1e308, -1e308, float("nan"), float("inf")),
)
_OTHERS: tuple[Any, ...] = (
    *(None, True, False, "", "x", "NaiveBayes", [], {}, [1], "float", _DEEP),
    *({"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"float": "1"}, {"tuple": "abc"}, {"tuple": []}),
    *({"list": [1]}, {"dict": [[1, 2]]}, {"dict": [[{"list": []}, 2]]}, {"array": "no such array"}, {"type": "Counts"}),
)


def mixed_table(n: int, seed: int) -> pl.DataFrame:
    """Return a small table of every kind of column, a cell in ten missing."""
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "height": rng.normal(170.0, 9.0, n),
            "weight": rng.normal(70.0, 9.0, n),
            "sky": rng.choice(["clear", "clouds", "fog"], n),
            "windy": rng.random(n) < 0.5,
            "visits": rng.poisson(3.0, n),
        }
    )
    gaps = rng.random((n, table.width)) < 0.1
    return table.select(
        pl.when(pl.Series(~gaps[:, j])).then(pl.col(name)).alias(name) for j, name in enumerate(table.columns)
    )


def _labels(n: int, holes: bool = False) -> Any:
    labels = np.resize(np.array(["no", "yes", "maybe", "yes"], dtype=object), n)
    return [None if holes and i % 5 == 0 else label for i, label in enumerate(labels)]


def _fitted(make: Callable[..., Any], complete: bool = False, holes: bool = False, **parameters: Any) -> Any:
    table = mixed_table(48, seed=1)
    table = table.fill_null(strategy="forward").fill_null(strategy="backward") if complete else table
    return make(**parameters).fit(table, _labels(48, holes))


def _fitted_numbers(make: Callable[..., Any], supervised: bool = True, **parameters: Any) -> Any:
    X = np.random.default_rng(2).normal(size=(48, 3)) + np.arange(48)[:, np.newaxis] % 2
    return make(**parameters).fit(X, np.arange(48) % 2) if supervised else make(**parameters).fit(X)


def _with_dates(table: pl.DataFrame) -> pl.DataFrame:
    hours = pl.duration(hours=31 * pl.int_range(pl.len()))
    return table.with_columns(when=pl.datetime(2023, 11, 1) + hours, took=hours, at=pl.time(7))


def _fitted_to_dates() -> Any:
    table = _with_dates(mixed_table(48, seed=1)).with_columns(
        at=pl.Series(np.arange(48) % 5 * 3_600_000_000_000).cast(pl.Time)
    )
    return po.NaiveBayes(missing="informative", distributions={"when.days": "binned"}).fit(table, _labels(48))


def _grouped() -> Any:
    rng = np.random.default_rng(3)
    shop = [f"shop {k}" for k in np.minimum(rng.geometric(0.02, 900), 150)]
    table = pl.DataFrame({"shop": shop, "sky": rng.choice(["clear", "fog"], 900), "visits": rng.poisson(3.0, 900)})
    return po.TreeAugmentedNaiveBayes(columns=po.Columns(keep="all")).fit(table, _labels(900))


def _stated() -> Any:
    return po.NaiveBayes.from_parameters(
        priors={"a": 0.25, "b": 0.75},
        gaussian={"x": {"mean": [0.1, 2], "sd": [1, 1 / 3]}},
        categorical={"s": {"u": [0.5, 1], "v": [0.5, 0]}},
        poisson={"k": {"b": 2.5, "a": 1.1}},
    )


def _stated_discriminant() -> Any:
    return po.GaussianDiscriminant.from_parameters(
        priors={"a": 0.5, "b": 0.5}, means={"a": [0.0, 1.0], "b": [2.0, 1.0]}, covariance=[[1.0, 0.2], [0.2, 2.0]]
    )


_POOLED = ["nb", "tan", "qda", po.KDependenceBayes(bins=3)]
_COSTLY = ["cells", "kdb weighted", "aode 8 bins", "forest mixed", "rda predictive"]

MODELS: dict[str, Callable[[], Any]] = {
    "naive Bayes": lambda: _fitted(po.NaiveBayes),
    "numbers": lambda: _fitted_numbers(po.NaiveBayes),
    "distributions": lambda: _fitted(po.NaiveBayes, distributions={"visits": "poisson", 0: po.Gaussian(0.5, ddof=1)}),
    "bins": lambda: _fitted(po.NaiveBayes, distributions="binned", bins=4),
    "mdlp": lambda: _fitted(po.NaiveBayes, distributions={"height": "binned", "weight": po.Binned([60.0, 75.0])}),
    "missing": lambda: _fitted(po.NaiveBayes, missing="informative"),
    "weights": lambda: _fitted(po.NaiveBayes, feature_weights="conditional"),
    "cells": lambda: _fitted(po.NaiveBayes, distributions="binned", bins=4, feature_weights="cells"),
    "components": lambda: _fitted(po.NaiveBayes, em=po.EM(components_per_class={"yes": 2}, n_init=1), random_state=0),
    "label noise": lambda: _fitted(po.NaiveBayes, labels=po.Labels(label_noise="learn")),
    "unlabelled": lambda: _fitted(po.NaiveBayes, labels=po.Labels(unlabelled="learn"), holes=True),
    "from parameters": _stated,
    "discriminant from parameters": _stated_discriminant,
    "lda": lambda: _fitted_numbers(po.GaussianDiscriminant, pooling="pooled"),
    "qda": lambda: _fitted(po.GaussianDiscriminant, pooling="per_class", missing="informative"),
    "rda": lambda: _fitted_numbers(po.GaussianDiscriminant, pooling=0.5, shrinkage=0.1),
    "ledoit_wolf": lambda: _fitted_numbers(po.GaussianDiscriminant, shrinkage="ledoit_wolf"),
    "mixture discriminant": lambda: _fitted_numbers(
        po.GaussianDiscriminant, em=po.EM(components_per_class=2, n_init=1), random_state=0
    ),
    "tan": lambda: _fitted(po.TreeAugmentedNaiveBayes),
    "gaussian tan": lambda: _fitted(po.TreeAugmentedNaiveBayes, bins=None, penalty="bic"),
    "tan em": lambda: _fitted(po.TreeAugmentedNaiveBayes, missing="em", bins=3),
    "tan missing": lambda: _fitted(po.TreeAugmentedNaiveBayes, missing="informative", bins=3),
    "chow-liu": lambda: _fitted(po.classifiers.ChowLiuClassifier, bins=None),
    "tree": lambda: po.ChowLiuTree().fit(mixed_table(48, seed=1)),
    "kdb": lambda: _fitted(po.KDependenceBayes, k=2),
    "kdb 1": lambda: _fitted(po.KDependenceBayes, k=1, feature_weights="conditional"),
    "aode": lambda: _fitted(po.AveragedOneDependence, bins=3),
    "joint": lambda: _fitted(po.classifiers.FullJointClassifier, bins=2, verbose=False),
    "mixture": lambda: po.MixtureModel(2, n_init=1, random_state=0).fit(mixed_table(48, seed=1)),
    "diagonal mixture": lambda: _fitted_numbers(
        po.MixtureModel, False, n_components=3, covariance="diagonal", n_init=1, random_state=0
    ),
    "dates": _fitted_to_dates,
    "groups": _grouped,
}
POOLS: dict[str, Callable[[], Any]] = {
    "pool": lambda: _fitted(po.GenerativeClassifier, complete=True, members=_POOLED, folds=3),
    "pool of costly members": lambda: _fitted(po.GenerativeClassifier, members=_COSTLY, folds=3, random_state=0),
    "default pool": lambda: _fitted(po.GenerativeClassifier, folds=3, random_state=0),
    "pool of one": lambda: _fitted(po.GenerativeClassifier, members=["nb"], folds=3),
}


def _fitted_to_numbers(make: Callable[..., Any], complete: bool = True, **parameters: Any) -> Any:
    table = mixed_table(48, seed=1)
    table = table.fill_null(strategy="forward").fill_null(strategy="backward") if complete else table
    target = np.random.default_rng(5).normal(size=48) + np.arange(48) % 3
    return make(random_state=0, folds=3, **parameters).fit(table, target)


def _fitted_jointly(with_pools: bool) -> Any:
    model = po.JointModel(random_state=0).fit(mixed_table(48, seed=1))
    if with_pools:
        model.predict(mixed_table(2, seed=4), "height")
        model.predict(mixed_table(2, seed=4), "sky")
    return model


OF_NUMBERS: dict[str, Callable[[], Any]] = {
    "additive": lambda: _fitted_to_numbers(po.AdditiveRegressor),
    "additive with gaps": lambda: _fitted_to_numbers(po.AdditiveRegressor, complete=False, scale="rank"),
    "kernel": lambda: _fitted_to_numbers(po.KernelRegressor),
    "kernel with gaps": lambda: _fitted_to_numbers(po.KernelRegressor, complete=False),
    "regressor": lambda: _fitted_to_numbers(po.GenerativeRegressor),
    "regressor with gaps": lambda: _fitted_to_numbers(po.GenerativeRegressor, complete=False),
    "joint model": lambda: _fitted_jointly(with_pools=False),
    "joint model with pools": lambda: _fitted_jointly(with_pools=True),
}


class _Written:
    """A model file taken apart."""

    def __init__(self, raw: bytes, path: Path) -> None:
        self.raw = raw
        self.header, self.arrays = read_file(path)
        self.X: Any = None


@functools.cache
def _written(name: str) -> _Written:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = Path(folder) / "model"
        model = (MODELS | POOLS | OF_NUMBERS)[name]()
        po.save(model, path)
        return _Written(path.read_bytes(), path)


def forge(path: Path, content: str, arrays: dict[str, np.ndarray]) -> None:
    """Write a model file with this content, and a checksum that is right."""
    path.write_bytes(file_of(content, "{}", arrays))


# Crafting ---------------------------------------------------------------------------------------------------------


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Return every place in some JSON, as a container and a key."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    found: list[tuple[Any, Any]] = [(node, key) for key in keys]
    for key in keys:
        found += _places(node[key])
    return found


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _change_json(rng: np.random.Generator, content: Any) -> None:
    """Replace, drop, rename, repeat or move something of some JSON."""
    positions = _places(content)
    container, key = _pick(rng, positions)
    value = container[key]
    numbers = [place for place in positions if type(place[0][place[1]]) in (int, float)]
    kind = int(rng.integers(8))
    if kind == 0 and isinstance(container, dict):
        container[_pick(rng, ["type", "fields", "tuple", "x", "array", "parents"])] = container.pop(key)
    elif kind <= 1:
        container.pop(key)
    elif kind == 2 and isinstance(value, list) and value:
        rng.shuffle(value) if rng.random() < 0.5 else value.append(_pick(rng, value))
    elif kind == 3:
        other, position = _pick(rng, positions)
        container[key] = json.loads(json.dumps(other[position]))
    elif kind == 4 or not numbers:
        container[key] = _pick(rng, _OTHERS)
    else:
        container, key = _pick(rng, numbers)
        container[key] = container[key] + int(rng.integers(-2, 3)) if kind == 5 else _pick(rng, _NUMBERS)


def _change_array(rng: np.random.Generator, arrays: dict[str, np.ndarray]) -> None:
    """Change the numbers, the type or the shape of an array, or which it is."""
    if not arrays:
        return
    name = _pick(rng, sorted(arrays))
    array = arrays[name].copy()
    kind = int(rng.integers(10))
    with np.errstate(all="ignore"):
        if kind <= 4 and array.size:
            position = int(rng.integers(array.size))
            value = _pick(rng, _NUMBERS)
            if array.dtype.kind in "iub":
                value = value if isinstance(value, int) and abs(value) < 2**63 else int(rng.integers(-(2**62), 2**62))
                value = int(np.array(value).astype(array.dtype))  # narrow types wrap around
            array.flat[position] = float(value) if array.dtype.kind == "f" else value
        elif kind == 5:
            types = (np.float32, np.float16, np.int64, np.int8, np.uint64, np.bool_, np.float64)
            array = array.astype(_pick(rng, types))
        elif kind == 6:
            shapes = ((-1,), (1, -1), (-1, 1), array.shape[::-1], (*array.shape, 1))
            array = array.reshape(_pick(rng, shapes))
        elif kind == 7:
            array = array.ravel()[: array.size // 2] if rng.random() < 0.5 else np.concatenate([array.ravel()] * 2)
        elif kind == 8:
            array = rng.permutation(array.ravel()).reshape(array.shape)
        else:
            array = arrays[_pick(rng, sorted(arrays))].copy() if rng.random() < 0.8 else np.array(1.0)
    arrays[name] = np.ascontiguousarray(array) if array.ndim else array


def _craft(rng: np.random.Generator, name: str, path: Path) -> None:
    written = _written(name)
    content, arrays = json.loads(written.header["content"]), dict(written.arrays)
    if rng.random() < 0.5:
        _change_array(rng, arrays)
    else:
        _change_json(rng, content)
    text = json.dumps(content)
    if rng.random() < 0.01:  # a key that occurs twice
        text = (
            text.replace('"', '"type": "Counts", "', 1) if rng.random() < 0.5 else text.replace("{", '{"model": 1, ', 1)
        )
    text = text.replace(json.dumps(_DEEP), "[" * 100_000 + "]" * 100_000)
    forge(path, text, arrays)


def _damage(rng: np.random.Generator, name: str, path: Path) -> None:
    raw = bytearray(_written(name).raw)
    if rng.random() < 0.3:
        raw = raw[: int(rng.integers(len(raw)))]
    else:
        raw[int(rng.integers(len(raw)))] ^= int(rng.integers(1, 256))
    path.write_bytes(raw)


# Using what was loaded --------------------------------------------------------------------------------------------


def _rows_for(model: Any) -> Any:
    """Return rows that the model that was crafted may be asked about."""
    names = list(model.schema_.given) if hasattr(model, "schema_") else list(model.one_class_.schema_.given)
    if names == ["shop", "sky", "visits"]:
        return pl.DataFrame([["shop 1", "fog", 2], ["shop 9", None, None]] * 3, schema=names, orient="row")
    if "when" in names and set(names) <= set((dated := _with_dates(mixed_table(6, seed=4))).columns):
        return dated.select(names)
    if set(names) <= {"height", "weight", "sky", "windy", "visits"}:
        return mixed_table(6, seed=4).select(names)
    if names == ["x", "s", "k"]:
        return [[0.3, "u", 2], [None, "v", None]]
    return np.random.default_rng(4).normal(size=(6, len(names)))


def use(model: Any, path: Path) -> None:
    """Ask a loaded model everything; an answer or a refusal is as it should be, and all else is raised."""
    X = _rows_for(model)
    given: dict[str, Any] = {"X": X, "path": path, "n": 5, "n_samples": 5, "random_state": 0}
    given |= {"y": model.classes_[[0] * len(X)]} if hasattr(model, "classes_") else {}
    steps = ["predict_proba", "score_samples", "explain", "sample", "merge", "save and load", "partial_fit"]
    if isinstance(model, po.JointModel):
        given |= {"target": "height", "method": "pool"}
        steps = ["predict", "predict_density", "score_samples", "score_cells", "sample", "impute", "save and load"]
        steps += ["partial_fit", "unlearn"]
    elif not hasattr(model, "predict_proba") and hasattr(model, "predict_quantiles"):
        given["y"] = np.arange(len(X)) / 3.0
        steps = ["predict", "predict_quantiles", "predict_interval", "explain", "effects", "score", "score_samples"]
        steps += ["save and load", "partial_fit", "unlearn"]
    for step in steps:
        if step in FUNCTIONS or hasattr(model, step):
            is_refused(functools.partial(do_step, model, step, given), type(model))
    is_refused(lambda: model.n_parameters_, type(model))


def run(rng: np.random.Generator, folder: Path, names: Sequence[str] = tuple(MODELS)) -> bool:
    """Craft or damage the file of a model, load it, and use what was loaded."""
    name, path = _pick(rng, names), folder / "model.posteriori"
    with not_counted():
        _written(name)
    damaged = rng.random() < 0.1
    (_damage if damaged else _craft)(rng, name, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = po.load(path)
        except ValueError as error:
            if str(path) not in str(error):
                raise
            check_sentence(str(error))
            return False
        if damaged and path.read_bytes() != _written(name).raw:
            raise AssertionError("a damaged file was loaded")
        try:
            use(model, folder / "again.posteriori")
        except Exception as error:
            error.add_note(f"{name}: {_difference(name, path)}")
            raise
    return True


def _difference(name: str, path: Path) -> str:
    """Return what is different in a crafted file, for the report of a finding."""
    written = _written(name)
    crafted = _Written(path.read_bytes(), path)
    changed = [key for key in written.arrays if not _same(written.arrays[key], crafted.arrays.get(key))]
    before, after = written.header["content"], crafted.header["content"]
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    around = "" if at is None else f"{before[max(0, at - 150) : at + 60]} → {after[max(0, at - 60) : at + 60]}"
    values = {key: crafted.arrays[key].ravel()[:12] for key in changed if key in crafted.arrays}
    return f"arrays {values}; {around}"


def _same(one: np.ndarray, other: np.ndarray | None) -> bool:
    return other is not None and one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)


TARGET = Target("models", run)
TARGET_NUMBERS = Target("numbers", functools.partial(run, names=tuple(OF_NUMBERS)))
OF_POOLS = Target("pools", functools.partial(run, names=tuple(POOLS)))
