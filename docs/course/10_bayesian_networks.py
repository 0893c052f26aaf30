r"""
Bayesian networks
=================

A joint distribution as a product of small tables: chains, common causes, common effects, and exact answers.

A **Bayesian network** is a directed acyclic graph with one table per variable, :math:`p(x_v \mid \text{parents})`. The joint is
their product,

.. math:: p(x_1, \ldots, x_d) = \prod_v p(x_v \mid x_{\mathrm{pa}(v)}).

Naive Bayes is the network in which the class is the only parent of every feature. There is no label in general: any variable may be
asked for, given any others.

Four binary variables: clouds make rain probable and the sprinkler improbable, and both make the grass wet.
"""

import matplotlib.pyplot as plt

import posteriori as po

net = po.BayesianNetwork(
    [
        ("cloudy", "sprinkler"),
        ("cloudy", "rain"),
        ("sprinkler", "wet"),
        ("rain", "wet"),
    ]
)
net.add_cpt("cloudy", {"yes": 0.5, "no": 0.5})
net.add_cpt(
    "sprinkler", {"yes": {"on": 0.1, "off": 0.9}, "no": {"on": 0.5, "off": 0.5}}
)
net.add_cpt("rain", {"yes": {"yes": 0.8, "no": 0.2}, "no": {"yes": 0.2, "no": 0.8}})
net.add_cpt(
    "wet",
    {
        ("on", "yes"): {"yes": 0.99, "no": 0.01},
        ("on", "no"): {"yes": 0.90, "no": 0.10},
        ("off", "yes"): {"yes": 0.90, "no": 0.10},
        ("off", "no"): {"yes": 0.00, "no": 1.00},
    },
)
po.plotting.plot_network(net)
plt.show()

# %%
# The joint from the factors
# --------------------------
#
# The network has nine free numbers instead of fifteen. Each cell of the joint is a product of four:
print(
    net.n_parameters,
    "parameters;",
    net.joint().probabilities.size - 1,
    "without the graph",
)
state = {"cloudy": "yes", "sprinkler": "on", "rain": "yes", "wet": "yes"}
print(
    f"{net.probability(state):.4f} = 0.5 · 0.1 · 0.8 · 0.99 = {0.5 * 0.1 * 0.8 * 0.99:.4f}"
)
net.joint()

# %%
# Any other probability is a sum of such cells: *marginalise* what is not asked for, then divide.
print(net.query("rain"))
print(net.query("rain", evidence={"wet": "yes"}))

# %%
# Explaining away
# ---------------
#
# Wet grass makes rain probable. If we learn that the sprinkler was on, rain becomes less probable again: one cause explains the
# effect, so the other is not needed. The two causes are independent given the clouds, and *become dependent* by the observation of
# their common effect.
for evidence in ({}, {"wet": "yes"}, {"wet": "yes", "sprinkler": "on"}):
    print(
        f"{net.probability({'rain': 'yes'}, given=evidence):.3f}  p(rain | {evidence})"
    )

# %%
po.plotting.plot_network(net, {"wet": "yes", "sprinkler": "on"})
plt.show()

# %%
# Three triples
# -------------
#
# All dependences of a network follow from three shapes.
#
# .. list-table::
#    :header-rows: 1
#
#    * - shape
#      - the middle is unknown
#      - the middle is known
#    * - chain, a → b → c
#      - dependent
#      - independent
#    * - common cause, a ← b → c
#      - dependent
#      - independent
#    * - common effect, a → b ← c
#      - independent
#      - dependent
#
# A trail is *active* if every triple on it is open; variables without an active trail are **d-separated**, and independent for any
# numbers in the tables. ``active_trails`` gives the reason, triple by triple:
print(net.active_trails("sprinkler", "rain"))

# %%
print(net.active_trails("sprinkler", "rain", given="cloudy"))

# %%
# Give the common effect as well, and the second trail opens:
print(net.active_trails("sprinkler", "rain", given=["cloudy", "wet"]))

# %%
# The statement about the graph and the numbers agree. Given the clouds, rain is no evidence about the sprinkler:
for rain in ("yes", "no"):
    p = net.probability({"sprinkler": "on"}, given={"cloudy": "yes", "rain": rain})
    print(f"p(sprinkler = on | cloudy, rain = {rain}) = {p:.4f}")

# %%
# The **Markov blanket** of a variable, its parents, children and their other parents, separates it from everything else:
net.markov_blanket("rain")

# %%
# Tables by counting
# ------------------
#
# With complete rows, maximum likelihood is counting: :math:`\hat p(v \mid a) = n_{va} / n_a`. Laplace smoothing adds one to each
# count. Draw a hundred days from the network and learn its tables back.
days = net.sample(100, random_state=0)
learned = po.BayesianNetwork(net.edges).fit(days, alpha=0)
print(learned.cpt("rain"))

# %%
# Count by hand: days with clouds, and among them those with rain.
import polars as pl

days = pl.DataFrame(days)
cloudy = days.filter(pl.col("cloudy") == "yes")
rainy = cloudy.filter(pl.col("rain") == "yes")
print(f"{len(rainy)} / {len(cloudy)} = {len(rainy) / len(cloudy):.6f}")

# %%
# Exact inference
# ---------------
#
# Summing the joint takes exponential time. **Variable elimination** pushes the sums inwards,
#
# .. math:: p(w) = \sum_{s, r} p(w \mid s, r) \sum_c p(c)\, p(s \mid c)\, p(r \mid c),
#
# so that every intermediate table is small. A **junction tree** organises this for all questions at once; posteriori uses it for
# every answer. By hand, for the wet grass:
p_c = {"yes": 0.5, "no": 0.5}
p_s = {"yes": {"on": 0.1, "off": 0.9}, "no": {"on": 0.5, "off": 0.5}}
p_r = {"yes": {"yes": 0.8, "no": 0.2}, "no": {"yes": 0.2, "no": 0.8}}
p_w = {
    ("on", "yes"): 0.99,
    ("on", "no"): 0.9,
    ("off", "yes"): 0.9,
    ("off", "no"): 0.0,
}
inner = {
    (s, r): sum(p_c[c] * p_s[c][s] * p_r[c][r] for c in p_c)
    for s in ("on", "off")
    for r in ("yes", "no")
}
total = sum(p_w[key] * inner[key] for key in inner)
print(f"by hand {total:.4f}, by the network {net.probability({'wet': 'yes'}):.4f}")

# %%
# All posteriors at once, and the most probable state of everything:
for variable in ("cloudy", "sprinkler", "rain"):
    print(net.query(variable, evidence={"wet": "yes"}))
print(net.most_probable({"wet": "yes"}))

# %%
# A classifier is a network, and the reverse
# ------------------------------------------
#
# Any variable can be the class. Missing features are summed out.
net.as_classifier("rain").predict_proba(
    [{"wet": "yes"}, {"wet": "yes", "sprinkler": "on"}]
).round(3)

# %%
# **Try it.** Set ``p(wet | off, no)`` to 0.1 (dew). Does a wet lawn still make rain probable? Add a variable *slippery* below
# *wet*: does it open the trail between sprinkler and rain?
