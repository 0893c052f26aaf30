r"""
Missing cells: marginalising and EM
===================================

To predict, integrate the missing cells out; to learn, fill in their expected statistics and repeat.

Split a row into the observed cells :math:`x_o` and the missing ones :math:`x_m`. If cells are missing at random (that they are missing
depends on observed cells only), everything known about the class is

.. math:: p(y \mid x_o) \propto p(y) \int p(x_o, x_m \mid y)\, dx_m = p(y)\, p(x_o \mid y).

No value is guessed. In naive Bayes the integral of a missing factor is 1. For a Gaussian, the marginal of the observed cells is a
Gaussian again: delete the rows and columns of :math:`\mu` and :math:`\Sigma` that are missing.

Two measurements, one missing
-----------------------------
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po

model = po.GaussianDiscriminant.from_parameters(
    priors={"A": 0.5, "B": 0.5},
    means=[[0.0, 0.0], [1.0, 2.0]],
    covariance=[[1.0, 0.8], [0.8, 1.0]],
    features=["first", "second"],
)
for row in ([1.0, 1.0], [1.0, None], [None, 1.0], [None, None]):
    print(row, model.predict_proba([row])[0].round(3))

# %%
# By hand, for the row whose second cell is missing: the first cell is N(0, 1) in A and N(1, 1) in B.
from scipy.stats import norm

joint = 0.5 * norm.pdf(1.0, [0.0, 1.0], 1.0)
(joint / joint.sum()).round(3)

# %%
# Imputing the mean is not the same: it states a value, and the model believes it.
print("integrated out", model.predict_proba([[1.0, None]])[0].round(3))
print("mean imputed  ", model.predict_proba([[1.0, 1.0]])[0].round(3))

# %%
# Learning: expectation-maximisation
# ----------------------------------
#
# To estimate :math:`\Sigma` one needs sums of :math:`x` and :math:`x x^\top`, and some cells of :math:`x` are not there. EM repeats
#
# **E.** Under the current model, replace each missing term of the sums by its expectation given the observed cells:
# for a Gaussian :math:`\mathrm{E}[x_m \mid x_o] = \mu_m + \Sigma_{mo} \Sigma_{oo}^{-1} (x_o - \mu_o)`, and for :math:`x_m x_m^\top`
# also the conditional covariance.
#
# **M.** Estimate the model from the sums, as from complete rows.
#
# No step lowers the likelihood of the observed cells.
# The seed differs from that of the rows; with the same one, the losses would depend on the classes.
rng = np.random.default_rng(1)
complete, y = model.sample(400, random_state=0)
complete = np.asarray(complete, float)
X = complete.copy()
X[rng.random(400) < 0.6, 1] = np.nan  # most second cells are lost

em = po.GaussianDiscriminant(em=po.EM(tol=1e-9)).fit(X, y)
figure, ax = plt.subplots(figsize=(7, 3.2))
ax.plot(
    np.arange(1, len(em.log_likelihood_trace_) + 1),
    em.log_likelihood_trace_,
    marker=".",
)
ax.set(xlabel="step of EM", ylabel="log-likelihood in nats")
plt.show()


# %%
# The estimates beside those of three other ways. The truth is a covariance of 0.8 and a variance of 1.
def describe(title, table, labels):
    fitted = po.GaussianDiscriminant(em=po.EM(tol=1e-9)).fit(table, labels)
    c = fitted.covariance_
    print(
        f"{title:28s} covariance {c[0, 1]:.3f}  variance of the second {c[1, 1]:.3f}"
    )


imputed = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
kept = ~np.isnan(X).any(axis=1)
describe("all cells, before the loss", complete, y)
describe("EM", X, y)
describe(f"only the {kept.sum()} complete rows", X[kept], np.asarray(y)[kept])
describe("mean imputed", imputed, y)

# %%
# Mean imputation shrinks the variance and the covariance. Leaving rows out is unbiased here, but wastes cells.
#
# When the loss itself is informative
# -----------------------------------
#
# If a test is ordered for the ill only, a missing result is evidence of health. Then cells are *not* missing at random, and
# ``missing="informative"`` gives each column a factor for whether it is missing.
rows = 600
ill = rng.random(rows) < 0.3
test = np.where(
    rng.random(rows) < np.where(ill, 0.9, 0.2), rng.normal(ill, 1.0), np.nan
)[:, None]
for missing in ("at_random", "informative"):
    fitted = po.NaiveBayes(missing=missing).fit(
        test, np.where(ill, "ill", "healthy")
    )
    print(
        f"{missing:12s} p(ill | not tested) = {fitted.predict_proba([[None]])[0, 1]:.3f}"
    )
print(f"share of ill among the untested: {ill[np.isnan(test[:, 0])].mean():.3f}")

# %%
# **Try it.** Hide the second cell whenever the *first* is above 1 (still at random!) and compare EM with the complete rows again.
