"""
Labels that may be wrong
========================

A fifth of the labels of the penguins is changed; the model estimates how often, and repairs them.

`po.Labels(label_noise="learn")` treats the given label as a noisy observation of the true class and estimates
the rates of confusion with the model, by EM.
"""

import matplotlib.pyplot as plt
import numpy as np

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins().drop("island", "year")
truth = penguins["species"].to_numpy()
X = penguins.drop("species")
rng = np.random.default_rng(0)
wrong = rng.random(len(truth)) < 0.2
given = np.where(wrong, rng.permutation(truth), truth)

rows = {}
for title, noise in (
    ("labels taken as they are", None),
    ('label_noise="learn"', "learn"),
):
    model = po.GaussianDiscriminant(labels=po.Labels(label_noise=noise)).fit(
        X, given
    )
    rows[title] = np.mean(model.predict(X) == truth)
figure, ax = plt.subplots(figsize=(6.5, 4.6))
image = ax.imshow(model.label_confusion_, cmap="Blues", vmin=0, vmax=1)
for i, j in np.ndindex(3, 3):
    ax.text(
        j,
        i,
        f"{model.label_confusion_[i, j]:.2f}",
        ha="center",
        color="C3" if i != j else "white",
    )
ax.set(
    xticks=range(3),
    yticks=range(3),
    xlabel="label that is given",
    ylabel="true class",
)
ax.set_xticklabels(model.classes_)
ax.set_yticklabels(model.classes_)
ax.set_title("Estimated p(given label | true class)")
plt.show()

# %%
# The share of true labels that each model recovers; the labels that were given are right in the
# share of rows that is printed last.
{**rows, "given": np.mean(given == truth)}
