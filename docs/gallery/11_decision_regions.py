"""
Decision regions of two features
================================

The most probable class at each point of a plane, shaded by its probability.

All other features are unknown there. A generative model integrates them out, so the shade is
exactly the posterior given these two measurements, not a slice at average values of the others.
"""

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
model = po.NaiveBayes().fit(penguins, "species")
features = ("bill_length_mm", "flipper_length_mm")
po.plotting.plot_decision_regions(model, penguins, "species", features=features)

# %%
# With one feature, the picture shows the posterior, and below it the joint densities whose ratio
# it is.
po.plotting.plot_decision_regions(
    model, penguins, "species", features=("bill_length_mm",)
)
