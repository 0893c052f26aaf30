"""
Handwritten digits, drawn by two models
=======================================

Naive Bayes draws pixels one by one; one Chow-Liu tree per class draws pixels that fit together.

Both models see digits of 8 by 8 pixels in black and white. The samples show what independence
loses, and the accuracies show what it costs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import posteriori as po

X, y = load_digits(return_X_y=True)
X = (X > 7).astype(bool)
models = {
    "naive Bayes": po.NaiveBayes(),
    "Chow-Liu": po.classifiers.ChowLiuClassifier(),
}
figure, axes = plt.subplots(2, 1, figsize=(8, 3.6))
for ax, (title, model) in zip(axes, models.items()):
    model.fit(X[:1200], y[:1200])
    images, _ = model.sample(10, y=np.arange(10), random_state=3)
    strip = np.hstack(
        [np.pad(np.asarray(image, float).reshape(8, 8), 1) for image in images]
    )
    ax.imshow(strip, cmap="gray_r")
    ax.set_title(
        f"{title}: accuracy {model.score(X[1200:], y[1200:]):.3f} on 597 other digits"
    )
    ax.axis("off")
plt.show()
