"""Mutated tables: files through the command line, frames and arrays through the estimators."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import posteriori as po
from fuzz.cells import Rng, column, pick, table
from fuzz.commands import run_command, strict_inside
from fuzz.target import ACCEPTED, REFUSED, Target, refuses

_SUFFIXES = (".csv", ".csv", ".tsv", ".ndjson", ".parquet", ".arrow", ".csv.gz")
_MODELS = ("nb", "nb", "nb", "lda", "qda", "rda", "tan", "chow-liu", "kdb", "aode")
_ESTIMATORS: tuple[Callable[[], Any], ...] = (
    po.NaiveBayes,
    lambda: po.NaiveBayes(distributions="binned"),
    lambda: po.NaiveBayes(missing="informative"),
    po.GaussianDiscriminant,
    lambda: po.GaussianDiscriminant(pooling="per_class"),
    po.TreeAugmentedNaiveBayes,
    po.ChowLiuClassifier,
    po.KDependenceBayes,
    po.AveragedOneDependence,
)
_DATES = ("parts", "ignore", ["month"], ["days"], ["days", "year", "hour", "seconds"], ["weekday", "month"])
_WIDE = 100  # columns; of more, only naive Bayes is tried, whose cost is no power of them
_POISON = (b'"', b"\r", b"\n", b"\x00", b"\xef\xbb\xbf", b"\xff", b",", b"\t", b"'", b"{", b"}", b"\\", b"1e999", b"-")
_LATE = ("x", "1.5", "99999999999999999999", "true", "2020-01-01", "1e999", "0x10", "-", '"', "{}")


def _writable(frame: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """Return a table without the columns that its format cannot hold."""
    text = suffix not in (".parquet", ".arrow")
    kept = [
        one
        for one in frame.iter_columns()
        if not (text and suffix != ".ndjson" and (one.dtype.is_nested() or one.dtype in (pl.Binary, pl.Duration)))
        and not (suffix == ".ndjson" and one.dtype in (pl.Binary, pl.Duration, pl.Int128, pl.UInt128, pl.Time))
        and not (suffix == ".parquet" and one.dtype == pl.UInt128)
    ]
    return pl.DataFrame(kept)


def _bytes_of(frame: pl.DataFrame, suffix: str, position: Path) -> bytes:
    if suffix == ".parquet":
        frame.write_parquet(position, compression=pick(np.random.default_rng(frame.height), ("zstd", "uncompressed")))
    elif suffix == ".arrow":
        frame.write_ipc(position)
    else:
        ndjson, separator = suffix == ".ndjson", "\t" if suffix == ".tsv" else ","
        return (frame.write_ndjson() if ndjson else frame.write_csv(separator=separator)).encode()
    return position.read_bytes()


def _with_late_cell(rng: Rng, text: bytes) -> bytes:
    """Return a text file of more rows than are asked for types, with another kind of cell behind them."""
    header, *lines = text.split(b"\n")
    lines = [line for line in lines if line]
    if not lines:
        return text
    many = lines * (10_050 // len(lines) + 1)
    cells = many[-2].split(b",")
    cells[int(rng.integers(len(cells)))] = pick(rng, _LATE).encode()
    many[-2] = b",".join(cells)
    return b"\n".join([header, *many, b""])


def _mutated(rng: Rng, content: bytes, is_text: bool) -> bytes:
    """Return the bytes of a file, a few of which are changed."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        position = int(rng.integers(len(changed) + 1))
        kind = int(rng.integers(7))
        if kind == 0 and position < len(changed):
            changed[position] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed = changed[:position] if rng.random() < 0.3 else changed
        elif kind == 2 and position < len(changed):
            changed[position] = int(rng.integers(256))
        elif kind == 3:
            stop = min(len(changed), position + int(rng.integers(1, 40)))
            changed[position:position] = changed[position:stop]
        elif kind == 4:
            del changed[position : position + int(rng.integers(1, 40))]
        else:
            changed[position:position] = pick(rng, _POISON)
    if is_text and rng.random() < 0.05:
        codec = pick(rng, ("utf-16", "utf-8-sig", "utf-32"))
        return bytes(changed).decode("utf8", "replace").encode(codec)
    return bytes(changed)


def _write_table(rng: Rng, frame: pl.DataFrame, folder: Path) -> str:
    """Write a table in some format, mutated in one of two cases, and return the name of its file."""
    suffix = pick(rng, _SUFFIXES)
    name = f"table{suffix}"
    is_text = suffix not in (".parquet", ".arrow")
    content = _bytes_of(_writable(frame, suffix), suffix, folder / name)
    if suffix == ".csv" and rng.random() < 0.02 and len(content) < 3000:
        content = _with_late_cell(rng, content)
    elif rng.random() < 0.4:
        content = _mutated(rng, content, is_text)
    if suffix.endswith(".gz"):
        content = gzip.compress(content)
        content = _mutated(rng, content, False) if rng.random() < 0.05 else content
    (folder / name).write_bytes(content)
    return name


def _check_predictions(found: pl.DataFrame) -> None:
    """Raise AssertionError unless probabilities are finite and sum to 1 in every row."""
    scores = found.select(name for name in found.columns if name.startswith("p_")).to_numpy()
    if not np.isfinite(scores).all() or not np.allclose(scores.sum(axis=1), 1.0, atol=1e-6):
        raise AssertionError(f"probabilities are not finite or do not sum to 1: {scores[:3]}")


def _second_command(rng: Rng, name: str, target: str) -> list[str]:
    model = "model.posteriori"
    return pick(
        rng,
        (
            ["evaluate", model, name],
            ["explain", model, name, "--row", str(int(rng.integers(0, 4)))],
            ["sample", model, "-n", "3", "--seed", "1"],
            ["show", model],
            ["show", model, "--json"],
            ["merge", model, model, "--out", "merged.posteriori"],
            ["sql", model],
            ["cv", name, "--target", target, "--models", pick(rng, ("nb", "lda", "tan")), "--folds", "2"],
            ["cluster", name, "-k", "2", "--covariance", pick(rng, ("full", "diagonal"))],
        ),
    )


def _through_files(rng: Rng, folder: Path) -> str:
    frame, target = table(rng)
    name = _write_table(rng, frame, folder)
    options = ["--model", pick(rng, _MODELS) if frame.width < _WIDE else "nb", "--folds", "2"]
    if rng.random() < 0.01 and frame.width < 20:
        options = []
    if rng.random() < 0.1:
        options += ["--missing", "informative"] if options and options[1] in ("nb", "lda") else []
    if rng.random() < 0.1 and frame.width < _WIDE:
        command = pick(
            rng, (["cv", name, f"--target={target}", "--models", "nb", "--folds", "2"], ["cluster", name, "-k1,2"])
        )
        return run_command(command)
    fitted = run_command(["fit", name, f"--target={target}", "--output", "model.posteriori", *options])
    if fitted == REFUSED:
        return REFUSED
    other = name if rng.random() < 0.7 else _write_table(rng, _changed(rng, frame), folder)
    done = run_command(["predict", "model.posteriori", other, "--proba", "--output", "scores.parquet"])
    if done == ACCEPTED:
        _check_predictions(pl.read_parquet(folder / "scores.parquet"))
    if rng.random() < 0.6 and frame.width < _WIDE:
        run_command(_second_command(rng, other, target))
    return ACCEPTED


def _changed(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table some of whose columns hold other cells, of other types perhaps."""
    columns = [column(rng, frame.height).alias(one.name) if rng.random() < 0.3 else one for one in frame.iter_columns()]
    return pl.DataFrame(columns)


def _as_kind(rng: Rng, frame: pl.DataFrame) -> Any:
    kind = int(rng.integers(4))
    if any("\x00" in name for name in frame.columns):  # Arrow and pandas cannot hold it
        kind = 3
    if kind == 0 and pl.Object not in frame.dtypes:
        return frame.to_arrow()
    if kind == 1 and pl.Object not in frame.dtypes:
        return frame.to_pandas(use_pyarrow_extension_array=bool(rng.integers(2)))
    if kind == 2:
        return np.array([one.to_list() for one in frame.iter_columns()], dtype=object).T if frame.width else None
    return frame


def _sentence(error: Exception) -> str:
    if "\n" in str(error):
        raise AssertionError(f"not one line: {error}") from error
    return refuses(str(error))


def _through_estimators(rng: Rng) -> str:
    frame, target = table(rng, objects=True)
    features, y = frame.drop(target), frame[target].to_list()
    try:
        X, later = _as_kind(rng, features), _as_kind(rng, features if rng.random() < 0.6 else _changed(rng, features))
    except (ValueError, TypeError, OverflowError, NotImplementedError, pl.exceptions.PolarsError, ArithmeticError):
        return REFUSED  # polars, pandas or NumPy cannot hold such a table
    except Exception as error:
        if type(error).__module__.startswith("pyarrow"):
            return REFUSED
        raise
    estimator = pick(rng, _ESTIMATORS if frame.width < _WIDE else _ESTIMATORS[:1])()
    if rng.random() < 0.4:
        estimator.set_params(dates=pick(rng, _DATES), keep=pick(rng, (None, "all", [0], list(features.columns[:2]))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            estimator.fit(X, y)
            scores = estimator.predict_proba(later)
            labels = estimator.predict(later)
            _check_scorer(estimator, features)
            estimator.predict_proba(estimator.sample(3, random_state=0)[0])
        except (ValueError, TypeError) as error:
            return _sentence(error)
    if not np.isfinite(scores).all() or not np.allclose(scores.sum(axis=1), 1.0, atol=1e-6):
        raise AssertionError(f"probabilities are not finite or do not sum to 1: {scores[:3]}")
    if len(labels) != features.height or len(scores) != features.height:
        raise AssertionError(f"{features.height} rows but {len(labels)} labels and {len(scores)} scores")
    return ACCEPTED


def _check_scorer(estimator: Any, features: pl.DataFrame) -> None:
    """Raise AssertionError unless the scorer gives the probabilities of a row given as a dict."""
    row = dict(zip(estimator.scorer().names, features.row(0), strict=True))
    if not np.allclose(list(estimator.scorer()(row).values()), estimator.predict_proba(row)[0], atol=1e-9):
        raise AssertionError(f"the scorer and predict_proba differ for {row}")


def run(rng: Rng, folder: Path) -> str:
    """Learn from a table that is odd or damaged, and predict it or another."""
    with strict_inside(folder):
        return _through_estimators(rng) if rng.random() < 0.35 else _through_files(rng, folder)


TARGET = Target("tables", run)
