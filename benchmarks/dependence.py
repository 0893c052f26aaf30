"""Features that depend on each other: `make bench` runs this and fills RESULTS.md.

Usage: python benchmarks/dependence.py [--quick]   (--quick: a tenth of the rows, to see that it runs)
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from timing import Row, alternately, report, within

import posteriori as po


def discretiser_row(n: int, rng: np.random.Generator) -> Row:
    """Choose cut points of n × 20 floats, the first without information and each that follows with more."""
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(rng.normal(size=(n, 20)) + np.linspace(0.0, 1.0, 20) * y[:, np.newaxis])
    frame.columns = [f"x{j}" for j in range(20)]
    ours = po.MDLPDiscretizer()
    seconds = alternately(lambda: ours.fit(frame, y), lambda: [frame[name].sort_values() for name in frame], 3)
    size = f"{n:.0e}".replace("e+0", "e")
    return within(
        f"MDLPDiscretizer fit, {size}×20 float64, 3 classes", *seconds, 3, "pandas sort_values of each column"
    )


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    rng = np.random.default_rng(0)
    n = 100_000 if quick else 1_000_000
    return [discretiser_row(n, rng)]


if __name__ == "__main__":
    report("Features that depend on each other", rows)
