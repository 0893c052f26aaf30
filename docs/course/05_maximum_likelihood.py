r"""
Maximum likelihood and Laplace smoothing
========================================

The best parameters are observed shares and means; pseudo-counts keep them away from zero.

Given rows :math:`(x_i, y_i)`, the **likelihood** of parameters is the probability of what was seen. For a class with
:math:`n` rows, of which :math:`n_1` have a feature :math:`x = 1`,

.. math:: \ell(\theta) = \log \prod_i \theta^{x_i} (1 - \theta)^{1 - x_i} = n_1 \log \theta + (n - n_1) \log (1 - \theta).

The rows enter through two numbers only, :math:`n_1` and :math:`n`: they are **sufficient statistics**. Setting the
derivative to zero,

.. math:: \frac{n_1}{\theta} - \frac{n - n_1}{1 - \theta} = 0 \quad\Rightarrow\quad \hat\theta = \frac{n_1}{n}.

In the same way a categorical feature gives :math:`\hat\theta_k = n_k / n` (with a Lagrange multiplier for
:math:`\sum_k \theta_k = 1`), a Poisson feature :math:`\hat\lambda = \sum_i x_i / n`, and a Gaussian one

.. math:: \hat\mu = \frac1n \sum_i x_i, \qquad \hat\sigma^2 = \frac1n \sum_i (x_i - \hat\mu)^2 .
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po

n1, n = 3, 10
theta = np.linspace(0.001, 0.999, 400)
figure, ax = plt.subplots(figsize=(7, 3.4))
ax.plot(theta, n1 * np.log(theta) + (n - n1) * np.log(1 - theta))
ax.axvline(n1 / n, color="C3", linestyle="--", label=f"maximum at {n1 / n}")
ax.set(xlabel="θ", ylabel="log-likelihood in nats", ylim=(-20, -5))
ax.legend(frameon=False)
plt.show()

# %%
# By counting
# -----------
#
# Six messages, two words. ``alpha=0`` is maximum likelihood.
X = np.array([[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
y = np.array(["spam", "spam", "spam", "ham", "ham", "ham"])
counted = po.NaiveBayes(alpha=0).fit(X, y)
for j, word in enumerate(("free", "meeting")):
    print(
        f"p({word} | ham, spam) =",
        np.exp(counted.feature_log_prob_[j])[:, 1].round(3),
    )

# %%
# The zero problem
# ----------------
#
# Every spam message held *free*, and no other did. So a ham message with *free* is impossible under this model, whatever else
# it holds. One unseen combination overrules all other evidence:
counted.predict_proba([[True, True], [True, False]]).round(3)

# %%
# Laplace smoothing
# -----------------
#
# Add :math:`\alpha` pseudo-counts to each value:
#
# .. math:: \hat\theta_k = \frac{n_k + \alpha}{n + K \alpha}.
#
# It is the posterior mean under a symmetric Dirichlet prior. With :math:`\alpha = 1` it is Laplace's rule of
# succession: after :math:`n_1` successes in :math:`n` trials expect the next with :math:`(n_1 + 1) / (n + 2)`.
smoothed = po.NaiveBayes(alpha=1).fit(X, y)
for j, word in enumerate(("free", "meeting")):
    print(
        f"p({word} | ham, spam) =",
        np.exp(smoothed.feature_log_prob_[j])[:, 1].round(3),
    )
smoothed.predict_proba([[True, True], [True, False]]).round(3)

# %%
# Pseudo rows
# -----------
#
# Textbooks often say it with rows: add to each class **one row of all ones and one row of all zeros**. Then each value of each
# feature is counted once more, and each class has two more rows. In posteriori this is ``alpha=1`` and
# ``priors=2``. Both ways give the same model:
pseudo_X = np.vstack([X, [[1, 1], [0, 0]] * 2]).astype(bool)
pseudo_y = np.concatenate([y, ["spam", "spam", "ham", "ham"]])
with_rows = po.NaiveBayes(alpha=0).fit(pseudo_X, pseudo_y)
with_counts = po.NaiveBayes(alpha=1, priors=2).fit(X, y)
test = [[True, True], [True, False], [False, True], [False, False]]
print(with_rows.predict_proba(test).round(4))
print(with_counts.predict_proba(test).round(4))
float(np.abs(with_rows.predict_proba(test) - with_counts.predict_proba(test)).max())

# %%
# How much smoothing?
# -------------------
#
# Enough that rare values do not decide, and not so much that the rows do not. On the digits in black and white, by
# leave-one-out, which sums make exact and cheap:
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
alphas = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30]
losses = [
    po.model_selection.leave_one_out(
        po.NaiveBayes(alpha=a).fit(images > 7, digits), images > 7, digits
    ).log_loss
    for a in alphas
]
figure, ax = plt.subplots(figsize=(7, 3.4))
ax.plot(alphas, losses, marker="o")
ax.set(xscale="log", xlabel="alpha", ylabel="leave-one-out log-loss in nats")
plt.show()

# %%
# **Try it.** Fit ``alpha=0`` to the digits and look at its log-loss. Derive the smoothed estimate by maximising
# :math:`\ell(\theta) + \log \theta + \log(1 - \theta)`.
