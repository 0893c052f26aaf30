r"""
Regression is a generative question
===================================

A number is predicted by the conditional of a joint distribution, and its uncertainty comes with it.

So far the answer was a class. Now let it be a number :math:`y`. A generative model of the row and the number together,
:math:`p(x, y)`, answers with the conditional density

.. math:: p(y \mid x) = \frac{p(x, y)}{\int p(x, y')\, dy'},

the same rule as Bayes', with an integral in place of the sum over the classes.

Two numbers that are jointly Gaussian
-------------------------------------

Let x and y be jointly Gaussian with means :math:`\mu` and covariance :math:`\Sigma`. The conditional is Gaussian again, with

.. math:: \mathrm{E}(y \mid x) = \mu_y + \frac{\Sigma_{xy}}{\Sigma_{xx}} (x - \mu_x), \qquad
          \mathrm{Var}(y \mid x) = \Sigma_{yy} - \frac{\Sigma_{xy}^2}{\Sigma_{xx}}.

Its mean is a straight line: **least squares is the conditional of a joint Gaussian**, and Σxx, Σxy, Σyy are sums over the
rows. Learning is adding up, as before.
"""

import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(170, 8, 500)
y = 0.9 * (x - 170) + 70 + rng.normal(0, 8, 500)

covariance, mean = np.cov(x, y), np.array([x.mean(), y.mean()])
slope = covariance[0, 1] / covariance[0, 0]
spread = np.sqrt(covariance[1, 1] - slope * covariance[0, 1])
print("slope of the conditional", slope.round(4))
print("slope of least squares  ", np.polyfit(x, y, 1)[0].round(4))
print("its standard deviation  ", spread.round(2))

# %%
# An unknown cell
# ---------------
# A regression function has no answer if a cell is missing. The joint distribution has: the cell is integrated out. With two
# columns, where the second is unknown, the mean given the first alone is again a line, and the variance is larger, by what
# the second column would have said.
import posteriori as po

second = 0.5 * (x - 170) + rng.normal(0, 5, 500)
target = y + 0.8 * second
model = po.AdditiveRegressor().fit(np.column_stack([x, second]), target)
rows = np.array([[180.0, 5.0], [180.0, np.nan]])
density = model.predict_density(rows)
print("mean", density.mean.round(1), "standard deviation", density.std.round(1))

# %%
# A curve from sums
# -----------------
# A line is not enough for most columns. But least squares are linear in *features*, which may be steps of x, or the similarity
# of a row to some other rows. The sums are then over products of features, and nothing else changes.
# :class:`~posteriori.AdditiveRegressor` uses lines and steps of each column, :class:`~posteriori.KernelRegressor` also
# similarities.
hours = rng.uniform(0, 24, 800)
riders = (
    100
    + 80 * np.exp(-((hours - 8) ** 2) / 3)
    + 60 * np.exp(-((hours - 18) ** 2) / 4)
    + rng.normal(0, 15, 800)
)
curve = po.KernelRegressor().fit(hours[:, None], riders)

import matplotlib.pyplot as plt

grid = np.linspace(0, 24, 200)
low, high = curve.predict_interval(grid[:, None]).T
figure, axes = plt.subplots(figsize=(6.4, 3.2))
axes.plot(hours, riders, ".", markersize=2, color="0.6")
axes.fill_between(grid, low, high, alpha=0.25)
axes.plot(grid, curve.predict(grid[:, None]))
axes.set(xlabel="hour", ylabel="riders")

# %%
# When the spread is not the same everywhere
# ------------------------------------------
# A normal density with one variance is wrong where some rows are hard to predict and others are easy.
# :class:`~posteriori.GenerativeRegressor` weighs the residuals of the training rows by how near they are to the row, and pools
# three members. The share of held-out numbers within the 90 % intervals tells whether the spread is right.
noise = np.where(hours > 12, 40, 5)
uneven = riders + rng.normal(0, noise)
pool = po.GenerativeRegressor().fit(hours[:, None], uneven)
widths = np.diff(pool.predict_interval(np.array([[3.0], [14.0]])), axis=1).ravel()
print("width at 3 and at 14 o'clock", widths.round())
print("share within the 90 % intervals", round(pool.cv_results_["coverage"][-1], 2))

# %%
# The right score of a density
# ----------------------------
# A density is judged by a proper score: one that no other density than the truth makes smaller in expectation. The logarithmic
# score −log p(y) is one. The continuous ranked probability score is another,
#
# .. math:: \mathrm{CRPS}(F, y) = \int \bigl(F(t) - [y \le t]\bigr)^2\, dt,
#
# in units of y: of a forecast without a spread, it is the absolute error.
always = np.full(800, np.median(uneven))
print("CRPS of the pool", round(pool.cv_results_["crps"][-1], 1))
print("of always saying the median", np.abs(uneven - always).mean().round(1))
