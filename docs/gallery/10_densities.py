"""
What a class is like: densities
===============================

The density of one feature in each class, over the histograms of the rows that it was learned from.

Naive Bayes keeps one such density per feature and class. `po.plotting.plot_densities` draws
curves for numbers and bars for categories and counts.
"""

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
model = po.NaiveBayes().fit(penguins, "species")
po.plotting.plot_densities(model, "flipper_length_mm", X=penguins, y="species")

# %%
# A category is drawn as bars, with the observed shares as circles.
po.plotting.plot_densities(model, "island", X=penguins, y="species")
