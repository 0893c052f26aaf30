"""
LDA and QDA: covariances of the classes
=======================================

One covariance for all classes gives straight boundaries, one for each class gives curves.

The ellipses hold 50 % and 95 % of each class.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import posteriori as po

iris = load_iris(as_frame=True)
X = iris.data[["sepal width (cm)", "petal length (cm)"]]
y = iris.target_names[iris.target]
figure, axes = plt.subplots(1, 2, figsize=(10, 4.7), sharey=True)
for ax, pooling in zip(axes, ("pooled", "per_class")):
    model = po.GaussianDiscriminant(pooling=pooling).fit(X, y)
    po.plotting.plot_covariances(model, X, y, ax=ax)
    ax.set_title(f"pooling={pooling!r}", pad=44)
plt.show()
