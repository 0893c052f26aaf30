"""Cross-validated scores of models on a folder of real tables: what the pages of measurements are made of."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Collection, Iterator
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
    """Log-loss in nats a row, and accuracy, of rows held out."""

    log_loss: float
    accuracy: float


def data_folder() -> Path | None:
    """Return the folder of tables, POSTERIORI_DATA or ../shared/data beside the repository; None if there is none."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("POSTERIORI_DATA", default))
    return folder if (folder / "INDEX.tsv").exists() else None


def tables(folder: Path, names: Collection[str] | None = PAGE_TABLES) -> Iterator[Table]:
    """Read the named tables, or with None every table that has a target, in the order of the index.

    At most 3000 rows of each are read, and classes of fewer than five rows are left out.
    """
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        index = [line for line in csv.DictReader(lines, delimiter="\t") if line["target"]]
    absent = set(names or ()) - {line["name"] for line in index}
    if absent:
        raise ValueError(f"{folder} has no table {', '.join(sorted(absent))}; add it, or run the script with --all")
    for line in index:
        if names is None or line["name"] in names:
            yield _read(folder / line["file"], line)


def _read(path: Path, line: dict[str, str]) -> Table:
    rows = pl.read_csv(path, infer_schema_length=None)
    target, listed = line["target"], line["categorical_columns"]
    features = [name for name in rows.columns if name != target]
    named = {"all": features, "none": []}.get(listed, listed.split(";"))
    rows = rows.with_columns(pl.col(name).cast(pl.String) for name in [*named, target])
    rows = rows.filter(pl.col(target).is_not_null())
    if len(rows) > MOST_ROWS:
        rows = rows[np.sort(np.random.default_rng(SEED).permutation(len(rows))[:MOST_ROWS]).tolist()]
    rows = rows.filter(pl.len().over(target) >= FOLDS)
    return Table(line["name"], rows.select(features), rows[target], len(features) - len(named))


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
