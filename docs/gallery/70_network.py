"""
A Bayesian network with evidence
================================

The sprinkler network: the grass is wet, and the sprinkler was on.

The bars in the nodes are the posterior marginals, computed exactly by a junction tree.
"""

import posteriori as po

net = po.BayesianNetwork(
    [
        ("cloudy", "sprinkler"),
        ("cloudy", "rain"),
        ("sprinkler", "wet"),
        ("rain", "wet"),
    ]
)
net.add_cpt("cloudy", [0.5, 0.5], states=["yes", "no"])
net.add_cpt("sprinkler", [[0.1, 0.9], [0.5, 0.5]], states=["on", "off"])
net.add_cpt("rain", [[0.8, 0.2], [0.2, 0.8]], states=["yes", "no"])
net.add_cpt(
    "wet",
    [[[0.99, 0.01], [0.9, 0.1]], [[0.9, 0.1], [0.0, 1.0]]],
    states=["yes", "no"],
)
po.plotting.plot_network(net, {"wet": "yes", "sprinkler": "on"})

# %%
# Without the sprinkler as an explanation, rain is more probable:
print(net.query("rain", evidence={"wet": "yes"}))
print(net.query("rain", evidence={"wet": "yes", "sprinkler": "on"}))
