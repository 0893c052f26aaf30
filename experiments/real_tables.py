"""Cross-validated scores of models on a folder of real tables: what the pages of measurements are made of."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from posteriori.model_selection import out_of_fold
from posteriori.model_selection.metrics import accuracy, fill_undefined, log_loss

FOLDS = 5
MOST_ROWS = 3000
SEED = 0
# Defaults are tuned on the tables whose names sort before this letter, and reported on both halves. A table stays in
# its half when the folder gets more tables.
SECOND_HALF_BEGINS = "m"
# A fixed list, so that the pages stay comparable when the folder gets more tables.
# fmt: off
PAGE_TABLES = (
    "iris", "wine", "wdbc", "car", "colic", "crx", "german", "diabetes_pima", "glass", "heart_cleveland",
    "hepatitis", "kr_vs_kp", "letter", "lymph", "mushroom", "nursery", "segment", "soybean", "vehicle", "vote",
    "zoo", "satimage", "pima_na", "adult", "titanic_kaggle", "penguins", "telco_churn", "bn_asia",
)
# fmt: on


@dataclass(frozen=True)
class Table:
    """A set of rows with their classes."""

    name: str
    X: pl.DataFrame
    y: pl.Series
    n_numbers: int

    @property
    def n_classes(self) -> int:
        """How many classes the rows show."""
        return self.y.n_unique()


@dataclass(frozen=True)
class Score:
    """Log-loss in nats per row, and accuracy, of rows held out."""

    log_loss: float
    accuracy: float


def in_first_half(name: str) -> bool:
    """Return whether a table is one of those on which defaults are tuned."""
    return name < SECOND_HALF_BEGINS


def halves(sets: Iterable[Table]) -> dict[str, list[Table]]:
    """Return the tables on which defaults are tuned, and the others, by the name of the half."""
    known = list(sets)
    return {
        "first half": [table for table in known if in_first_half(table.name)],
        "second half": [table for table in known if not in_first_half(table.name)],
    }


def shared_folder() -> Path:
    """Return the folder that POSTERIORI_DATA names, or ../shared/data beside the repository; it need not exist."""
    return Path(os.environ.get("POSTERIORI_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def data_folder() -> Path | None:
    """Return the shared folder if it has an index of tables, else None."""
    folder = shared_folder()
    return folder if (folder / "INDEX.tsv").exists() else None


def read_index(folder: Path) -> list[dict[str, str]]:
    """Return the lines of the index that have a target: name, file, target and categorical columns of a table."""
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        return [line for line in csv.DictReader(lines, delimiter="\t") if line["target"]]


def read_labelled_rows(path: Path, line: dict[str, str]) -> tuple[pl.DataFrame, pl.Series]:
    """Return the features and the labels of a table, without unlabelled rows; categorical columns are strings."""
    rows = pl.read_csv(path, infer_schema_length=None)
    target, listed = line["target"], line["categorical_columns"]
    features = [name for name in rows.columns if name != target]
    categorical = {"all": features, "none": []}.get(listed, listed.split(";"))
    rows = rows.with_columns(pl.col(name).cast(pl.String) for name in [*categorical, target]).drop_nulls(target)
    return rows.select(features), rows[target]


def tables(folder: Path, names: Collection[str] | None = PAGE_TABLES, most_rows: int = MOST_ROWS) -> Iterator[Table]:
    """Read the named tables, or with None every table that has a target, in the order of the index.

    At most `most_rows` rows of each are read. Classes of fewer than five rows are left out.
    """
    index = read_index(folder)
    absent = set(names or ()) - {line["name"] for line in index}
    if absent:
        raise ValueError(f"{folder} has no table {', '.join(sorted(absent))}; add it, or run the script with --all")
    for line in index:
        if names is None or line["name"] in names:
            yield _read(folder / line["file"], line, most_rows)


def _read(path: Path, line: dict[str, str], most_rows: int) -> Table:
    X, y = read_labelled_rows(path, line)
    if len(y) > most_rows:
        chosen = np.sort(np.random.default_rng(SEED).permutation(len(y))[:most_rows])
        X, y = X[chosen], y[chosen]
    is_common = y.to_frame().select(pl.len().over(pl.first()) >= FOLDS).to_series()
    n_categorical = {"all": X.width, "none": 0}.get(
        line["categorical_columns"], len(line["categorical_columns"].split(";"))
    )
    return Table(line["name"], X.filter(is_common), y.filter(is_common), X.width - n_categorical)


def score(estimator: Any, table: Table) -> Score:
    """Return the five-fold log-loss and accuracy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of categories that a fold has not met
        held_out = out_of_fold(estimator, table.X, table.y, folds=FOLDS, random_state=SEED)
    posterior = fill_undefined(held_out.posterior, held_out.prior)
    return Score(log_loss(held_out.y_true, posterior), accuracy(held_out.y_true, posterior))


def ranks(losses: np.ndarray) -> np.ndarray:
    """Return the rank of each model (columns) on each set (rows), 1 the least; ties share."""
    rounded = np.round(losses, 6)
    below = (rounded[:, np.newaxis, :] < rounded[:, :, np.newaxis]).sum(axis=2)
    equal = (rounded[:, np.newaxis, :] == rounded[:, :, np.newaxis]).sum(axis=2)
    return below + (equal + 1) / 2
