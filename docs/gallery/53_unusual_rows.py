"""
The most unusual digits
=======================

The log density of each row finds the images that the model did not expect.

A classifier of p(y | x) has no such number: it must decide, however odd the row.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import posteriori as po

X, y = load_digits(return_X_y=True)
grey = X[:, X.std(axis=0) > 0]  # three pixels are white in every image
model = po.GaussianDiscriminant(shrinkage=0.1).fit(grey, y)
log_density = model.score_samples(grey)
strange, usual = np.argsort(log_density)[:10], np.argsort(log_density)[-10:]
figure, axes = plt.subplots(2, 10, figsize=(9, 2.6))
for row, chosen in zip(axes, (strange, usual)):
    for ax, i in zip(row, chosen):
        ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
        ax.set_title(f"a {y[i]}", fontsize=9)
        ax.axis("off")
figure.suptitle("Lowest and highest log p(x)")
plt.show()

# %%
figure, ax = plt.subplots(figsize=(7.2, 2.8))
ax.hist(log_density, bins=60)
ax.set(xlabel="log p(x) in nats", ylabel="images")
plt.show()
