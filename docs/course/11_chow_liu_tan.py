r"""
Chow-Liu trees and tree-augmented naive Bayes
=============================================

The best tree over the features is a maximum spanning tree of their mutual information.

Naive Bayes lets no feature depend on another. The next larger family lets each depend on **one**: a tree,

.. math:: p(x) = \prod_j p(x_j \mid x_{\mathrm{pa}(j)}).

Its log-likelihood, with the tables at their maximum, is

.. math:: n \sum_j I(x_j;\, x_{\mathrm{pa}(j)}) - n \sum_j H(x_j), \qquad
          I(a; b) = \sum_{a, b} p(a, b) \log \frac{p(a, b)}{p(a)\, p(b)} .

The entropies do not depend on the tree. So the best tree has the largest sum of mutual information over its edges: a **maximum
spanning tree** (Chow and Liu 1968), found by sorting the edges.

By hand
-------

Three binary features: the second copies the first with errors, and the third the second.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import posteriori as po

rng = np.random.default_rng(0)
n = 1000
a = rng.random(n) < 0.5
b = a ^ (rng.random(n) < 0.1)
c = b ^ (rng.random(n) < 0.25)
table = pl.DataFrame({"a": a, "b": b, "c": c})


def information(first, second):
    """Return the mutual information of two binary columns, in nats."""
    joint = np.histogram2d(first, second, bins=2)[0] / len(first)
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float(np.sum(joint * np.log(joint / outer)))


for x, y in (("a", "b"), ("b", "c"), ("a", "c")):
    print(
        f"I({x}; {y}) = {information(table[x].to_numpy(), table[y].to_numpy()):.4f}"
    )

# %%
# Sort: a–b first, b–c second; a–c would close a circle and is left out. The library finds the same tree:
tree = po.ChowLiuTree(alpha=0, backoff=None).fit(table)
print(tree.tree_)
{edge: round(value, 4) for edge, value in tree.edge_information_.items()}

# %%
# As a density, it gives a log-likelihood per row that is larger than that of independent columns by the information of its
# edges:
separate = sum(
    float(np.sum(p * np.log(p)))
    for p in (np.bincount(table[x].to_numpy()) / n for x in table.columns)
)
print(f"independent {separate:.4f}, tree {tree.score_samples(table).mean():.4f}")
print(f"difference  {tree.score_samples(table).mean() - separate:.4f}")

# %%
# Trees for classification
# ------------------------
#
# **Chow-Liu classifier**: one tree per class. **Tree-augmented naive Bayes** (TAN; Friedman, Geiger and Goldszmidt 1997): one tree for
# all classes, with the class as a further parent of each feature,
#
# .. math:: p(y, x) = p(y) \prod_j p(x_j \mid x_{\mathrm{pa}(j)}, y),
#
# and the weights of its edges are the *conditional* mutual information
#
# .. math:: I(x_i; x_j \mid y) = \sum p(x_i, x_j, y) \log \frac{p(x_i, x_j \mid y)}{p(x_i \mid y)\, p(x_j \mid y)} .
from posteriori.datasets import load_penguins

penguins = load_penguins()
tan = po.TreeAugmentedNaiveBayes(bins=None).fit(penguins, "species")
po.plotting.plot_tree(tan)
plt.show()

# %%
for (parent, child), value in sorted(
    tan.edge_information_.items(), key=lambda edge: -edge[1]
):
    print(f"{value:.3f}  {parent} → {child}")

# %%
# The class needs both features
# -----------------------------
#
# In the "exclusive or" the class is a function of two features, and each alone is no evidence. The log-odds of naive Bayes are a
# sum, and a sum is right for three of the four combinations at most. One edge is enough.
first, second = rng.random(400) < 0.5, rng.random(400) < 0.5
X = pl.DataFrame({"first": first, "second": second})
label = np.where(first ^ second, "different", "same")
for model in (po.NaiveBayes(), po.TreeAugmentedNaiveBayes()):
    print(
        f"{type(model).__name__:25s} accuracy {model.fit(X, label).score(X, label):.3f}"
    )

# %%
# What it gains on a table
# ------------------------
#
# Thirty measurements of tumours are far from independent, and naive Bayes is over-confident. By cross-validation:
from sklearn.datasets import load_breast_cancer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
models = {
    "naive Bayes, binned": po.NaiveBayes(distributions="binned"),
    "TAN": po.TreeAugmentedNaiveBayes(),
    "Chow-Liu": po.classifiers.ChowLiuClassifier(),
    "2-dependence": po.KDependenceBayes(k=2),
    "AODE": po.AveragedOneDependence(),
}
scores = po.cross_validate(models, X, y).table
figure, ax = plt.subplots(figsize=(7, 3.2))
ax.barh(
    scores["model"].to_list(),
    scores["log_loss"].to_list(),
    xerr=scores["log_loss_se"].to_list(),
)
ax.invert_yaxis()
ax.set_xlabel("log-loss in nats (less is better)")
plt.show()
scores.select("model", "log_loss", "accuracy")

# %%
# :doc:`/dependence` has these models on 28 real tables.
#
# **Try it.** Make the error of ``b`` 0.3 and that of ``c`` 0.05. Which tree do you expect? What does ``penalty="bic"`` do to an edge
# without information?
