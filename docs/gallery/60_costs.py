"""
Decisions by cost
=================

To miss a tumour costs more than a needless biopsy: the threshold follows from the costs.

With calibrated probabilities the decision of least expected cost needs no tuning. The curve shows
the cost at every threshold; the dot is the threshold that the costs imply.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import posteriori as po

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = np.where(y == 0, "malignant", "benign")
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)
model = po.NaiveBayes(distributions="binned", feature_weights="conditional").fit(
    X_train, y_train
)
posterior = model.predict_proba(X_test)
costs = {"malignant": {"benign": 20}, "benign": {"malignant": 1}}


def cost_of(decided):
    """Return the mean cost per patient."""
    missed = (y_test == "malignant") & (decided == "benign")
    needless = (y_test == "benign") & (decided == "malignant")
    return (20 * missed + needless).mean()


thresholds = np.linspace(0.005, 0.995, 199)
curve = [
    cost_of(np.where(posterior[:, 1] >= t, "malignant", "benign"))
    for t in thresholds
]
decided = po.decide(posterior, model.classes_, costs=costs)
figure, ax = plt.subplots()
ax.plot(thresholds, curve)
ax.plot(
    1 / 21,
    cost_of(decided),
    "o",
    color="C3",
    label=f"decide(costs=…): {cost_of(decided):.3f}",
)
ax.plot(
    0.5,
    cost_of(model.predict(X_test)),
    "s",
    color="C1",
    label="the most probable class",
)
ax.set(
    xlabel="call it malignant from this probability on", ylabel="cost per patient"
)
ax.legend(frameon=False)
plt.show()
