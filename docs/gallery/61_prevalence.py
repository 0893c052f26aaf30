"""
Another prevalence
==================

A model learned in a clinic is used for screening, where the illness is rare: change the prior.

The class-conditional densities stay, and only the prior moves. The posterior follows from Bayes' rule.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import posteriori as po

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = np.where(y == 0, "malignant", "benign")
X = X[["mean radius"]]
figure, ax = plt.subplots()
radius = np.linspace(6, 28, 200)
for share in (0.5, 0.37, 0.1, 0.01):
    model = po.NaiveBayes(priors={"malignant": share, "benign": 1 - share}).fit(
        X, y
    )
    ax.plot(
        radius,
        model.predict_proba(pd.DataFrame({"mean radius": radius}))[:, 1],
        label=f"{share:.0%} malignant",
    )
ax.set(xlabel="mean radius", ylabel="p(malignant | radius)")
ax.legend(frameon=False)
plt.show()
