"""
A column that is not Gaussian: bins
===================================

The same column as a Gaussian and as a histogram with cut points where the classes change.

Cut points are chosen by minimum description length (Fayyad and Irani). The model still has a
density, so samples and unusual rows keep their meaning.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import posteriori as po

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X = X[["area error"]]
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4))
for ax, kind in zip(axes, ("gaussian", "binned")):
    model = po.NaiveBayes(distributions=kind).fit(X, y)
    po.plotting.plot_densities(model, "area error", X=X, y=y, ax=ax)
    ax.set_title(f"distributions={kind!r}", pad=24)
plt.show()

# %%
# The cut points, in the unit of the column:
model.cuts_
