"""
Precision and recall of a rare class
====================================

Of the rows called positive, how many are; and of those that are, how many were called so.

Penguins of the rarest species, against the two others, by the mass of the body alone. The dashed
line is the share of the class: the precision of guessing.
"""

from sklearn.model_selection import train_test_split

import posteriori as po
from posteriori.datasets import load_penguins

train, test = train_test_split(load_penguins(), random_state=0)
columns = ["species", "bill_length_mm", "body_mass_g"]
model = po.NaiveBayes().fit(train[columns], "species")
po.plotting.plot_precision_recall(
    model, test[columns], "species", label="Chinstrap"
)
