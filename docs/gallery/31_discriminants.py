"""
Thirteen measurements of wine in one plane
==========================================

Fisher's discriminant directions: the plane in which the classes are farthest apart.

Within a class the covariance is the identity there, so distances are in standard deviations.
"""

from sklearn.datasets import load_wine

import posteriori as po

wine = load_wine(as_frame=True)
model = po.GaussianDiscriminant().fit(wine.data, wine.target_names[wine.target])
po.plotting.plot_discriminants(model, wine.data, wine.target_names[wine.target])
