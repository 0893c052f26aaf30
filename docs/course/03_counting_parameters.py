r"""
Counting parameters
===================

The full joint table needs exponentially many numbers; independence given the class needs a few.

With :math:`C` classes and :math:`d` features of :math:`k` categories each, a table of :math:`p(x \mid y)` has
:math:`k^d` cells per class, which add up to 1. With the prior that makes

.. math:: C\,(k^d - 1) + (C - 1)

free parameters. If the features are independent given the class,

.. math:: p(x \mid y) = \prod_{j=1}^d p(x_j \mid y),

each feature has a table of its own, and

.. math:: C\,d\,(k - 1) + (C - 1)

numbers are enough. This assumption is called **naive Bayes**.
"""

import posteriori as po

for d in (2, 5, 10, 20, 30):
    print(
        d,
        "binary features:",
        po.parameter_count.count_parameters(2, categorical=[2] * d),
    )

# %%
# On a logarithmic axis, with three kinds of features:
import matplotlib.pyplot as plt

d = list(range(1, 31))
figure, ax = plt.subplots()
for k, colour in ((2, "C0"), (3, "C1"), (10, "C2")):
    counts = [
        po.parameter_count.count_parameters(2, categorical=[k] * n) for n in d
    ]
    ax.plot(
        d,
        [count.full_joint for count in counts],
        colour,
        label=f"full joint, {k} categories",
    )
    ax.plot(
        d,
        [count.naive for count in counts],
        colour,
        linestyle="--",
        label=f"naive, {k} categories",
    )
ax.set(yscale="log", xlabel="features", ylabel="free parameters", ylim=(1, 1e16))
ax.legend(frameon=False, fontsize=8)
plt.show()

# %%
# Gaussian features
# -----------------
#
# Independent Gaussians have :math:`2d` parameters per class, a mean and a variance each. A Gaussian with a full covariance
# has :math:`d + d(d+1)/2`.
for d in (2, 10, 100):
    print(
        d, "Gaussian features:", po.parameter_count.count_parameters(2, gaussian=d)
    )

# %%
# What the parameters cost
# ------------------------
#
# More parameters need more rows. Draw rows from a model in which the features *are* independent, and learn both models
# from few and from many of them. The full joint is right in the limit, and useless before it.
import numpy as np
from sklearn.metrics import log_loss

rng = np.random.default_rng(0)
truth = po.NaiveBayes.from_parameters(
    priors=[0.5, 0.5],
    categorical={
        f"x{j}": {"yes": [p, 1 - p], "no": [1 - p, p]}
        for j, p in enumerate(rng.uniform(0.3, 0.7, 8))
    },
)
X_test, y_test = truth.sample(4000, random_state=1)
sizes = [50, 100, 200, 400, 800, 1600, 3200, 6400]
losses = {"naive Bayes": [], "full joint": []}
for n in sizes:
    X, y = truth.sample(n, random_state=2)
    for name, model in (
        ("naive Bayes", po.NaiveBayes()),
        ("full joint", po.classifiers.FullJointClassifier()),
    ):
        losses[name].append(log_loss(y_test, model.fit(X, y).predict_proba(X_test)))
figure, ax = plt.subplots()
for name, values in losses.items():
    ax.plot(sizes, values, marker="o", label=name)
best = log_loss(y_test, truth.predict_proba(X_test))
ax.axhline(best, color="black", linestyle=":", label="the true model")
ax.set(xscale="log", xlabel="training rows", ylabel="log-loss in nats")
ax.legend(frameon=False)
plt.show()

# %%
# **Try it.** How many rows does the full joint need with 4 features, and with 12? At which number of rows would it overtake
# naive Bayes if two of the features were copies of each other?
