"""
Watch a model in use
====================

Batches come in. In the tenth, one column drifts; the evidence of its stream rises, and the others stay.

The line is that of an alarm: without a change, the evidence of any stream ever reaches it in at most 1 % of monitors.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import posteriori as po

rng = np.random.default_rng(0)


def batch(n, shift=0.0):
    """Draw rows of two classes; a shift moves the second column."""
    y = rng.integers(2, size=n)
    return pl.DataFrame(
        {
            "age": rng.normal(40 + 6 * y, 8, n),
            "pressure": rng.normal(120 + 10 * y, 12, n) + shift,
            "ward": np.array(["A", "B"])[rng.integers(2, size=n)],
            "ill": np.array(["no", "yes"])[y],
        }
    )


model = po.NaiveBayes().fit(batch(800), "ill")
monitor = po.Monitor(model, batch(600), "ill")
verdicts = []
for number in range(1, 21):
    shift = 0.0 if number < 10 else 5.0
    verdicts.append(monitor.update(batch(120, shift)))
    if verdicts[-1].alarms:
        print(verdicts[-1])

# %%
# The evidence of each stream, batch by batch.
figure, ax = plt.subplots(figsize=(6, 3.4))
names = list(verdicts[-1].evidence)
for name in names:
    line = [one.evidence[name] / np.log(10) for one in verdicts]
    ax.plot(range(1, 21), line, label=name)
ax.axhline(
    np.log10(len(names) / 0.01), color="0.5", ls="--", lw=1
)  # about the line of a column
ax.axvline(10, color="0.8", lw=1)
ax.set(xlabel="batch", ylabel="evidence (powers of 10)")
ax.legend(frameon=False)
plt.show()
