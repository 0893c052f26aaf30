"""
One prediction, explained as a sum
==================================

The log-odds of a prediction are the prior log-odds plus one step per feature, exactly.

No approximation is involved: a naive Bayes posterior *is* this sum. Each step has the colour of
the class that it favours.
"""

import posteriori as po
from posteriori.datasets import load_penguins

penguins = load_penguins()
model = po.NaiveBayes().fit(penguins, "species")
po.plotting.plot_explanation(model, penguins, row=314)

# %%
# The same prediction as Bayes' rule, written out:
print(model.explain(penguins).bayes_table(314))
