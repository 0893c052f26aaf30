r"""
Gaussian discriminant analysis: LDA and QDA
===========================================

One Gaussian per class: a shared covariance draws a line, a covariance per class draws a curve.

Let the features of a class be jointly Gaussian,

.. math:: p(x \mid y = c) = \frac{1}{\sqrt{(2\pi)^d \det \Sigma_c}}
          \exp\Bigl(-\frac12 (x - \mu_c)^\top \Sigma_c^{-1} (x - \mu_c)\Bigr).

Maximum likelihood gives the mean and the covariance of the rows of each class. The log-odds of two classes are

.. math:: \log \frac{\pi_1}{\pi_0} - \frac12 \log \frac{\det \Sigma_1}{\det \Sigma_0}
          - \frac12 (x - \mu_1)^\top \Sigma_1^{-1} (x - \mu_1) + \frac12 (x - \mu_0)^\top \Sigma_0^{-1} (x - \mu_0),

a quadratic function of :math:`x`: **quadratic discriminant analysis**. If both classes share the covariance, the quadratic
terms cancel, and the boundary is a straight line: **linear discriminant analysis**.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po

rng = np.random.default_rng(0)
first = rng.multivariate_normal([0, 0], [[1.0, 0.6], [0.6, 1.0]], 150)
second = rng.multivariate_normal([2.2, 0.8], [[1.6, -0.8], [-0.8, 1.0]], 150)
X = np.vstack([first, second])
y = np.repeat(["A", "B"], 150)

models = {
    "LDA: one covariance": po.GaussianDiscriminant(pooling="pooled"),
    "QDA: one per class": po.GaussianDiscriminant(pooling="per_class"),
    "naive Bayes: diagonal": po.GaussianDiscriminant(
        shrinkage="diagonal", pooling="per_class"
    ),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 4.3), sharey=True)
for ax, (title, model) in zip(axes, models.items()):
    model.fit(X, y)
    po.plotting.plot_decision_regions(model, X, y, ax=ax, resolution=120)
    ax.set_title(f"{title}\naccuracy {model.score(X, y):.3f}", pad=24)
plt.show()

# %%
# The ellipses show what each model believes about the classes.
figure, axes = plt.subplots(1, 3, figsize=(11, 4.3), sharey=True)
for ax, (title, model) in zip(axes, models.items()):
    po.plotting.plot_covariances(model, X, y, ax=ax)
    ax.set_title(f"{title}\n{model.n_parameters_} parameters", pad=24)
plt.show()

# %%
# Gaussian naive Bayes is the diagonal case
# -----------------------------------------
#
# Independence given the class means that the covariances are diagonal. The two classes of posteriori give the same
# posteriors (with ``po.Gaussian(smoothing=0)``, which is maximum likelihood):
naive = po.NaiveBayes(distributions=po.Gaussian(0)).fit(X, y)
diagonal = models["naive Bayes: diagonal"]
float(np.abs(naive.predict_proba(X) - diagonal.predict_proba(X)).max())

# %%
# LDA is a softmax
# ----------------
#
# With a shared covariance the posterior is :math:`p(c \mid x) \propto \exp(w_c^\top x + b_c)` with
#
# .. math:: w_c = \Sigma^{-1} \mu_c, \qquad b_c = -\frac12 \mu_c^\top \Sigma^{-1} \mu_c + \log \pi_c .
#
# So LDA and logistic regression are the same family of rules, learned in two ways. By hand, from the means and
# the covariance:
lda = models["LDA: one covariance"]
precision = np.linalg.inv(lda.covariance_)
w = lda.means_ @ precision
b = -0.5 * np.sum(w * lda.means_, axis=1) + np.log(lda.class_prior_)
score = X @ w.T + b
softmax = np.exp(score - score.max(axis=1, keepdims=True))
softmax /= softmax.sum(axis=1, keepdims=True)
print("weights", (w[1] - w[0]).round(3), "bias", (b[1] - b[0]).round(3))
print("largest difference", float(np.abs(softmax - lda.predict_proba(X)).max()))

# %%
# The line itself is :math:`(w_B - w_A)^\top x + (b_B - b_A) = 0`. For two classes the posterior is the logistic function of
# the signed distance from this line.
slope = -(w[1] - w[0])[0] / (w[1] - w[0])[1]
intercept = -(b[1] - b[0]) / (w[1] - w[0])[1]
print(f"x2 = {slope:.3f} x1 + {intercept:.3f}")

# %%
# Three classes and more: discriminant directions
# ------------------------------------------------
#
# With :math:`C` classes all boundaries of LDA lie in a subspace of :math:`C - 1` dimensions, Fisher's discriminant directions.
# Thirteen measurements of wine from three cultivars, in the plane that separates them most:
from sklearn.datasets import load_wine

wine = load_wine(as_frame=True)
cultivar = np.array(["first", "second", "third"])[wine.target]
model = po.GaussianDiscriminant().fit(wine.data, cultivar)
po.plotting.plot_discriminants(model, wine.data, cultivar)
plt.show()

# %%
# Between the two
# ---------------
#
# A covariance per class has many parameters. *Regularised* discriminant analysis takes a mean of both: ``pooling=0.3`` is 30 % of the
# shared covariance. The best amount depends on the number of rows; leave-one-out finds it:
for n in (12, 40, 150):
    rows = np.r_[:n, 150 : 150 + n]
    losses = {
        amount: po.model_selection.leave_one_out(
            po.GaussianDiscriminant(pooling=amount).fit(X[rows], y[rows]),
            X[rows],
            y[rows],
        ).log_loss
        for amount in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    }
    print(
        2 * n, "rows:", {amount: round(loss, 4) for amount, loss in losses.items()}
    )

# %%
# **Try it.** Give both classes the same covariance when you draw them. Which of the three models wins, and does QDA lose much?
