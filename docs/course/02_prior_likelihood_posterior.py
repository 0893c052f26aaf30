r"""
Priors, likelihoods, posteriors and decisions
=============================================

From a posterior to a decision: the most probable class, or the class of least expected cost.

The posterior :math:`p(y \mid x)` is all that the row says about its class. What to *do* is another question. If each
error costs the same, decide on the most probable class,

.. math:: \hat y(x) = \arg\max_y\; p(y)\, p(x \mid y),

the **maximum a posteriori** decision. No rule makes fewer errors: its error, the **Bayes error**, is
:math:`1 - \mathrm{E}[\max_y p(y \mid x)]`. The evidence :math:`p(x)` is the same for each class, so it is not needed to decide.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po

model = po.NaiveBayes.from_parameters(
    priors={"healthy": 0.9, "ill": 0.1},
    gaussian={"marker": {"mean": [4.0, 7.0], "sd": [1.5, 1.5]}},
)
marker = np.linspace(-1, 12, 400)[:, None]
ax = po.plotting.plot_decision_regions(
    model, *model.sample(2000, random_state=0), features=("marker",)
)
plt.show()

# %%
# The two curves of the lower picture cross where :math:`p(\mathrm{ill} \mid x) = 1/2`. On the left of it the ill are
# missed, on the right the healthy are alarmed. The area under the smaller of the two curves is the Bayes error:
x = np.linspace(-10, 20, 20001)[:, None]
joint = np.exp(model.predict_joint_log_proba(x))
bayes_error = np.trapezoid(joint.min(axis=1), x[:, 0])
print(f"Bayes error {bayes_error:.4f}; always saying healthy {0.1:.4f}")

# %%
# In logarithms
# -------------
#
# Products of many small numbers underflow, so one adds logarithms. For two classes the **log-odds** are
#
# .. math:: \log \frac{p(\mathrm{ill} \mid x)}{p(\mathrm{healthy} \mid x)} =
#           \log \frac{p(\mathrm{ill})}{p(\mathrm{healthy})} + \log \frac{p(x \mid \mathrm{ill})}{p(x \mid \mathrm{healthy})}.
#
# The first term is the prior, the second is the weight of evidence of the measurement. The unit of natural
# logarithms is the nat.
ax = po.plotting.plot_explanation(model, [[7.0]], label="ill", against="healthy")
ax.figure.set_size_inches(7, 2.6)
plt.show()

# %%
# Costs
# -----
#
# To miss an ill person costs 20, a false alarm costs 1. The decision of least expected cost is
#
# .. math:: \hat y(x) = \arg\min_k \sum_c p(c \mid x)\, \mathrm{cost}(c, k).
#
# For two classes this is a threshold on the posterior: alarm if
# :math:`p(\mathrm{ill} \mid x) > 1 / (1 + 20)`.
costs = {"ill": {"healthy": 20}, "healthy": {"ill": 1}}
posterior = model.predict_proba(marker)
cheapest = po.decide(posterior, model.classes_, costs=costs)
likeliest = model.predict(marker)
for name, decided in (("fewest errors", likeliest), ("least cost", cheapest)):
    first = np.flatnonzero(decided == "ill")[0]
    print(
        f"{name}: alarm from a marker of {marker[first, 0]:.2f}, p(ill | x) = {posterior[first, 1]:.3f}"
    )

# %%
# The prior may be that of another place. In a clinic, four of ten visitors are ill. The likelihoods stay, because the
# illness acts on the marker in the same way; only the prior moves.
for share in (0.001, 0.1, 0.4):
    there = po.NaiveBayes.from_parameters(
        priors={"healthy": 1 - share, "ill": share},
        gaussian={"marker": {"mean": [4.0, 7.0], "sd": [1.5, 1.5]}},
    )
    print(
        f"prior {share:5.3f}: p(ill | marker = 7) = {there.predict_proba([[7.0]])[0, 1]:.3f}"
    )

# %%
# **Try it.** How must the ratio of costs change so that the alarm starts at a marker of 4? What happens to the
# Bayes error if both standard deviations are halved?
