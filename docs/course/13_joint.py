r"""
One distribution, any question
==============================

A joint distribution of all columns answers questions about any of them, and a tree makes the answers cheap.

A classifier has one question: the class, given the other columns. Before there is a question, there is :math:`p(x)`, the joint
distribution of *all* columns. Every question is a ratio of two sums over it,

.. math:: p(x_q \mid x_e) = \frac{\sum_{x_h} p(x_q, x_e, x_h)}{\sum_{x_q, x_h} p(x_q, x_e, x_h)},

where :math:`x_e` is known (the *evidence*), :math:`x_q` is asked for, and :math:`x_h` is neither.

A table of two columns
----------------------

Two columns have a table of counts. Divided by the number of rows it is :math:`p(a, b)`. Its row sums and column sums are the
marginals; a row divided by its sum is a conditional. One table answers in both directions.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import posteriori as po
from posteriori.datasets import load_penguins

grams = pl.col("body_mass_g")
table = (
    load_penguins()
    .drop_nulls("body_mass_g")
    .select(
        "island",
        "species",
        mass=pl.when(grams < 3500)
        .then(pl.lit("light"))
        .when(grams < 4500)
        .then(pl.lit("middle"))
        .otherwise(pl.lit("heavy")),
    )
)
levels = {name: sorted(table[name].unique()) for name in table.columns}


def codes(name):
    """Return the place of each cell among the categories of its column."""
    return np.array([levels[name].index(cell) for cell in table[name]])


def counts(first, second):
    """Return how many rows have each pair of categories."""
    found = np.zeros((len(levels[first]), len(levels[second])))
    np.add.at(found, (codes(first), codes(second)), 1)
    return found


joint = counts("island", "species") / len(table)
print(levels["island"], levels["species"])
print(joint.round(3))
print("p(species | island = Dream)     ", (joint[1] / joint[1].sum()).round(3))
print(
    "p(island | species = Adelie)    ", (joint[:, 0] / joint[:, 0].sum()).round(3)
)

# %%
# Many columns: a tree of small tables
# ------------------------------------
# The table of d columns with K categories each has :math:`K^d` cells. A tree has d − 1 small ones. Let island — species — mass
# be a chain:
#
# .. math:: p(i, s, m) = p(s)\, p(i \mid s)\, p(m \mid s).
#
# Species is the root, and the two others are its children. Which pairs a tree should hold is the subject of
# :doc:`11_chow_liu_tan`. Each table is estimated with half a count per cell, so that no combination is impossible.


def conditional(first, second):
    """Return p(second | first), one row for each category of the first."""
    smoothed = counts(first, second) + 0.5
    return smoothed / smoothed.sum(axis=1, keepdims=True)


p_s = np.bincount(codes("species")) / len(table)
p_i = conditional("species", "island")
p_m = conditional("species", "mass")

# %%
# Evidence is a likelihood
# ------------------------
# What is known of a column is a vector λ with a number for each category: how probable the finding is if the cell is this
# category.
#
# - A known value: 1 at the value, 0 elsewhere.
# - Nothing known: 1 everywhere.
# - One of several values: 1 at each of them.
# - A range of numbers, where the column is cut into bins: the share of each bin that is within the range.
#
# All of these have the same form, so one algorithm serves all of them.
nothing = np.ones(3)
on_dream = np.array([one == "Dream" for one in levels["island"]], float)
not_light = np.array([one != "light" for one in levels["mass"]], float)
print("λ of island", on_dream, " λ of species", nothing, " λ of mass", not_light)

# %%
# Messages
# --------
# The sum over all hidden cells factorises along the tree (Pearl 1988). A child sends to its parent, for each category of the parent,
# how probable the child's evidence is:
#
# .. math:: \mu_{i \to s}(s) = \sum_i p(i \mid s)\, \lambda_i(i), \qquad \mu_{m \to s}(s) = \sum_m p(m \mid s)\, \lambda_m(m).
#
# The root multiplies, :math:`p(s \mid \text{evidence}) \propto p(s)\, \lambda_s(s)\, \mu_{i \to s}(s)\, \mu_{m \to s}(s)`. That is
# Bayes' rule; the sum of the product is the probability of the evidence.
up_i, up_m = p_i @ on_dream, p_m @ not_light
product = p_s * nothing * up_i * up_m
print("p(evidence)          ", product.sum().round(4))
print("p(species | evidence)", (product / product.sum()).round(4))

# %%
# Then the root sends back what it knows *without* what the child has sent, and the child multiplies by its table:
#
# .. math:: p(m \mid \text{evidence}) \propto \lambda_m(m) \sum_s p(s)\, \lambda_s(s)\, \mu_{i \to s}(s)\, p(m \mid s).
down = (p_s * nothing * up_i) @ p_m
mass = down * not_light
print(levels["mass"], (mass / mass.sum()).round(4))

# %%
# The same by brute force: all 27 combinations, of which those that the evidence excludes have weight 0.
weight = np.zeros((3, 3, 3))
for i, s, m in itertools.product(range(3), repeat=3):
    weight[i, s, m] = p_s[s] * p_i[s, i] * p_m[s, m] * on_dream[i] * not_light[m]
weight /= weight.sum()
print("species", weight.sum(axis=(0, 2)).round(4))
print("mass   ", weight.sum(axis=(0, 1)).round(4))

# %%
# Brute force takes :math:`K^d` steps, messages take :math:`(d - 1) K^2`. Two sweeps, to the root and back, give the marginals of
# *all* columns. :class:`~posteriori.JointModel` does this for every tree of its mixture. Its tables are smoothed in another way, so
# the digits differ a little from ours:
model = po.JointModel(members=["tree"]).fit(table)
model.query("P(species | island = Dream, mass != light)")

# %%
# They are the same, to rounding, as sums over the probabilities of whole rows of this model:
sums = {
    one: sum(
        model.probability({"island": "Dream", "species": one, "mass": size})
        for size in ("middle", "heavy")
    )
    for one in levels["species"]
}
{one: value / sum(sums.values()) for one, value in sums.items()}

# %%
# All answers come from one distribution, so they agree. The product rule holds in both orders:
dream, heavy = {"island": "Dream"}, {"mass": "heavy"}
print(model.probability(dream) * model.probability(heavy, dream))
print(model.probability(heavy) * model.probability(dream, heavy))

# %%
# Ranges of numbers
# -----------------
# A column of numbers is cut into bins, which are its categories, and within a bin the numbers are spread as in the training rows. A
# range is evidence like any other: λ is 1 for a bin inside, 0 for one outside, and a share for a bin that an end cuts. As the range
# of body mass moves up, belief moves from species to species.
numbers = po.JointModel().fit(load_penguins())
starts = np.arange(2800, 5700, 100)
beliefs = [
    numbers.query(f"P(species | body_mass_g in [{start}, {start + 400}])")
    for start in starts
]
figure, axes = plt.subplots(figsize=(6.4, 3.2))
for name in beliefs[0]:
    axes.plot(starts + 200, [one[name] for one in beliefs], label=name)
axes.set(xlabel="body mass within 200 g of (g)", ylabel="probability", ylim=(0, 1))
axes.legend(frameon=False)
plt.show()

# %%
# Draws need no rejection
# -----------------------
# To draw rows *given* evidence, one could draw rows and keep those that agree. If the evidence has probability 0.001, that wastes 999 of
# 1,000. Messages avoid it. After the sweep to the root, draw the root from its posterior; then each child given its parent, from
#
# .. math:: p(m \mid s, \text{evidence}) \propto p(m \mid s)\, \lambda_m(m)\, \prod_{\text{children } c \text{ of } m} \mu_{c \to m}(m).
#
# The messages from below have already weighted every choice by the evidence that is still to come, so no draw ends in a contradiction.
rng = np.random.default_rng(0)
species = rng.choice(3, size=2000, p=product / product.sum())
below = p_m * not_light  # mass has no children, so there is no message
below /= below.sum(axis=1, keepdims=True)
drawn = np.array([rng.choice(3, p=below[s]) for s in species])
print("shares of the draws", np.bincount(drawn, minlength=3) / 2000)
print("exact              ", (mass / mass.sum()).round(4))
numbers.sample(4, {"sex": "female", "body_mass_g": (5000, None)}, random_state=0)

# %%
# Missing cells are filled in the same way: the known cells of the row are the evidence, and the others are drawn. Several such draws
# show how uncertain a result is: *multiple imputation*, on the page :doc:`/guide/tasks/fill_gaps`.
#
# What a tree cannot hold
# -----------------------
# A tree holds d − 1 pairs. All other pairs follow from these: two leaves are independent given the node between them. Let the last
# column be the exclusive or of the others (their parity). All pairs are independent, so no edge has mutual information, and the best
# tree is no better than independent columns: it answers one half, where the truth is 1.
#
# A mixture of trees can hold more, because the hidden component is a parent of every column. But EM has to find it, and from its start
# it may see nothing to improve.


def parity(n_bits):
    """Return rows of random bits, and of their parity, as text."""
    bits = np.random.default_rng(0).random((2000, n_bits)) < 0.5
    columns = {f"bit {k}": bits[:, k] for k in range(n_bits)}
    columns["parity"] = np.bitwise_xor.reduce(bits, axis=1)
    return pl.DataFrame(columns).select(pl.all().cast(pl.String))


for n_bits in (2, 4):
    rows = parity(n_bits)
    one_bit = {f"bit {k}": "true" if k == 0 else "false" for k in range(n_bits)}
    for member in ("tree", "trees"):
        mixture = po.JointModel(members=[member]).fit(rows)
        answer = mixture.probability({"parity": "true"}, one_bit)
        print(f"{n_bits} bits, {member:5s}: p(parity is true) = {answer:.2f}")

# %%
# So a question about one column that matters deserves a model of that column. ``predict`` and ``predict_proba`` fit a pool of it by
# default, whose members include models of several columns together:
print(mixture.categories("parity"))
mixture.predict_proba(one_bit, "parity").round(2)

# %%
# **Try it.** Add a fourth column to the chain by hand, a child of mass, and send its message. What does evidence on it change in
# the belief about the island?
