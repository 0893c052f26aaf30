"""placeholder"""
from __future__ import annotations
from pathlib import Path
import numpy as np
import polars as pl

N_NUMBERS, N_STRINGS, N_GAPPY, GAPS = 34, 16, 7, 0.05
ROW_GROUP = 1 << 18


def write_rows(path: Path, n: int, seed: int = 0) -> None:
    """Write n rows of 34 numbers, 16 strings and a target of two classes; 7 columns lack 5 % of their numbers."""
    rng = np.random.default_rng(seed)
    rules = np.random.default_rng(12)
    loadings = rules.normal(0, 1.0, (6, N_NUMBERS)) * (rules.random((6, N_NUMBERS)) < 0.4)
    cardinalities = [int(k) for k in np.geomspace(3, 60, N_STRINGS)]
    preferences = [rules.normal(0, 0.7, (6, k)) for k in cardinalities]
    parts = []
    for start in range(0, n, ROW_GROUP):
        m = min(ROW_GROUP, n - start)
        hidden = rng.normal(size=(m, 6))
        score = 0.7 * hidden[:, 0] + 0.6 * hidden[:, 1] * hidden[:, 2] + 0.5 * np.abs(hidden[:, 3]) - 0.4
        label = rng.random(m) < 1 / (1 + np.exp(-1.3 * score))
        numbers = hidden @ loadings + rng.normal(0, 1.2, (m, N_NUMBERS))
        numbers[:, 10:20] = np.exp(0.5 * numbers[:, 10:20])
        numbers[:, 20:26] = np.round(3 * numbers[:, 20:26])
        gaps = rng.random((m, N_GAPPY)) < GAPS
        columns = {}
        for j in range(N_NUMBERS):
            values = pl.Series(numbers[:, j])
            if j < N_GAPPY:
                values = pl.Series(np.where(gaps[:, j], np.nan, numbers[:, j])).fill_nan(None)
            columns[f"x{j}"] = values
        for j, k in enumerate(cardinalities):
            codes = (hidden @ preferences[j] + rng.gumbel(0, 1, (m, k))).argmax(axis=1)
            columns[f"c{j}"] = pl.Series(np.array([f"value {i}" for i in range(k)], dtype=object)[codes], dtype=pl.String)
        columns["y"] = pl.Series(np.where(label, "yes", "no"))
        parts.append(pl.DataFrame(columns))
    pl.concat(parts).write_parquet(path, row_group_size=ROW_GROUP)


if __name__ == "__main__":
    import sys
    write_rows(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
