"""
New rows from a model
=====================

A generative model describes rows, so it can draw new ones: synthetic penguins beside the real ones.

Numbers stay within the ranges of the training rows. Naive Bayes draws each column on its own;
the tree-augmented model keeps the dependences between them.
"""

import matplotlib.pyplot as plt

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins().drop_nulls()
x, y = "flipper_length_mm", "body_mass_g"
models = {
    "drawn by naive Bayes": po.NaiveBayes(),
    "drawn by TAN": po.TreeAugmentedNaiveBayes(bins=None),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), sharex=True, sharey=True)
tables = {"measured": (penguins, penguins["species"].to_numpy())}
tables |= {
    title: model.fit(penguins, "species").sample(333, random_state=0)
    for title, model in models.items()
}
for ax, (title, (table, species)) in zip(axes, tables.items()):
    for name in ("Adelie", "Chinstrap", "Gentoo"):
        ax.scatter(
            table[x].to_numpy()[species == name],
            table[y].to_numpy()[species == name],
            s=9,
            label=name,
        )
    ax.set(title=title, xlabel=x)
axes[0].set_ylabel(y)
axes[0].legend(frameon=False)
plt.show()
