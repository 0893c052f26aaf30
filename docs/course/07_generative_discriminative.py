r"""
Generative against discriminative
=================================

The same boundary learned in two ways: the generative one needs fewer rows, the other fewer assumptions.

LDA and logistic regression have the same form,

.. math:: \log \frac{p(y = 1 \mid x)}{p(y = 0 \mid x)} = w^\top x + b .

**LDA** is generative: it maximises the *joint* likelihood :math:`\sum_i \log p(x_i, y_i)`, over means and a covariance; :math:`w`
and :math:`b` follow. **Logistic regression** is discriminative: it maximises the *conditional* likelihood
:math:`\sum_i \log p(y_i \mid x_i)` over :math:`w` and :math:`b`, and does not model :math:`x` at all.

If the rows are Gaussian, LDA uses more of what they show, and is close to its best with fewer rows. If they are
not, LDA converges to the wrong line, and logistic regression to the best line there is. Ng and Jordan (2002) found that
naive Bayes needs of the order of :math:`\log d` rows for this, and logistic regression of the order of :math:`d`.

Independent features
--------------------

Forty words that occur or not, independent given the class. Naive Bayes and logistic regression both have the form above; for naive Bayes the
weight of a word is the log-odds of its occurrence.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po

rng = np.random.default_rng(0)
n, d = 6000, 40
label = rng.integers(0, 2, n)
share = rng.uniform(0.3, 0.7, d)
difference = rng.uniform(-0.15, 0.15, d)
words = rng.random((n, d)) < share + difference * (2 * label[:, None] - 1)

sizes = [20, 40, 80, 160, 320, 640, 1280]
options = {"sizes": sizes, "repeats": 3, "random_state": 0}
curves = po.compare(["nb", "logistic"], words, label, **options)
po.plotting.plot_learning_curves(curves, "accuracy")
plt.show()

# %%
# The assumption holds, and naive Bayes leads at every number of rows: logistic regression comes to the same limit, later.
#
# Copies: the assumption fails
# ----------------------------
#
# Now the first five words come in threes, such as *San*, *Francisco* and *SF*. Naive Bayes counts their evidence three times, however
# many rows there are. Logistic regression gives each copy a third of the weight, when it has seen enough rows.
copies = [words[:, :5] ^ (rng.random((n, 5)) < 0.02) for _ in range(2)]
crossed = po.compare(
    ["nb", "logistic"], np.hstack([words, *copies]), label, **options
)
po.plotting.plot_learning_curves(crossed, "accuracy")
plt.show()

# %%
# Where they cross
# ----------------
#
# ``crossings`` reads the number of rows from the curves, for each measure. (``sure`` is whether the lead is larger than two standard
# errors on both sides.)
crossed.crossings.select("measure", "n_rows", "leads_before", "leads_after", "sure")

# %%
# A real table
# ------------
#
# Whether a tumour is malignant, by 30 correlated measurements.
from sklearn.datasets import load_breast_cancer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
found = po.compare(
    ["nb", "lda", "tan", "logistic"],
    X,
    y.map({0: "malignant", 1: "benign"}),
    sizes=[20, 40, 80, 160, 320],
    repeats=2,
    random_state=0,
)
po.plotting.plot_learning_curves(found, "accuracy")
plt.show()

# %%
# What else a generative model can do with what it learned about :math:`x`: leave out cells that are missing, learn from rows without
# label, find unusual rows, and draw new ones. The next two lectures use the first two.
#
# **Try it.** Change the number of copies from 2 to 0, 1 and 4: how does the crossing move? Which model wins with ``d = 200``?
