"""
Missing cells at prediction
===========================

Log-loss as more and more cells are hidden: integrated out, or replaced by the mean of their column.

The factor of a missing cell is 1 in naive Bayes, and a Gaussian model uses the marginal density of the
cells that remain. Imputation pretends to know what it does not. Each point is the mean of 50 random masks,
and the band holds the middle nine tenths of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
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
order = np.random.default_rng(0).random((50, *X_test.shape))
truth = np.tile(y_test, 50)
figure, ax = plt.subplots()
for title, model in models.items():
    model.fit(X_train, y_train)
    losses = []  # one row per share, one column per mask
    for share in shares:
        hidden = np.where(order < share, np.nan, X_test)
        posterior = model.predict_proba(hidden.reshape(-1, X.shape[1]))
        loss = -np.log(posterior[np.arange(len(truth)), truth])
        losses.append(loss.reshape(50, -1).mean(axis=1))
    low, high = np.quantile(losses, [0.05, 0.95], axis=1)
    (line,) = ax.plot(shares, np.mean(losses, axis=1), marker=".", label=title)
    ax.fill_between(
        shares, low, high, color=line.get_color(), alpha=0.2, linewidth=0
    )
ax.set(xlabel="share of hidden cells", ylabel="log-loss in nats", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
