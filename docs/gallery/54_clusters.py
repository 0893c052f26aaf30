"""
Clusters of a table with gaps
=============================

A mixture model finds groups of penguins without labels, with missing cells and a category.

The number of components has the lowest BIC. No cell is imputed and no row is dropped.
"""

import matplotlib.pyplot as plt

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
X = penguins.drop("species", "island", "year")
models = {
    k: po.MixtureModel(k, random_state=0, n_init=4).fit(X) for k in range(1, 8)
}
bic = {k: model.bic(X) for k, model in models.items()}
best = min(bic, key=bic.get)
cluster = models[best].predict(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
left.plot(list(bic), list(bic.values()), marker="o")
left.set(
    xlabel="components", ylabel="BIC (less is better)", title=f"{best} components"
)
for z in range(best):
    rows = penguins.filter(cluster == z)
    right.scatter(rows["bill_length_mm"], rows["flipper_length_mm"], s=12)
right.set(
    xlabel="bill_length_mm",
    ylabel="flipper_length_mm",
    title="the rows by component",
)
plt.show()

# %%
# The components beside the species, which the model has not seen. Males and females differ in size, so a species may have two:
import polars as pl

penguins.select("species", component=pl.Series(cluster)).pivot(
    "component", index="species", values="component", aggregate_function=pl.len()
)
