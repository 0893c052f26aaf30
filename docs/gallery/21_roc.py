"""
ROC curves of two models
========================

The true positive rate against the false positive rate, at every threshold of the posterior.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import posteriori as po

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, random_state=0, stratify=y
)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6))
for ax, model in zip(axes, (po.NaiveBayes(), po.GaussianDiscriminant())):
    po.plotting.plot_roc(model.fit(X_train, y_train), X_test, y_test, ax=ax)
    ax.set_title(type(model).__name__, pad=24)
plt.show()
