"""
Learning row by row
===================

`partial_fit` of every batch gives exactly the model of one fit of all rows.

The state is a sum of sufficient statistics, so the order and the size of the batches do not matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import posteriori as po

X, y = load_digits(return_X_y=True)
X = X > 7  # black and white
train, test = np.arange(1200), np.arange(1200, len(y))
model = po.NaiveBayes()
seen, accuracy = [], []
for start in range(0, 1200, 60):
    rows = train[start : start + 60]
    model.partial_fit(X[rows], y[rows], classes=np.arange(10))
    seen.append(start + 60)
    accuracy.append(model.score(X[test], y[test]))
figure, ax = plt.subplots()
ax.plot(seen, accuracy, marker=".")
ax.set(xlabel="rows seen", ylabel="accuracy on 597 other digits")
plt.show()

# %%
# The largest difference between the posteriors of this model and those of one fit:
whole = po.NaiveBayes().fit(X[train], y[train])
float(np.abs(whole.predict_proba(X[test]) - model.predict_proba(X[test])).max())
