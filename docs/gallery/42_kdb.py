"""
How many parents a feature needs
================================

The log-loss of k-dependence Bayes by the number of parents, by cross-validation.

With no parent it is naive Bayes. Each further parent models more dependence and splits the rows
into smaller groups; back-off to fewer parents keeps the loss from rising steeply.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import posteriori as po

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
models = {f"{k}": po.KDependenceBayes(k=k) for k in range(4)}
scores = po.cross_validate(models, X, y).table
figure, ax = plt.subplots()
ax.errorbar(
    scores["model"].to_list(),
    scores["log_loss"].to_list(),
    scores["log_loss_se"].to_list(),
    marker="o",
    capsize=3,
)
ax.set(xlabel="parents per feature, at most", ylabel="log-loss in nats")
plt.show()
