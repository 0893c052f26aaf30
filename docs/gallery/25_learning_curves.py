"""
Learning curves: who needs fewer rows
=====================================

The log-loss of naive Bayes, LDA and logistic regression by the number of training rows.

Generative models (solid) are close to their best after few rows. Discriminative ones (dashed)
start worse and may end better. `Comparison.crossings` names the number of rows where the
lead changes.
"""

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins().drop_nulls().drop("island", "sex", "year")
found = po.compare(
    ["nb", "lda", "logistic"],
    penguins,
    "species",
    sizes=[15, 30, 60, 120, 240],
    repeats=8,
    random_state=0,
)
po.plotting.plot_learning_curves(found)

# %%
found.crossings
