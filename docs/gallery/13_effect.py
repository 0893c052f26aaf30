"""
The effect of a column
======================

What each value of a column contributes to the posterior, in nats of log-odds, above its densities.

In naive Bayes the contribution depends on the value alone. In a model with dependences it also
depends on the other columns: the band shows the middle 80 % of the rows.
"""

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
tree = po.TreeAugmentedNaiveBayes(bins=None).fit(penguins, "species")
po.plotting.plot_effect(tree, "bill_length_mm", penguins, "species")
