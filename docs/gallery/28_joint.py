"""
What is known moves a density
=============================

One joint model gives the density of a column given nothing, a species, or a range of another column.

No column is the target, so every column can be asked for and every column can be known. The
last picture shows which cells of a table do not fit the rest of their row.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
model = po.JointModel().fit(penguins)

known = {
    "nothing": "",
    "a Gentoo": " | species = Gentoo",
    "flippers from 185 to 195 mm": " | flipper_length_mm in [185, 195]",
}
figure, axes = plt.subplots(figsize=(7.2, 3.2))
middle = np.arange(2600, 6500, 50)
for label, given in known.items():
    density = model.query(f"P(body_mass_g{given})")
    share = [
        density.probability_between(at - 150, at + 150)[0] / 300 for at in middle
    ]
    axes.plot(middle, share, label=label)
axes.set(xlabel="body mass (g)", ylabel="density per g", ylim=(0, None))
axes.legend(
    frameon=False, title="given", loc="center left", bbox_to_anchor=(1, 0.5)
)
plt.show()

# %%
# Twelve penguins, of which three cells were changed: a flipper length, a species, and a body mass.
rows = penguins.drop_nulls()[::28][:12]
rows[2, "flipper_length_mm"] = 231
rows[5, "species"] = "Chinstrap"
rows[10, "body_mass_g"] = 6000
scores = model.score_cells(rows)

figure, axes = plt.subplots(figsize=(8, 4.6))
image = axes.imshow(np.maximum(scores, 0), cmap="magma_r", aspect="auto")
for i, cells in enumerate(rows.rows()):
    for j, cell in enumerate(cells):
        dark = scores[i, j] > scores.max() / 3
        axes.text(
            j,
            i,
            cell,
            ha="center",
            va="center",
            fontsize=8,
            color="white" if dark else "black",
        )
axes.set_xticks(range(len(rows.columns)), rows.columns, rotation=30, ha="right")
axes.set_yticks([])
figure.colorbar(image, label="strangeness of the cell (nats)")
plt.show()
