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

po.plotting.plot_predictions(model)

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
