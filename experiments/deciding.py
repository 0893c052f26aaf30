"""Measure class shares, performance without labels, and sets of classes on real tables.

Usage: python -m experiments.deciding --output FILE [--parts NAME …] [--tables NAME …]
       python -m experiments.deciding --page FILE

Each table is split once, half of at most 3,000 rows to learn from. --output names a file of JSON lines, one for each
part, table, method and setting; a part of a table that it has is not measured again. --page writes the tables of
docs/deciding.md from such a file. QuaPy, NannyML, MAPIE and crepes are left out where they are not installed. The
parts:

shares    Test rows are drawn with three other class shares: the mean absolute error of the estimated shares, and how
          often 90 % intervals hold them.
expected  The same rows, and all test rows with 30 % of the cells of each column shuffled: the error of the expected
          accuracy. NannyML is given the predictions and the held-out predictions of the pool.
single    All test rows: the log-loss of naive Bayes, TAN and LDA, and of their Venn-Abers probabilities, one class
          against the others, by held-out predictions of the training rows.
sets      All test rows: the share of rows whose set holds their class, the least such share of a class, and the mean
          size of sets. MAPIE and crepes are given a pool of 70 % of the training rows, and the other 30 % to calibrate.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import Table, data_folder, in_first_half, tables

TABLES = (
    *(
        "adult",
        "anneal",
        "bn_asia",
        "car",
        "colic",
        "crx",
        "cylinder_bands",
        "diabetes_pima",
        "electricity",
        "eucalyptus",
    ),
    *(
        "german",
        "heart_cleveland",
        "hmda",
        "kr_vs_kp",
        "letter",
        "magic",
        "marketing",
        "mushroom",
        "nursery",
        "penguins",
    ),
    *("phoneme", "satimage", "segment", "sick", "spambase", "splice", "telco_churn", "tic_tac_toe", "titanic_kaggle"),
    *("vehicle", "vote", "wdbc"),
)
COVERAGE, LEVEL, SHUFFLED, MIXES, MOST = 0.9, 0.9, 0.3, 3, 400
FEWEST = 15  # test rows of a class; rarer classes are left out


class Given(ClassifierMixin, BaseEstimator):
    """Classifier whose rows are its own probabilities, so that others can calibrate those of a pool."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X: Any, y: Any) -> Given:
        """Learn nothing."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the rows."""
        return np.asarray(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class."""
        return np.asarray(X).argmax(axis=1)


def _halves(table: Table) -> tuple[pl.DataFrame, np.ndarray, pl.DataFrame, np.ndarray]:
    rng, y = np.random.default_rng(0), table.y.cast(pl.String).to_numpy()
    names, count = np.unique(y, return_counts=True)
    kept = np.isin(y, names[count >= 2 * FEWEST])
    X, y = table.X.filter(kept), y[kept]
    early = rng.random(len(y)) < 0.5
    return X.filter(early), y[early], X.filter(~early), y[~early]


def _drawn(y: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of other class shares, without repetition, and these shares."""
    shares = rng.dirichlet(np.ones(len(classes)))
    counts = np.array([(y == one).sum() for one in classes])
    n = min(MOST, int((counts / np.maximum(shares, 1e-9)).min()))
    of_class = rng.multinomial(max(n, 30), shares)
    places = [
        rng.choice(np.flatnonzero(y == one), min(k, c), False)
        for one, k, c in zip(classes, of_class, counts, strict=True)
    ]
    rows = np.concatenate(places)
    return rows, np.array([len(one) for one in places]) / len(rows)


def _shuffled(X: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    changed = []
    for name in X.columns:
        place = np.arange(len(X))
        some = rng.random(len(X)) < SHUFFLED
        place[some] = rng.permutation(place[some])
        changed.append(X[name].gather(place))
    return pl.DataFrame(changed)


def of_shares(pool: Any, X: pl.DataFrame, y: np.ndarray) -> Iterator[dict[str, Any]]:
    """Estimate the shares of rows of another mix."""
    rng, prior = np.random.default_rng(1), np.exp(pool._posterior.class_log_prior)
    for k in range(MIXES):
        rows, shares = _drawn(y, pool.classes_, rng)
        part = X[rows]
        start = time.perf_counter()
        found = pool.estimate_priors(part)
        seconds = time.perf_counter() - start
        low, high = found.interval(LEVEL).T
        inside = float(((low <= shares) & (shares <= high)).mean())
        error = {"posteriori": found.shares, "posteriori, cautious": found.cautious, "of training": prior}
        posterior = pool.predict_proba(part)
        confusion = pool.out_of_fold_
        of_class = np.stack([confusion.posterior[confusion.y_true == c].mean(axis=0) for c in range(len(prior))])
        solved = np.maximum(np.linalg.lstsq(of_class.T, posterior.mean(axis=0), rcond=None)[0], 0.0)
        error["probabilistic counts"] = solved / solved.sum()
        if importlib.util.find_spec("quapy"):
            from quapy.method.aggregative import EMQ

            error["EMQ of QuaPy"] = EMQ.EM(prior, posterior)[0]
        for method, one in error.items():
            yield {
                "setting": f"mix {k}",
                "method": method,
                "error": float(np.abs(one - shares).mean()),
                "inside": inside if method == "posteriori" else None,
                "seconds": seconds if method == "posteriori" else None,
            }


def of_expected(pool: Any, X: pl.DataFrame, y: np.ndarray) -> Iterator[dict[str, Any]]:
    """Expect the accuracy of unlabelled rows."""
    rng = np.random.default_rng(1)
    settings = [("another mix", X[rows], y[rows]) for rows, _ in (_drawn(y, pool.classes_, rng) for _ in range(MIXES))]
    settings.append(("same rows", X, y))
    settings.append(("shuffled cells", _shuffled(X, rng), y))
    for k, (setting, part, labels) in enumerate(settings):
        right = float((pool.predict(part) == labels).mean())
        found = {"posteriori": pool.expected_performance(part).accuracy}
        estimated = pool.expected_performance(part, priors="estimate")
        moved = pool.with_priors(estimated.priors)
        own = float((moved.predict(part) == labels).mean())
        error = estimated.standard_error["accuracy"]
        yield {
            "setting": setting,
            "method": "posteriori, estimated mix (its own predictions)",
            "number": k,
            "error": abs(estimated.accuracy - own),
            "inside": float(abs(estimated.accuracy - own) <= 1.645 * error),
            "accuracy": own,
        }
        if importlib.util.find_spec("nannyml"):
            found["CBPE of NannyML"] = _cbpe(pool, part)
        for method, one in found.items():
            line = {"setting": setting, "method": method, "number": k, "error": abs(one - right), "accuracy": right}
            yield line


def _cbpe(pool: Any, X: pl.DataFrame) -> float:
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"
    import nannyml
    import pandas as pd

    held_out, classes = pool.out_of_fold_, [str(one) for one in pool.classes_]

    def frame(posterior: np.ndarray, label: np.ndarray | None) -> Any:
        columns = {f"p_{k}": posterior[:, k] for k in range(len(classes))}
        columns["predicted"] = np.array(classes)[posterior.argmax(axis=1)]
        if label is not None:
            columns["label"] = np.array(classes)[label]
        if len(classes) == 2:
            columns["predicted"] = posterior.argmax(axis=1)
            columns |= {"label": label} if label is not None else {}
        return pd.DataFrame(columns)

    is_binary = len(classes) == 2
    estimator = nannyml.CBPE(
        y_pred_proba="p_1" if is_binary else {one: f"p_{k}" for k, one in enumerate(classes)},
        y_pred="predicted",
        y_true="label",
        problem_type="classification_binary" if is_binary else "classification_multiclass",
        metrics=["accuracy"],
        chunk_number=1,
    )
    estimator.fit(frame(held_out.posterior, held_out.y_true))
    result = estimator.estimate(frame(pool.predict_proba(X), None)).filter(period="analysis").to_df()
    return float(result[("accuracy", "value")].iloc[0])


def of_sets(
    pool: Any, part: Any, calibrating: tuple[pl.DataFrame, np.ndarray], X: pl.DataFrame, y: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Give sets of classes: by the pool, and by others with a pool of a part of the rows."""
    for score in ("probability", "cumulative"):
        for per_class in (False, True):
            try:
                start = time.perf_counter()
                found = pool.predict_set(X, COVERAGE, score=score, per_class=per_class)
            except ValueError:  # too few rows of a class
                continue
            name = f"posteriori, {score}" + (", per class" if per_class else "")
            yield _judged(name, found.included, pool.classes_, y) | {"seconds": time.perf_counter() - start}
    codes = {one: k for k, one in enumerate(part.classes_.tolist())}
    known = part.predict_proba(calibrating[0])
    labels = np.array([codes[one] for one in calibrating[1].tolist()])
    new = part.predict_proba(X)
    if importlib.util.find_spec("mapie"):
        from mapie.classification import SplitConformalClassifier

        for score in ("lac", "aps") if len(codes) > 2 else ("lac",):
            model = SplitConformalClassifier(
                Given(len(codes)), confidence_level=COVERAGE, conformity_score=score, prefit=True, random_state=0
            )
            model.conformalize(known, labels)
            yield _judged(f"MAPIE, {score}", model.predict_set(new)[1][:, :, 0], part.classes_, y)
    if importlib.util.find_spec("crepes"):
        from crepes import WrapClassifier

        for per_class in (False, True):
            wrapped = WrapClassifier(Given(len(codes)))
            wrapped.fit(known, labels)
            wrapped.calibrate(known, labels, class_cond=per_class)
            found = wrapped.predict_set(new, confidence=COVERAGE, smoothing=False)
            included = np.array([[k in set(one) for k in range(len(codes))] for one in found])
            yield _judged("crepes" + (", per class" if per_class else ""), included, part.classes_, y)


def of_single(X: pl.DataFrame, y: np.ndarray, new: pl.DataFrame, labels: np.ndarray) -> Iterator[dict[str, Any]]:
    """Judge single models before and after their probabilities are calibrated."""
    for name, model in (
        ("naive Bayes", po.NaiveBayes()),
        ("TAN", po.TreeAugmentedNaiveBayes()),
        ("LDA", po.GaussianDiscriminant()),
    ):
        held_out = po.model_selection.out_of_fold(model, X, y)
        plain = model.predict_proba(new)
        each = [model.probability_interval(new, one, held_out).probability for one in model.classes_]
        calibrated = np.column_stack(each)
        calibrated /= calibrated.sum(axis=1, keepdims=True)
        place = np.array([model.classes_.tolist().index(one) for one in labels.tolist()])
        losses = [
            float(-np.log(np.maximum(p[np.arange(len(place)), place], 1e-300)).mean()) for p in (plain, calibrated)
        ]
        yield {"method": name, "plain": losses[0], "calibrated": losses[1]}


def _judged(method: str, included: np.ndarray, classes: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    place = np.array([classes.tolist().index(one) for one in y.tolist()])
    inside = included[np.arange(len(y)), place]
    least = min(inside[place == k].mean() for k in np.unique(place))
    return {
        "method": method,
        "coverage": float(inside.mean()),
        "least": float(least),
        "size": float(included.sum(axis=1).mean()),
        "classes": len(classes),
    }


def measure(output: Path, parts: list[str], names: list[str]) -> None:
    """Add what is missing to the file."""
    done = set()
    if output.exists():
        done = {(line["part"], line["table"]) for line in map(json.loads, output.read_text().splitlines())}
    folder = data_folder()
    assert folder is not None
    for table in tables(folder, names):
        wanted = [part for part in parts if (part, table.name) not in done]
        if not wanted:
            continue
        warnings.simplefilter("ignore")
        X, y, new, labels = _halves(table)
        if len(np.unique(y)) < 2 or np.unique(labels, return_counts=True)[1].min() < FEWEST // 2:
            continue
        found: dict[str, Any] = {}
        if "single" in wanted:
            found["single"] = list(of_single(X, y, new, labels))
        if set(wanted) - {"single"}:
            pool = po.GenerativeClassifier(random_state=0).fit(X, y)
        if "shares" in wanted:
            found["shares"] = list(of_shares(pool, new, labels))
        if "expected" in wanted:
            found["expected"] = list(of_expected(pool, new, labels))
        if "sets" in wanted:
            some = np.random.default_rng(2).random(len(y)) < 0.7
            part = po.GenerativeClassifier(random_state=0).fit(X.filter(some), y[some])
            found["sets"] = list(of_sets(pool, part, (X.filter(~some), y[~some]), new, labels))
        with output.open("a") as file:
            for name, lines in found.items():
                half = "first" if in_first_half(table.name) else "second"
                file.writelines(
                    json.dumps({"part": name, "table": table.name, "half": half} | line) + "\n" for line in lines
                )
        print(table.name, list(found), flush=True)


def write_page(path: Path) -> None:
    """Write the tables of docs/deciding.md."""
    lines = pl.DataFrame([json.loads(line) for line in path.read_text().splitlines()], infer_schema_length=None)
    page = DOCS / "deciding.md"
    shares = lines.filter(pl.col("part") == "shares").group_by("half", "method", maintain_order=True)
    rows = [
        [half, method, str(n), f"{error:.4f}", "" if inside is None else f"{inside:.3f}"]
        for half, method, n, error, inside in shares.agg(
            pl.col("table").n_unique(), pl.col("error").mean(), pl.col("inside").mean()
        ).iter_rows()
    ]
    head = ["half", "method", "tables", "error of a share", "inside of 90 % intervals"]
    replace_block("shares", markdown_table(head, sorted(rows)), page)
    expected = lines.filter(pl.col("part") == "expected").group_by("setting", "method", "half", maintain_order=True)
    rows = [
        [setting, method, half, f"{error:.4f}", "" if inside is None else f"{inside:.3f}"]
        for setting, method, half, error, inside in expected.agg(
            pl.col("error").mean(), pl.col("inside").mean()
        ).iter_rows()
    ]
    head = ["rows", "method", "half", "error of the accuracy", "inside of ± 1.645 errors"]
    replace_block("expected", markdown_table(head, sorted(rows)), page)
    single = lines.filter(pl.col("part") == "single").group_by("method", "half", maintain_order=True)
    rows = [
        [method, half, str(n), f"{plain:.4f}", f"{calibrated:.4f}", str(better)]
        for method, half, n, plain, calibrated, better in single.agg(
            pl.len(),
            pl.col("plain").mean(),
            pl.col("calibrated").mean(),
            (pl.col("calibrated") < pl.col("plain")).sum().alias("better"),
        ).iter_rows()
    ]
    head = ["model", "half", "tables", "log-loss", "calibrated", "better on"]
    replace_block("single", markdown_table(head, sorted(rows)), page)
    sets = lines.filter(pl.col("part") == "sets").group_by("method", "half", maintain_order=True)
    rows = [
        [method, half, str(n), f"{coverage:.3f}", f"{below:.3f}", f"{least:.3f}", f"{size:.3f}"]
        for method, half, n, coverage, below, least, size in sets.agg(
            pl.len(),
            pl.col("coverage").mean(),
            pl.col("coverage").min().alias("below"),
            pl.col("least").mean().alias("smallest"),
            pl.col("size").mean(),
        ).iter_rows()
    ]
    head = ["method", "half", "tables", "coverage", "least of a table", "least of a class", "size"]
    replace_block("sets", markdown_table(head, sorted(rows)), page)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--parts", nargs="*", default=["shares", "expected", "sets", "single"])
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    asked = parser.parse_args()
    if asked.output is not None:
        measure(asked.output, asked.parts, asked.tables)
    if asked.page is not None:
        write_page(asked.page)


if __name__ == "__main__":
    main()
