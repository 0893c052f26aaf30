"""
Lift: whom to look at first
===========================

How much more frequent a class is among the rows ranked first than among all rows.

If only some rows can be examined, rank them by their posterior. At 0.2 on the horizontal axis,
the curve shows the gain over a random choice of a fifth of the rows.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import posteriori as po

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
columns = ["mean texture", "mean smoothness", "mean symmetry"]
X_train, X_test, y_train, y_test = train_test_split(
    X[columns], y, random_state=0, stratify=y
)
model = po.NaiveBayes().fit(X_train, y_train)
po.plotting.plot_lift(model, X_test, y_test, label="malignant")
