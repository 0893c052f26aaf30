"""
A rule over several columns
===========================

Three in a row: a rule that no model of pairs of columns can represent, and a generative forest can.

Boards of a small game, drawn at random; the class is whether a line of three crosses exists. The
forest is still a joint distribution, so cells may be missing.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po

rng = np.random.default_rng(0)
boards = rng.choice(["x", "o", ""], size=(1500, 9), p=[0.45, 0.4, 0.15])
lines = [
    (0, 1, 2),
    (3, 4, 5),
    (6, 7, 8),
    (0, 3, 6),
    (1, 4, 7),
    (2, 5, 8),
    (0, 4, 8),
    (2, 4, 6),
]
won = np.any([np.all(boards[:, line] == "x", axis=1) for line in lines], axis=0)
y = np.where(won, "line", "no line")
train, test = slice(0, 1000), slice(1000, None)

models = {
    "naive Bayes": po.NaiveBayes(),
    "TAN": po.TreeAugmentedNaiveBayes(),
    "2-dependence": po.KDependenceBayes(k=2),
    "forest": po.GenerativeForest(n_trees=50),
}
accuracy = {
    name: model.fit(boards[train], y[train]).score(boards[test], y[test])
    for name, model in models.items()
}
figure, ax = plt.subplots(figsize=(7, 3))
ax.barh(list(accuracy), list(accuracy.values()))
ax.axvline(
    max((y[test] == "line").mean(), (y[test] != "line").mean()),
    color="black",
    linestyle=":",
)
ax.invert_yaxis()
ax.set(
    xlabel="accuracy on 500 other boards (dotted: the more frequent class)",
    xlim=(0.5, 1),
)
plt.show()

# %%
# With unknown cells the forest sums over them:
row = ["x", "x", None, "o", "o", "x", None, None, "o"]
forest = models["forest"]
dict(
    zip(forest.classes_.tolist(), forest.predict_proba([row])[0].round(3).tolist())
)

# %%
# One of its trees. The width of an edge is its share of the rows:
# sphinx_gallery_thumbnail_number = 2
po.plotting.plot_tree(forest, tree=1)
plt.show()
