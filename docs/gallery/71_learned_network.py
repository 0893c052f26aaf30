"""
A network learned from a table
==============================

Hill climbing under the BIC finds which variables of the penguins depend on each other.

Numbers are cut into three bins first. Edges state dependences; most could be reversed without changing
what the network says about independence, so they are not causes.
"""

import polars as pl

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins().drop_nulls().drop("year")
labels = ["low", "middle", "high"]
binned = penguins.with_columns(
    pl.col(name).qcut(3, labels=labels).cast(pl.String)
    for name in (
        "bill_length_mm",
        "bill_depth_mm",
        "flipper_length_mm",
        "body_mass_g",
    )
)
net = po.learn_network(binned)
po.plotting.plot_network(net)

# %%
# Any variable may be the question, given any others:
print(
    net.query(
        "species", evidence={"island": "Biscoe", "flipper_length_mm": "middle"}
    )
)
