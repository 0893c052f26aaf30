"""Transformers of tables, for scikit-learn pipelines.

They stand alone, without a model: `MDLPDiscretizer` cuts numbers into bins by the classes.
"""

from posteriori.preprocessing.mdlp import MDLPDiscretizer

__all__ = ["MDLPDiscretizer"]
