"""Features that depend on each other, and the cuts of numbers: `make bench` runs this and fills RESULTS.md.

Usage: python benchmarks/dependence.py [--quick]   (--quick: a tenth of the rows, to see that it runs)
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from timing import Row, alternately, report, within

import posteriori as po

N_COLUMNS = 20


def mdlp_rows(n: int, rng: np.random.Generator) -> list[Row]:
    """Cut n × 20 floats of 3 classes, half of them informative; sorting them is the least that an exact cut takes."""
    y = rng.integers(0, 3, n)
    values = rng.normal(size=(n, N_COLUMNS))
    values[:, : N_COLUMNS // 2] += np.outer(y, rng.uniform(0.0, 2.0, N_COLUMNS // 2))
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(N_COLUMNS)])
    ours = po.MDLPDiscretizer()
    seconds = alternately(lambda: ours.fit(table, y), lambda: [table[name].sort_values() for name in table], 5)
    size = f"{n:.0e}".replace("e+0", "e") + f"×{N_COLUMNS} float64, 3 classes"
    return [within(f"MDLPDiscretizer.fit, {size}", *seconds, 3, "pandas, a sort of each column")]


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    rng = np.random.default_rng(0)
    return mdlp_rows(100_000 if quick else 1_000_000, rng)


if __name__ == "__main__":
    report("Dependent features", rows)
