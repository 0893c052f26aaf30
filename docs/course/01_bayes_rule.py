r"""
Bayes' rule and total probability
=================================

A class is drawn, then a measurement; Bayes' rule goes back from the measurement to the class.

A **generative** model says how a row arises. First nature draws the class :math:`y` with probability
:math:`p(y)`, the **prior**. Then it draws the measurement :math:`x` from the density of that class,
:math:`p(x \mid y)`, the **likelihood**. We see only :math:`x`. The product rule, written both ways round,

.. math:: p(x, y) = p(y)\, p(x \mid y) = p(x)\, p(y \mid x),

gives Bayes' rule for the **posterior**

.. math:: p(y \mid x) = \frac{p(y)\, p(x \mid y)}{p(x)}, \qquad
          p(x) = \sum_{y'} p(y')\, p(x \mid y').

The sum in the denominator is the rule of **total probability**. It is called the evidence, and it is
the density of the measurement whatever its class.

Three Gaussians
---------------

Three classes have the priors 0.2, 0.5 and 0.3. In class :math:`a` the measurement is Gaussian with mean
2 and standard deviation 1; in :math:`b` with mean 3 and standard deviation 2; in :math:`c` with mean 4 and
standard deviation 1. We observe :math:`x = 3.4`. Which class is it?
"""

import numpy as np
from scipy.stats import norm

classes = ["a", "b", "c"]
prior = np.array([0.2, 0.5, 0.3])
mean = np.array([2.0, 3.0, 4.0])
sd = np.array([1.0, 2.0, 1.0])
x = 3.4

# %%
# By hand, in three lines: the likelihoods, the joint, and its sum.
likelihood = norm.pdf(x, mean, sd)
joint = prior * likelihood
evidence = joint.sum()
posterior = joint / evidence
print("likelihood", likelihood.round(6))
print("joint     ", joint.round(6))
print("evidence  ", evidence.round(6))
print("posterior ", posterior.round(6))

# %%
# The same with posteriori. :class:`~posteriori.NaiveBayes` usually learns its parameters from rows;
# ``from_parameters`` takes known ones.
import posteriori as po

model = po.NaiveBayes.from_parameters(
    priors=dict(zip(classes, prior)), gaussian={"x": {"mean": mean, "sd": sd}}
)
model.predict_proba([[x]]).round(6)

# %%
# ``bayes_table`` writes the rule out. Read it downwards: prior, times likelihood, is the joint; its sum
# is the evidence; divide by it.
print(model.explain([[x]]).bayes_table(0))

# %%
# The whole axis
# --------------
#
# Nothing is special about 3.4. The upper picture shows the posterior at every :math:`x`, the lower one the
# joint densities :math:`p(x, y)`, whose sum is the evidence :math:`p(x)`; the bars are 2000 rows drawn from the model. The posterior is the *share* that a class
# has of the sum.
import matplotlib.pyplot as plt

rows, _ = model.sample(2000, random_state=0)
ax = po.plotting.plot_decision_regions(model, rows, features=("x",))
for axes in ax.figure.axes:
    axes.axvline(x, color="black", linewidth=0.8, linestyle="--")
plt.show()

# %%
# Class :math:`b` is the widest Gaussian. It wins on *both* sides, far from all means, because its tails are
# heavier. So a region of one class may consist of two intervals.
grid = np.linspace(-3, 9, 1201)[:, None]
grid[:, 0][np.flatnonzero(np.diff(model.predict(grid) == "b"))].round(2)

# %%
# Priors matter
# -------------
#
# The likelihoods say how well each class explains the measurement. The posterior also depends on how frequent the classes
# are. With equal priors the answer changes:
for new in ([0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3], [0.8, 0.1, 0.1]):
    other = po.NaiveBayes.from_parameters(
        priors=dict(zip(classes, new)), gaussian={"x": {"mean": mean, "sd": sd}}
    )
    print(
        np.round(new, 3),
        "gives",
        other.predict_proba([[x]]).round(3)[0],
        other.predict([[x]])[0],
    )

# %%
# Two tests and a rare disease
# ----------------------------
#
# One person in a hundred is ill. A test is positive for 95 % of the ill and for 10 % of the healthy. How
# probable is illness after a positive test, and after a second one that is independent given the state?
test = po.NaiveBayes.from_parameters(
    priors={"ill": 0.01, "healthy": 0.99},
    categorical={
        name: {"positive": [0.95, 0.10], "negative": [0.05, 0.90]}
        for name in ("first", "second")
    },
)
for row in (
    [None, None],
    ["positive", None],
    ["positive", "positive"],
    ["positive", "negative"],
):
    print(row, test.predict_proba([row])[0, 0].round(4))

# %%
# A cell that is ``None`` is unknown, and its factor is 1. So the first line is the prior, and the posterior after the
# first test is the prior of the second.
#
# **Try it.** Change ``x`` to 9 and explain the answer. For which prior of the disease is one positive test
# worth a probability of one half?
