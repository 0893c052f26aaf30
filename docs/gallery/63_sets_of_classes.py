"""
Sets of classes, and when to ask
================================

A set of classes holds the true one in a promised share of rows. Where it has two, the posterior is divided.

The promise follows from held-out rows. The sets grow with it: the same rows under three promises.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po
from posteriori.datasets import load_penguins

columns = ["bill_length_mm", "bill_depth_mm", "species"]
birds = load_penguins().select(columns).drop_nulls()
pool = po.GenerativeClassifier(members=["nb", "lda", "qda"]).fit(birds, "species")
length, depth = np.meshgrid(np.linspace(32, 60, 140), np.linspace(13, 22, 90))
grid = np.column_stack([length.ravel(), depth.ravel()])
rows = [dict(zip(columns, row, strict=False)) for row in grid.tolist()]

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True)
colours = np.array([[0.27, 0.47, 0.67], [0.80, 0.73, 0.27], [0.40, 0.60, 0.40]])
for ax, coverage in zip(axes, (0.9, 0.98, 0.99), strict=True):
    included = pool.predict_set(rows, coverage).included.astype(float)
    mixed = included @ colours / included.sum(axis=1, keepdims=True)
    extent = (32, 60, 13, 22)
    image = mixed.reshape(*length.shape, 3)
    ax.imshow(image, origin="lower", extent=extent, aspect="auto", alpha=0.6)
    ax.plot(birds["bill_length_mm"], birds["bill_depth_mm"], "k.", ms=2)
    several = (included.sum(axis=1) > 1).reshape(length.shape)
    ax.contour(length, depth, several, levels=[0.5], colors="k", linewidths=1)
    ax.set(title=f"{coverage:.0%}", xlabel="bill length (mm)")
axes[0].set_ylabel("bill depth (mm)")
for name, place in (
    ("Adelie", (33, 21)),
    ("Chinstrap", (50, 21)),
    ("Gentoo", (50, 13.5)),
):
    axes[0].annotate(name, place, fontsize=8)
plt.show()

# %%
# Within the black lines, sets have two classes or three. Whether to ask a person there is a matter of cost: asking pays
# where every class would cost more.
penalty = {true: dict.fromkeys(pool.classes_, 1.0) for true in pool.classes_}
costs = np.linspace(0.01, 0.3, 30)
held_out = pool.out_of_fold_
asked, wrong = [], []
for cost in costs:
    table = {true: {**row, true: 0.0, "ask": cost} for true, row in penalty.items()}
    decided = po.decide(held_out.posterior, pool.classes_, costs=table)
    rest = decided != "ask"
    asked.append(1 - rest.mean())
    truth = pool.classes_[held_out.y_true]
    wrong.append((decided != truth)[rest].mean())
figure, ax = plt.subplots(figsize=(5, 3.2))
ax.plot(np.array(asked) * 100, np.array(wrong) * 100, ".-")
ax.set(xlabel="rows left to a person (%)", ylabel="errors in the others (%)")
plt.show()
