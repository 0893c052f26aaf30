"""
Twelve labels and three hundred birds
=====================================

EM learns from rows without label: the ellipses of twelve labelled penguins, without and with the others.

Only the four measurements of bill, flipper and body are used, so that the Gaussian assumption is
close to the truth. Where an assumption fails, rows without label may do harm:
:doc:`/hidden` measures it.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins().drop_nulls()
X = penguins.select(
    "bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"
)
truth = penguins["species"].to_numpy()
shown = np.concatenate(
    [np.flatnonzero(truth == name)[:4] for name in np.unique(truth)]
)
few = np.full(len(truth), None, dtype=object)
few[shown] = truth[shown]

models = {
    f"{len(shown)} rows, all labelled": po.GaussianDiscriminant(shrinkage=0.1).fit(
        X[shown], truth[shown]
    ),
    f"and {len(truth) - len(shown)} rows without label": po.GaussianDiscriminant(
        shrinkage=0.1, labels=po.Labels(unlabelled="learn")
    ).fit(X, few),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True, sharex=True)
rest = np.setdiff1d(np.arange(len(truth)), shown)
for ax, (title, model) in zip(axes, models.items()):
    po.plotting.plot_covariances(
        model, X, truth, features=("bill_length_mm", "flipper_length_mm"), ax=ax
    )
    ax.set_title(
        f"{title}\naccuracy on the others {model.score(X[rest], truth[rest]):.3f}",
        pad=24,
    )
plt.show()
