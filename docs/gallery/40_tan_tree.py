"""
The tree of a tree-augmented model
==================================

Which measurement of a penguin depends on which, given its species.

The tree is the maximum spanning tree of the conditional mutual information; wider edges carry
more of it.
"""

import posteriori as po
from posteriori.datasets import load_penguins

model = po.TreeAugmentedNaiveBayes(bins=None).fit(load_penguins(), "species")
po.plotting.plot_tree(model)

# %%
# The information of each edge, in nats per row:
{edge: round(value, 3) for edge, value in model.edge_information_.items()}
