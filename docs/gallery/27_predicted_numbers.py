"""
Predicted numbers with their intervals
======================================

Held-out predictions of a number beside the truth, and the density of single rows.

A regressor answers with a density. Its held-out predictions, which every fit keeps, show whether the intervals are right.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins().drop_nulls("body_mass_g")
model = po.GenerativeRegressor().fit(penguins, "body_mass_g")

held_out = model.out_of_fold_
low, high = held_out.density.interval(0.9).T
mean = held_out.density.mean
figure, axes = plt.subplots(figsize=(5, 4))
axes.vlines(mean, low, high, color="0.8", linewidth=1)
inside = (low <= held_out.y) & (held_out.y <= high)
axes.plot(mean[inside], held_out.y[inside], "o", markersize=3)
axes.plot(mean[~inside], held_out.y[~inside], "o", markersize=4)
axes.axline((4000, 4000), slope=1, color="0.4", linewidth=0.8)
axes.set(xlabel="predicted body mass (g)", ylabel="true body mass (g)")
axes.set_title(f"{inside.mean():.0%} within their 90 % intervals", fontsize=10)
figure.tight_layout()

# %%
# The density of one penguin, with all cells known, and with only the island known.
row = penguins.head(1)
hidden = row.with_columns(
    **{name: None for name in row.columns if name not in ("island", "body_mass_g")}
)
figure, axes = plt.subplots(figsize=(5, 3))
for rows, label in ((row, "all cells"), (hidden, "the island alone")):
    density = model.predict_density(rows)
    grid = np.linspace(2500, 6500, 200)
    share = [density.probability_between(at - 50, at + 50)[0] / 100 for at in grid]
    axes.plot(grid, share, label=label)
axes.set(xlabel="body mass (g)", ylabel="density")
axes.legend(frameon=False)
figure.tight_layout()
