"""
Eight models, cross-validated in one pass
=========================================

Statistics add up, so one pass over the rows gives the statistics of every fold of every model.

The result equals that of refitting each model on each fold.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import posteriori as po

X, y = load_wine(return_X_y=True, as_frame=True)
scores = po.cross_validate(
    ["nb", "lda", "qda", "rda", "tan", "kdb", "aode", "logistic"], X, y
)
print(scores)

# %%
table = scores.table.sort("log_loss")
figure, ax = plt.subplots()
ax.barh(table["model"].to_list(), table["log_loss"].to_list())
ax.invert_yaxis()
ax.set_xlabel("log-loss in nats (less is better)")
plt.show()
