"""Measure the pool beside boosting and a forest on every table of more than 5,000 rows.

Usage: python -m experiments.larger_tables --keep FILE [--models NAME …] [--again NAME …] [--tables NAME …]
       [--threads N] [--limit SECONDS] [--write]

At most 50,000 rows of each table, three random splits into 70 % for training and 30 % for testing. Each fit runs in a
process of its own, with as many threads as --threads allows every library. Scores are stored in a file, and those
already in it are not measured again, except for the models named by --again, so that models can be measured at
different times. A model that takes longer than the limit on a split of a table is left out on that table. With --write,
the figures are put into docs/pool.md; without it they are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import posteriori as po
from experiments.machine import IDLE, Moment, limits
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import SEED, data_folder, read_index, tables
from experiments.rivals import POOL, NativeClassifier
from posteriori.model_selection.metrics import log_loss

PAGE = DOCS / "pool.md"
LEAST_ROWS, MOST_ROWS = 5_000, 50_000
SPLITS = 3
TEST_SHARE = 0.3
TUNED = "LightGBM, stopped early"
MODELS = (POOL, "LightGBM", TUNED, "CatBoost", "random forest")
Scores = dict[str, dict[str, dict[str, dict[str, Any]]]]  # by table, model and split


def make(name: str, threads: int) -> Any:
    """Return a model at its defaults."""
    if name == POOL:
        return po.GenerativeClassifier(n_jobs=threads)
    if name == "random forest":
        return po.comparison.discriminative(RandomForestClassifier(n_jobs=threads, random_state=SEED))
    if name == TUNED:
        return NativeClassifier("lightgbm", n_jobs=threads, stops_early=True)
    return NativeClassifier(name.lower(), n_jobs=threads)


def measure(name: str, table_name: str, split: int, threads: int) -> dict[str, Any]:
    """Return the log-loss of test rows in nats, and the wall and CPU seconds of fit and of predict_proba."""
    folder = data_folder()
    assert folder is not None
    (table,) = tables(folder, [table_name], MOST_ROWS)
    classes, y = np.unique(table.y.to_numpy(), return_inverse=True)
    train, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, random_state=split, stratify=y)
    X, labels, X_test = table.X[train], classes[y[train]], table.X[test]
    if name == POOL:  # loads the machine code
        make(name, threads).fit(X.head(2000), labels[:2000]).predict_proba(X_test.head(100))
    model, begun = make(name, threads), Moment.now()
    model.fit(X, labels)
    fit, then = begun.spent(), Moment.now()
    posterior = model.predict_proba(X_test)
    predict = then.spent()
    assert np.array_equal(model.classes_, classes)
    return {"loss": log_loss(y[test], posterior), "fit": fit, "predict": predict, "others": begun.others()}


def measure_apart(name: str, table: str, split: int, threads: int, limit: float) -> dict[str, Any]:
    """Measure in a process of its own, in which every library reads the number of threads when it is loaded."""
    command = [sys.executable, "-m", "experiments.larger_tables", "--one", name, table, str(split)]
    try:
        done = subprocess.run(
            [*command, "--threads", str(threads)],
            env=os.environ | limits(threads),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {"stopped": limit, "threads": threads}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"threads": threads}


def larger_tables(folder: Path) -> list[str]:
    """Return the names of the tables of more than 5,000 rows, the smallest first."""
    lines = [line for line in read_index(folder) if int(line["rows"]) > LEAST_ROWS]
    return [line["name"] for line in sorted(lines, key=lambda line: int(line["rows"]) * int(line["columns"]))]


def means(found: dict[str, dict[str, Any]] | None) -> tuple[float, float, float] | None:
    """Return the mean over splits of log-loss and of wall and CPU seconds of fit and predict_proba."""
    if not found or any("stopped" in one for one in found.values()):
        return None
    wall, cpu = np.mean([np.add(one["fit"], one["predict"]) for one in found.values()], axis=0)
    return float(np.mean([one["loss"] for one in found.values()])), float(wall), float(cpu)


def by_table(scores: Scores) -> str:
    """Return one line per table, the least log-loss bold, and how often the pool is below each rival."""
    shown = [name for name in MODELS if any(name in found for found in scores.values())]
    lines = []
    for table, found in sorted(scores.items()):
        values = {name: means(found.get(name)) for name in shown}
        least = min((value[0] for value in values.values() if value), default=0.0)
        lines.append([table, *(_cell(values[name], least, len(found.get(name, {}))) for name in shown)])
    text = markdown_table(["table", *shown], lines)
    wins = [_wins(scores, rival) for rival in shown if rival != POOL and POOL in shown]
    return "\n\n".join(
        [text, *([f"The log-loss of the pool is below {'; '.join(wins)}."] if wins else []), note(scores)]
    )


def _cell(value: tuple[float, float, float] | None, least: float, n_splits: int) -> str:
    if value is None:
        return "–"
    loss, wall, cpu = value
    text = f"**{loss:.4f}**" if loss < least + 5e-5 else f"{loss:.4f}"
    fewer = "" if n_splits == SPLITS else f", {n_splits} of {SPLITS} splits"
    return f"{text} ({wall:.1f} s, CPU {cpu:.1f} s{fewer})"


def _wins(scores: Scores, rival: str) -> str:
    lower = []
    for found in scores.values():
        ours, theirs = found.get(POOL, {}), found.get(rival, {})
        both = ours.keys() & theirs.keys()  # the splits on which both were measured
        pair = [means({split: one[split] for split in both}) for one in (ours, theirs)]
        if pair[0] is not None and pair[1] is not None:
            lower.append(pair[0][0] < pair[1][0])
    return f"that of {rival} on {sum(lower)} of {len(lower)} tables"


def note(scores: Scores) -> str:
    """Return how many threads each model used, and beside how much other work."""
    parts = []
    for name in MODELS:
        found = [one for models in scores.values() for one in models.get(name, {}).values()]
        if not found:
            continue
        threads = " or ".join(str(one) for one in sorted({one["threads"] for one in found}))
        load = [one["others"] for one in found if one.get("others") is not None]
        busy = f", while other processes used up to {max(load):.2f} cores" if load and max(load) > IDLE else ""
        stopped = sorted(table for table, models in scores.items() if _stopped(models.get(name, {})))
        stops = f", stopped by the limit of time on {', '.join(stopped)}" if stopped else ""
        parts.append(f"{name}: {threads} thread{'' if threads == '1' else 's'}{busy}{stops}")
    return f"{'; '.join(parts)}."


def _stopped(found: dict[str, dict[str, Any]]) -> bool:
    return any("stopped" in one for one in found.values())


def fill(scores: Scores, names: list[str], wanted: list[str], threads: int, limit: float, keep: Path) -> None:
    """Measure what is not in the scores yet, and store each score at once."""
    for name in wanted:
        for split in map(str, range(SPLITS)):
            for table in names:
                found = scores.setdefault(table, {}).setdefault(name, {})
                if split in found or _stopped(found):
                    continue
                found[split] = measure_apart(name, table, int(split), threads, limit)
                print(name, table, split, found[split], flush=True)
                keep.write_text(json.dumps(scores, indent=1))


def main() -> None:
    """Measure what is not measured yet, and print the figures or fill the page."""
    parser = argparse.ArgumentParser(description="Measure the pool beside boosting and a forest on larger tables.")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store scores here, and go on from those in it")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="NAME", help="only these models")
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="measure these models again")
    parser.add_argument("--tables", nargs="*", metavar="NAME", help="measure these tables only")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of every library")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="of a split")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/pool.md")
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "TABLE", "SPLIT"), help="measure one split and print it")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    if arguments.one:
        warnings.simplefilter("ignore")  # of categories that the training rows do not have
        name, table, split = arguments.one
        print(json.dumps(measure(name, table, int(split), arguments.threads)))
        return
    if arguments.keep is None:
        parser.error("name the file of scores: --keep FILE")
    keep: Path = arguments.keep
    scores: Scores = json.loads(keep.read_text()) if keep.exists() else {}
    for found in scores.values():
        for name in arguments.again:
            found.pop(name, None)
    names = larger_tables(folder) if arguments.tables is None else arguments.tables
    fill(scores, names, arguments.models, arguments.threads, arguments.limit, keep)
    text = by_table(scores)
    if arguments.write:
        replace_block("larger tables", text, PAGE)
    else:
        print(text)


if __name__ == "__main__":
    main()
