r"""
Rows without label
==================

Labels are dear and rows are cheap: a generative model also learns from rows whose class nobody wrote down.

A row without label still says where rows lie. Its probability is a mixture,

.. math:: p(x) = \sum_y p(y)\, p(x \mid y),

and the log-likelihood of :math:`n` labelled and :math:`m` unlabelled rows is

.. math:: \sum_{i \le n} \log p(x_i, y_i) + \sum_{i > n} \log \sum_y p(y)\, p(x_i \mid y).

EM maximises it. A missing label is a missing value like any other. The **E step** computes its posterior, the responsibilities

.. math:: r_{iy} = p(y \mid x_i),

and the **M step** estimates the model with each unlabelled row counted in every class, with weight :math:`r_{iy}`. Labelled
rows have :math:`r = 1` for their class. A discriminative model has no :math:`p(x)`, so unlabelled rows do not enter its likelihood.

Six labels
----------
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po

rng = np.random.default_rng(3)
n = 300
truth = np.repeat(["A", "B"], n // 2)
X = rng.normal(size=(n, 2)) * [1.0, 0.5] + np.where(truth == "A", 0, 1)[:, None] * [
    2.5,
    1.5,
]
shown = np.r_[:3, n // 2 : n // 2 + 3]
y = np.full(n, None, dtype=object)
y[shown] = truth[shown]

few = po.GaussianDiscriminant(shrinkage=0.2).fit(X[shown], truth[shown])
all_rows = po.GaussianDiscriminant(
    shrinkage=0.2, labels=po.Labels(unlabelled="learn")
).fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True)
for ax, (title, model) in zip(
    axes, {"6 labels": few, "and 294 rows": all_rows}.items()
):
    po.plotting.plot_decision_regions(model, X, truth, ax=ax, resolution=120)
    ax.scatter(
        *X[shown].T, s=90, facecolor="none", edgecolor="black", linewidth=1.5
    )
    ax.set_title(f"{title}: accuracy {model.score(X, truth):.3f}", pad=24)
plt.show()

# %%
# ``transduction_`` holds the inferred labels, and the trace shows how EM arrived.
print(np.mean(all_rows.transduction_ == truth))
all_rows.log_likelihood_trace_.round(2)

# %%
# One step by hand
# ----------------
#
# The posterior of the first unlabelled row under the model of six labels is how it counts in the first M step.
few.predict_proba(X[[10]]).round(4)

# %%
# When it does harm
# -----------------
#
# EM fits :math:`p(x)`. If the model of :math:`p(x \mid y)` is wrong, the best mixture may split the rows along something else than the
# class. Here the classes differ in height, but each consists of two clouds that differ more in the other direction. Two Gaussians
# explain the rows best by left and right, and the six labels do not weigh enough to prevent it.
rng = np.random.default_rng(3)
n = 400
label = rng.integers(0, 2, n)
side = rng.integers(0, 2, n)
Z = np.column_stack([6.0 * side, 1.2 * label]) + rng.normal(size=(n, 2)) * [
    0.7,
    0.5,
]
names = np.where(label == 1, "high", "low")
hidden = np.full(n, None, dtype=object)
hidden[:6] = names[:6]
own = {"shrinkage": "diagonal", "pooling": "per_class"}
shared = {"shrinkage": "diagonal", "pooling": "pooled"}
fits = {
    "6 labels": po.GaussianDiscriminant(**own).fit(Z[:6], names[:6]),
    "and 394 rows": po.GaussianDiscriminant(
        labels=po.Labels(unlabelled="learn"), **own
    ).fit(Z, hidden),
    "and one variance": po.GaussianDiscriminant(
        labels=po.Labels(unlabelled="learn"), **shared
    ).fit(Z, hidden),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharey=True)
for ax, (title, model) in zip(axes, fits.items()):
    po.plotting.plot_decision_regions(model, Z, names, ax=ax, resolution=120)
    ax.set_title(f"{title}: {model.score(Z, names):.3f}", pad=24)
plt.show()

# %%
# With one variance for both classes the model has fewer ways to explain the rows, and EM stays with the height here.
#
# For this reason ``fit`` warns when EM learns from rows without label, and ``po.Labels(unlabelled="ignore")`` leaves them
# out. ``po.Labels(unlabelled_weight="held_out")`` chooses their weight on held-out labels, and may choose 0.
#
# No label at all
# ---------------
#
# The extreme case is clustering. The classes have no names any more, so the model finds components.
mixture = po.MixtureModel(4, covariance="diagonal", random_state=0).fit(Z)
found = mixture.predict(Z)
figure, ax = plt.subplots(figsize=(6, 3.6))
ax.scatter(*Z.T, c=[f"C{z}" for z in found], s=10)
ax.set_title(f"four components, BIC {mixture.bic(Z):.0f}")
plt.show()

# %%
# **Try it.** Fit mixtures of 1 to 6 components and choose by BIC. How many labels does the wrong model need until the other
# rows stop doing harm?
