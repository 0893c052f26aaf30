"""
Seeing and doing
================

Patients who get a drug recover less often, and yet the drug helps: it is given to the severe cases.

A network whose edges are causes answers both questions. To *see* the drug changes the belief about how severe
the case is; to *give* it (do) does not.
"""

import matplotlib.pyplot as plt

import posteriori as po

ward = po.BayesianNetwork(
    [("severe", "drug"), ("severe", "recovers"), ("drug", "recovers")]
)
ward.add_cpt("severe", {"yes": 0.5, "no": 0.5})
ward.add_cpt(
    "drug", {"yes": {"given": 0.8, "not": 0.2}, "no": {"given": 0.2, "not": 0.8}}
)
ward.add_cpt(
    "recovers",
    {
        ("yes", "given"): {"yes": 0.4, "no": 0.6},
        ("yes", "not"): {"yes": 0.2, "no": 0.8},
        ("no", "given"): {"yes": 0.9, "no": 0.1},
        ("no", "not"): {"yes": 0.8, "no": 0.2},
    },
)
seen = {
    d: ward.probability({"recovers": "yes"}, given={"drug": d})
    for d in ("given", "not")
}
done = {
    d: ward.do({"drug": d}).probability({"recovers": "yes"})
    for d in ("given", "not")
}
figure, ax = plt.subplots(figsize=(6, 3.6))
for shift, (label, values) in zip(
    (-0.18, 0.18), {"seen": seen, "done": done}.items()
):
    ax.bar([shift, 1 + shift], list(values.values()), 0.34, label=label)
ax.set(xticks=[0, 1], xticklabels=["drug given", "not given"], ylabel="p(recovers)")
ax.legend(frameon=False)
plt.show()

# %%
# What has to be known to compute the effect from data, and the formula:
print(ward.adjustment_sets("drug", "recovers"))
print(ward.identify("recovers", "drug"))
