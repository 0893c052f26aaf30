"""
Shrinkage when rows are few
===========================

A covariance of 64 columns needs more rows than there are; shrinking it to a diagonal one helps.

`"ledoit_wolf"` and `"oas"` choose the amount from the rows themselves, by expected squared
error of the covariance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import posteriori as po

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=200, random_state=0, stratify=y
)
X_train, X_test = (
    X_train[:, X_train.std(axis=0) > 0],
    X_test[:, X_train.std(axis=0) > 0],
)


def loss(shrinkage):
    """Return the log-loss on the test rows, in nats."""
    model = po.GaussianDiscriminant(shrinkage=shrinkage).fit(X_train, y_train)
    return log_loss(y_test, model.predict_proba(X_test))


amounts = np.linspace(0.05, 1, 12)
figure, ax = plt.subplots()
ax.plot(amounts, [loss(amount) for amount in amounts], marker=".", label="a number")
for name, colour in (("ledoit_wolf", "C1"), ("oas", "C2")):
    ax.axhline(loss(name), color=colour, linestyle="--", label=f'"{name}"')
ax.set(
    xlabel="shrinkage",
    ylabel="log-loss in nats",
    title="200 training rows, 64 pixels",
)
ax.legend(frameon=False)
plt.show()
