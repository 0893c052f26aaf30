r"""
Naive Bayes of four kinds
=========================

One assumption, four distributions: Bernoulli, categorical, Gaussian and Poisson features.

Naive Bayes assumes that features are independent given the class:

.. math:: p(y \mid x) \propto p(y) \prod_{j=1}^{d} p(x_j \mid y).

What remains is to choose a distribution for each feature. In logarithms each contributes a sum of known functions of
the feature, so naive Bayes is cheap to learn, and every prediction can be read.

.. list-table::
   :header-rows: 1

   * - feature
     - distribution
     - :math:`\log p(x_j \mid y)`
   * - yes or no
     - Bernoulli
     - :math:`x \log \theta_y + (1 - x) \log (1 - \theta_y)`
   * - one of K values
     - categorical
     - :math:`\log \theta_{y x}`
   * - a measurement
     - Gaussian
     - :math:`-\frac{(x - \mu_y)^2}{2 \sigma_y^2} - \frac12 \log 2\pi\sigma_y^2`
   * - a count
     - Poisson
     - :math:`x \log \lambda_y - \lambda_y - \log x!`

A table with all four
---------------------

Draw messages that are spam or not: whether they hold a link, their language, their length, and how many exclamation marks.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import posteriori as po

rng = np.random.default_rng(1)
n = 500
spam = rng.random(n) < 0.4
mail = pl.DataFrame(
    {
        "link": rng.random(n) < np.where(spam, 0.8, 0.25),
        "language": [
            str(
                rng.choice(
                    ["en", "de", "fr"],
                    p=[0.7, 0.1, 0.2] if is_spam else [0.4, 0.5, 0.1],
                )
            )
            for is_spam in spam
        ],
        "length": rng.normal(
            np.where(spam, 60.0, 110.0), np.where(spam, 20.0, 40.0)
        ).round(1),
        "marks": rng.poisson(np.where(spam, 3.0, 0.6)),
        "kind": np.where(spam, "spam", "ham"),
    }
)
mail.head(4)

# %%
# Booleans are Bernoulli, strings categorical and numbers Gaussian. Only the counts have to be named.
model = po.NaiveBayes(distributions={"marks": "poisson"}).fit(mail, "kind")
figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.4))
for ax, name in zip(axes.flat, ("link", "language", "length", "marks")):
    po.plotting.plot_densities(model, name, X=mail, y="kind", ax=ax)
plt.show()

# %%
# The parameters are what the table above calls :math:`\theta`, :math:`\mu`, :math:`\sigma^2` and :math:`\lambda`.
print("p(y)            ", model.class_prior_.round(3))
print("p(link | y)     ", np.exp(model.feature_log_prob_[0])[:, 1].round(3))
print("p(language | y) ", np.exp(model.feature_log_prob_[1]).round(3).tolist())
print("mean of length  ", model.theta_[:, 0].round(1))
print("variance        ", model.var_[:, 0].round(1))
print("rate of marks   ", model.rate_[:, 0].round(2))

# %%
# One message
# -----------
#
# A prediction is the product of five numbers per class.
row = {"link": True, "language": "de", "length": 80.0, "marks": 2}
print(model.explain([row]).bayes_table(0))

# %%
# The same as a sum of log-odds. The factors are *added evidence*, and their order does not matter.
po.plotting.plot_explanation(model, [row], label="spam", against="ham")
plt.show()

# %%
# An unknown feature has the factor 1 and drops out of the product.
for known in ({}, {"link": True}, {"link": True, "marks": 2}, row):
    print(f"{model.predict_proba([known])[0, 1]:.3f}  p(spam | {known})")

# %%
# The assumption can fail
# -----------------------
#
# Copy the column of links. Nothing new is known, but naive Bayes counts the evidence twice and becomes over-confident.
twice = mail.with_columns(link_again=pl.col("link"))
doubled = po.NaiveBayes(distributions={"marks": "poisson"}).fit(twice, "kind")
print(f"one column {model.predict_proba([{'link': True}])[0, 1]:.3f}")
print(
    f"two copies {doubled.predict_proba([{'link': True, 'link_again': True}])[0, 1]:.3f}"
)

# %%
# The most probable class is often right even so, which is why naive Bayes works better than its assumption; its
# probabilities are what suffers. Trees over the features (the last lecture) or weights per feature repair most of it:
weighted = po.NaiveBayes(
    distributions={"marks": "poisson"}, feature_weights="conditional"
)
weighted.fit(twice, "kind")
dict(zip(weighted.feature_names_in_, weighted.feature_weights_.round(2).tolist()))

# %%
# **Try it.** Make ``length`` Poisson as well (``distributions={"marks": "poisson", "length": "poisson"}`` needs whole
# numbers). What is different in the picture, and why?
