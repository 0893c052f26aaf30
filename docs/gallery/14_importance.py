"""
Feature importance on held-out rows
===================================

How much worse the predictions of a pool get, in nats per row, when a column is unknown.

The unknown column is integrated out, so no value is permuted or imputed. Columns that nearly
determine each other also have one bar together. The lines are 95 % intervals, which include what
other training rows would change.
"""

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
pool = po.GenerativeClassifier(["nb", "lda", "tan"]).fit(penguins, "species")
po.plotting.plot_feature_information(pool)

# %%
# The members of the pool, their weights, and their cross-validated scores:
import polars as pl

pl.DataFrame(pool.cv_results_).select("member", "weight", "log_loss", "accuracy")
