"""Measure models on rows outside of what they were trained on: beyond the range of a number, or in a new group.

Usage: python -m experiments.new_places --keep FILE [--parts NAME …] [--models NAME …] [--again NAME …]
       [--tables NAME …] [--columns N] [--limit SECONDS] [--beside FILE] [--write]

Three parts, of the splits in experiments/shifted_splits.py: tables of classes, tables whose target is a number, and
groups that are left out in turn. Scores are stored in a file, and those already in it are not measured again, except
for the models named by --again, which are measured again on the tables and parts that the call names. A fit that takes
longer than the limit is stopped, and its split counts for no model. --models also names the models that are shown: all
their figures are of the splits on which each of them was measured. --beside names scores of an earlier state, and
prints how the pool differs from it. With --write, the figures are put into docs/guide/tasks/new_places.md; without it
they are printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import numpy as np

import posteriori as po
from experiments import regression, regression_rivals
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import SEED, data_folder, in_first_half
from experiments.rivals import POOL, NativeClassifier
from experiments.shifted_splits import GROUPS, KINDS, Places, kind_of, names_of, outside, read_places
from posteriori.model_selection.metrics import accuracy, fill_undefined, log_loss

LIGHTGBM, LOGISTIC, CATBOOST = "LightGBM, stopped early", "logistic regression", "CatBoost"
MODELS = {
    "classes": (POOL, LIGHTGBM, LOGISTIC, CATBOOST),
    "numbers": (POOL, LIGHTGBM, CATBOOST),
    "groups": (POOL, LIGHTGBM, LOGISTIC, CATBOOST),
}
HALVES = ("tuning", "report")
WORST_SHARE = 0.01  # of the rows, which one RMSE leaves out
A_RISE = 0.03  # of the log-loss, in nats
Figures = dict[str, Any]
Scores = dict[str, dict[str, dict[str, dict[str, Figures]]]]  # by part, table, split and model


def measure(part: str, table: str, split: str, model: str, n_columns: int) -> Figures:
    """Return the figures of a model on the test rows of a split, or the error of a library that fails."""
    folder = data_folder()
    assert folder is not None
    places = read_places(part, table, folder, n_columns)
    test = places.splits[split]
    of_model = _of_numbers if part == "numbers" else _of_classes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of categories that the training rows do not have, of collinear columns
            return of_model(model, places, test)
    except Exception as error:  # of a library, on one table: the other scores are still wanted
        return {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"}


def _of_classes(name: str, places: Places, test: np.ndarray) -> Figures:
    """Return log-loss in nats and accuracy of all test rows, and of those with a cell outside of the training rows."""
    model, y = _classifier(name), places.y[test]
    model.fit(places.X.filter(~test), places.classes[places.y[~test]])
    counts = np.bincount(places.y[~test], minlength=len(places.classes))
    posterior = np.zeros((len(y), len(counts)))
    posterior[:, np.searchsorted(places.classes, model.classes_)] = model.predict_proba(places.X.filter(test))
    posterior = fill_undefined(posterior, counts / counts.sum())
    figures: Figures = {"rows": len(y), "loss": log_loss(y, posterior), "accuracy": accuracy(y, posterior)}
    beyond = outside(places.X, test)[test]
    figures["rows_outside"] = int(beyond.sum())
    if beyond.any():
        y, posterior = y[beyond], posterior[beyond]
        figures |= {"loss_outside": log_loss(y, posterior), "accuracy_outside": accuracy(y, posterior)}
    return figures


def _classifier(name: str) -> Any:
    """Return a classifier at its defaults."""
    if name == POOL:
        return po.GenerativeClassifier(n_jobs=1)
    if name == LOGISTIC:
        return po.comparison.discriminative("logistic").set_params(random_state=SEED)
    return {LIGHTGBM: NativeClassifier("lightgbm", stops_early=True), CATBOOST: NativeClassifier("catboost")}[name]


def _of_numbers(name: str, places: Places, test: np.ndarray) -> Figures:
    """Return errors, and of our own regressor scores of its intervals, in standard deviations of the training rows."""
    scale = float(places.y[~test].std())
    X, y, y_test = places.X.filter(~test), places.y[~test] / scale, places.y[test] / scale
    figures: Figures = {"rows": len(y_test), "rows_outside": int(outside(places.X, test)[test].sum())}
    if name == POOL:
        forecast = regression.posteriori(X, y)(places.X.filter(test))
        figures |= regression.scores_of(y_test, forecast)
        mean = forecast.mean
    else:
        fit = regression_rivals.lightgbm if name == LIGHTGBM else regression_rivals.catboost
        mean = fit(X, y)(places.X.filter(test))
    squares = np.sort((y_test - mean) ** 2)
    most = squares[: int(np.ceil((1 - WORST_SHARE) * len(squares)))]
    return figures | {"rmse": float(np.sqrt(squares.mean())), "rmse_of_most": float(np.sqrt(most.mean()))}


class Worker:
    """A process that measures, so that a fit that takes too long can be stopped."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pool = multiprocessing.get_context("spawn").Pool(1)

    def measure(self, *what: Any, limit: float) -> Figures:
        """Measure in the process; after `limit` seconds end it and start another one."""
        try:
            found: Figures = self._pool.apply_async(measure, what).get(limit)
        except multiprocessing.TimeoutError:
            self.close()
            self._start()
            return {"stopped": limit}
        return found

    def close(self) -> None:
        """End the process."""
        self._pool.terminate()
        self._pool.join()


@dataclass(frozen=True)
class Wanted:
    """What is to be measured."""

    parts: Sequence[str]
    models: Sequence[str]
    again: Sequence[str]
    tables: Sequence[str]
    n_columns: int
    limit: float

    def jobs(self, folder: Path) -> Iterator[tuple[str, str, str, str]]:
        """Yield the part, the table, the split and the model of each score."""
        for part in self.parts:
            for table in names_of(part, folder):
                if self.tables and table not in self.tables:
                    continue
                for split in read_places(part, table, folder, self.n_columns).splits:
                    yield from ((part, table, split, model) for model in MODELS[part] if model in self.models)


def fill(scores: Scores, wanted: Wanted, folder: Path, keep: Path) -> None:
    """Measure what is not in the scores yet, and store each score at once."""
    worker = Worker()
    try:
        for part, table, split, model in wanted.jobs(folder):
            found = scores.setdefault(part, {}).setdefault(table, {}).setdefault(split, {})
            if model in found and model not in wanted.again:
                continue
            found[model] = worker.measure(part, table, split, model, wanted.n_columns, limit=wanted.limit)
            print(part, table, split, model, found[model], sep="  ", flush=True)
            keep.write_text(json.dumps(scores, indent=1), encoding="utf-8")
    finally:
        worker.close()


@dataclass(frozen=True)
class Row:
    """The figures of each model on a split on which all were measured."""

    part: str
    table: str
    split: str
    of: dict[str, Figures]

    @property
    def half(self) -> str:
        """The half of the tables: defaults are tuned on one, and reported on both."""
        if self.part == "numbers":
            return regression.half_of(self.table)
        return HALVES[0] if in_first_half(self.table) else HALVES[1]


def rows_of(scores: Scores, part: str, models: Sequence[str]) -> list[Row]:
    """Return the splits of a part on which each of the models was measured, without a stop or an error."""
    return [
        Row(part, table, split, found)
        for table, splits in sorted(scores.get(part, {}).items())
        for split, found in splits.items()
        if all({"stopped", "error"}.isdisjoint(found.get(model, {"error": ""})) for model in models)
    ]


def shown(scores: Scores, part: str, models: Sequence[str]) -> list[str]:
    """Return those of the models that have scores of a part."""
    measured = {name for splits in scores.get(part, {}).values() for found in splits.values() for name in found}
    return [name for name in MODELS[part] if name in models and name in measured]


def _mean(rows: Sequence[Row], model: str, figure: str) -> float:
    return float(np.mean([row.of[model][figure] for row in rows])) if rows else float("nan")


def _geometric(rows: Sequence[Row], model: str, figure: str) -> float:
    return float(np.exp(np.mean([np.log(row.of[model][figure]) for row in rows]))) if rows else float("nan")


def of_classes(rows: list[Row], models: Sequence[str]) -> str:
    """Return one line per model: the mean log-loss by half and by kind of split, the worst split, and the accuracy."""
    kinds = [kind for kind in KINDS if any(kind_of(row.split) == kind for row in rows)]
    parts = [[row for row in rows if row.half == half] for half in HALVES]
    parts += [[row for row in rows if kind_of(row.split) == kind] for kind in kinds]
    lines = []
    for model in models:
        worst = max(rows, key=lambda row: row.of[model]["loss"])
        cells = [f"{_mean(part, model, 'loss'):.3f}" for part in (rows, *parts)]
        cells += [f"{worst.of[model]['loss']:.2f} ({worst.table})", f"{_mean(rows, model, 'accuracy'):.3f}"]
        lines.append([model, *cells])
    heads = ["all", *(f"{half} half" for half in HALVES), *(f"{KINDS[kind]}" for kind in kinds)]
    sizes = [f"{head} ({len(part)})" for head, part in zip(heads, (rows, *parts), strict=True)]
    return markdown_table(["model", *sizes, "worst split", "accuracy"], lines)


def of_numbers(rows: list[Row], models: Sequence[str]) -> str:
    """Return one line per kind of split and model: errors, and coverage and width of the 90 % intervals."""
    lines = []
    for kind in ("random", "upper", "lower", "without"):
        of_kind = [row for row in rows if kind_of(row.split) == kind]
        for model in models if of_kind else ():
            errors = [f"{_geometric(of_kind, model, figure):.3f}" for figure in ("rmse", "rmse_of_most")]
            own = _of_intervals(of_kind, model) if model == POOL else ["–"] * 5
            lines.append([f"{KINDS[kind]} ({len(of_kind)})", model, *errors, *own])
    head = ["test rows", "model", "RMSE", f"RMSE without the worst {WORST_SHARE:.0%}", "CRPS"]
    intervals = [*(f"coverage, {half} half" for half in HALVES), "least coverage", "width"]
    return markdown_table([*head, *intervals], lines)


def _of_intervals(rows: list[Row], model: str) -> list[str]:
    halves = [f"{_mean([row for row in rows if row.half == half], model, 'coverage'):.3f}" for half in HALVES]
    least = min(rows, key=lambda row: row.of[model]["coverage"])
    named = f"{least.of[model]['coverage']:.2f} ({least.table})"
    return [f"{_geometric(rows, model, 'crps'):.3f}", *halves, named, f"{_geometric(rows, model, 'width'):.2f}"]


def of_groups(rows: list[Row], models: Sequence[str]) -> str:
    """Return two tables, of the log-loss and of the accuracy: one line per data set, its mean and its worst group."""
    return "\n\n".join(_block_of_groups(rows, models, *what) for what in (("loss", max), ("accuracy", min)))


def _block_of_groups(rows: list[Row], models: Sequence[str], figure: str, worst: Any) -> str:
    lines: list[list[str]] = []
    means: dict[str, list[list[float]]] = {half: [] for half in HALVES}
    for table in dict.fromkeys(row.table for row in rows):
        groups = [row for row in rows if row.table == table and kind_of(row.split) == "group"]
        at_random = [row for row in rows if row.table == table and kind_of(row.split) == "random"]
        if not groups or not at_random:
            continue
        found = [[row.of[model][figure] for row in groups] for model in models]
        usual = _mean(at_random, models[0], figure)
        means[groups[0].half].append([usual, *(float(np.mean(one)) for one in found)])
        name, _, column = table.partition(": ")
        cells = [f"{np.mean(one):.3f}, worst {worst(one):.3f}" for one in found]
        lines.append([f"{name}, {GROUPS[name, column]} left out ({len(groups)})", f"{usual:.3f}", *cells])
    for half, some in means.items():
        if some:
            lines.append([f"**mean, {half} half ({len(some)})**", *(f"{one:.3f}" for one in np.mean(some, axis=0))])
    title = {"loss": "log-loss", "accuracy": "accuracy"}[figure]
    return markdown_table([title, f"{models[0]}, random rows", *models], lines)


TABLES = {"classes": of_classes, "numbers": of_numbers, "groups": of_groups}
BLOCKS = {part: f"new places {part}" for part in TABLES}
PAGES = dict.fromkeys(BLOCKS.values(), DOCS / "guide" / "tasks" / "new_places.md")


def text_of(scores: Scores, part: str, models: Sequence[str]) -> str:
    """Return the figures of a part as the page shows them."""
    names = shown(scores, part, models)
    rows = rows_of(scores, part, names) if names else []
    if not rows:
        return "Nothing is measured."
    n_splits = sum(len(splits) for splits in scores[part].values())
    absent = f"; {n_splits - len(rows)} more are left out, on which a model was stopped or failed"
    lead = f"{len(rows)} splits of {len({row.table for row in rows})} tables{absent if len(rows) < n_splits else ''}:"
    return f"{lead}\n\n{TABLES[part](rows, names)}"


def differences(scores: Scores, before: Scores, part: str) -> str:
    """Return how the pool differs from an earlier state on the splits that both have, by half and kind of split."""
    earlier = {(row.table, row.split): row for row in rows_of(before, part, [POOL])}
    known = [row for row in rows_of(scores, part, [POOL]) if (row.table, row.split) in earlier]
    pairs = [(row, earlier[row.table, row.split]) for row in known]
    lines = []
    for half in HALVES:
        for kind in dict.fromkeys(kind_of(row.split) for row in known):
            some = [pair for pair in pairs if pair[0].half == half and kind_of(pair[0].split) == kind]
            if some:
                cells = _ratios(some) if part == "numbers" else _rises(some)
                lines.append([f"{half} half, {KINDS.get(kind, kind)} ({len(some)})", *cells])
    if part == "numbers":
        head = ["RMSE after / before", "CRPS", "worst CRPS", "coverage before", "after", "width after / before"]
    else:
        head = ["log-loss before", "after", "worst rise", f"rises above {A_RISE}", "accuracy before", "after"]
    return markdown_table([f"{POOL}, {part}", *head], lines)


def _rises(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
    before, after = ([one.of[POOL]["loss"] for one in some] for some in ([p[1] for p in pairs], [p[0] for p in pairs]))
    rise = np.subtract(after, before)
    worst = pairs[int(rise.argmax())][0]
    right = [f"{_mean([pair[place] for pair in pairs], POOL, 'accuracy'):.3f}" for place in (1, 0)]
    named = f"{rise.max():+.3f} ({worst.table}, {worst.split})"
    return [f"{np.mean(before):.4f}", f"{np.mean(after):.4f}", named, str(int((rise > A_RISE).sum())), *right]


def _ratios(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
    ratio = partial(_ratio, pairs)
    crps = ratio("crps")
    worst = pairs[int(crps.argmax())][0]
    means = [f"{np.exp(np.log(one).mean()):.3f}" for one in (ratio("rmse"), crps, ratio("width"))]
    coverage = [f"{_mean([pair[place] for pair in pairs], POOL, 'coverage'):.3f}" for place in (1, 0)]
    return [*means[:2], f"{crps.max():.3f} ({worst.table}, {worst.split})", *coverage, means[2]]


def _ratio(pairs: Sequence[tuple[Row, Row]], figure: str) -> np.ndarray:
    return np.array([after.of[POOL][figure] / before.of[POOL][figure] for after, before in pairs])


def _read(path: Path) -> Scores:
    scores: Scores = json.loads(path.read_text(encoding="utf-8"))
    return scores


def main() -> None:
    """Measure what is not measured yet, and print the figures or fill the page."""
    every = list(dict.fromkeys(name for names in MODELS.values() for name in names))
    parser = argparse.ArgumentParser(description="Measure models outside of what they were trained on.")
    parser.add_argument("--keep", type=Path, required=True, metavar="FILE", help="store scores here, and go on from it")
    parser.add_argument("--parts", nargs="+", default=list(MODELS), choices=list(MODELS), help="only these parts")
    parser.add_argument("--models", nargs="+", default=every, choices=every, metavar="NAME", help="only these models")
    parser.add_argument("--again", nargs="+", default=[], choices=every, metavar="NAME", help="measure these again")
    parser.add_argument("--tables", nargs="*", metavar="NAME", help="measure these tables only; none: only show")
    parser.add_argument("--columns", type=int, default=1, metavar="N", help="numeric columns that split a table")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="of a split")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="scores of an earlier state of the pool")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/guide/tasks/new_places.md")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    keep: Path = arguments.keep
    scores = _read(keep) if keep.exists() else {}
    if arguments.tables != []:
        limits = arguments.columns, arguments.limit
        wanted = Wanted(arguments.parts, arguments.models, arguments.again, arguments.tables or (), *limits)
        fill(scores, wanted, folder, keep)
    for part in arguments.parts:
        if arguments.beside is not None:
            print(differences(scores, _read(arguments.beside), part))
        text = text_of(scores, part, arguments.models)
        if arguments.write:
            block = BLOCKS[part]
            replace_block(block, text, PAGES[block])
        else:
            print(text)


if __name__ == "__main__":
    main()
