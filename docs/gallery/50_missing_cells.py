"""
Missing cells at prediction
===========================

Accuracy as more and more cells are hidden: integrated out, or replaced by the mean of their column.

The factor of a missing cell is 1 in naive Bayes, and a Gaussian model uses the marginal density of the
cells that remain. Imputation pretends to know what it does not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import posteriori as po

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)
models = {
    "LDA, integrated out": po.GaussianDiscriminant(),
    "naive Bayes, integrated out": po.NaiveBayes(),
    "logistic regression, mean imputed": make_pipeline(
        SimpleImputer(), StandardScaler(), LogisticRegression()
    ),
}
shares = np.linspace(0, 0.8, 9)
order = np.random.default_rng(0).random(X_test.shape)
figure, ax = plt.subplots()
for title, model in models.items():
    model.fit(X_train, y_train)
    losses = [
        log_loss(
            y_test, model.predict_proba(np.where(order < share, np.nan, X_test))
        )
        for share in shares
    ]
    ax.plot(shares, losses, marker=".", label=title)
ax.set(xlabel="share of hidden cells", ylabel="log-loss in nats", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
