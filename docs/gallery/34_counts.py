"""
Counts of events: Poisson
=========================

Goals, visits or defects per unit are counts; a Poisson column has one rate per class.

A Gaussian gives probability to negative and to fractional counts. The Poisson distribution does
not, and it has one parameter per class instead of two.
"""

import numpy as np
import polars as pl

import posteriori as po

rng = np.random.default_rng(0)
kind = rng.choice(["commuter", "tourist"], 600, p=[0.7, 0.3])
visits = rng.poisson(np.where(kind == "commuter", 8.0, 2.5))
table = pl.DataFrame({"visits": visits, "kind": kind})
model = po.NaiveBayes(distributions={"visits": "poisson"}).fit(table, "kind")
po.plotting.plot_densities(model, "visits", X=table, y="kind", joint=True)

# %%
# The rate of each class is the mean count of its rows, shrunk a little to that of all rows.
dict(zip(model.classes_, model.rate_[:, 0].round(3).tolist()))
