"""
Which digits are confused
=========================

The confusion matrix of handwritten digits, classified by their grey values.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import posteriori as po

X, y = load_digits(return_X_y=True)
X = X[:, (X > 0).mean(axis=0) > 0.02]  # the others are white in nearly every image
X_train, X_test, y_train, y_test = train_test_split(
    X, y, random_state=0, stratify=y
)
model = po.GaussianDiscriminant(shrinkage=0.1).fit(X_train, y_train)
ax = po.plotting.plot_confusion(model, X_test, y_test)
ax.figure.set_size_inches(6.5, 5.5)
