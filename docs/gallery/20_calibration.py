"""
Calibration: are 90 % really 90 %?
==================================

Naive Bayes counts correlated evidence twice and is too sure; weights per feature correct it.

Each dot is a bin of held-out rows: the share of malignant tumours against their mean predicted
probability. On the diagonal the probabilities can be taken at face value.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import posteriori as po

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(
    X, y, random_state=0, stratify=y
)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6))
for ax, weights in zip(axes, (None, "conditional")):
    model = po.NaiveBayes(distributions="binned", feature_weights=weights).fit(
        X_train, y_train
    )
    po.plotting.plot_calibration(
        model, X_test, y_test, label="malignant", n_bins=5, ax=ax
    )
    ax.set_title(f"feature_weights={weights!r}", pad=24)
plt.show()
