"""
One model from two islands
==========================

Each station fits its own birds and shares sums, not rows; the merged model is that of all birds.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins().drop("island")
biscoe = load_penguins()["island"] == "Biscoe"
north = po.NaiveBayes().fit(penguins.filter(~biscoe), "species")
south = po.NaiveBayes().fit(penguins.filter(biscoe), "species")
both = po.merge([north, south])
whole = po.NaiveBayes().fit(penguins, "species")

figure, axes = plt.subplots(1, 3, figsize=(12.5, 4), sharey=True)
for ax, (title, model) in zip(
    axes, {"one": north, "the other": south, "merged": both}.items()
):
    po.plotting.plot_densities(model, "bill_length_mm", joint=True, ax=ax)
    ax.set_title(title, pad=38)
axes[0].set_ylim(0, 0.105)
plt.show()

# %%
# The largest difference between the posteriors of the merged model and those of a fit of all rows:
X = penguins.drop("species")
float(np.abs(both.predict_proba(X) - whole.predict_proba(X)).max())
