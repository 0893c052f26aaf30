"""Transformers of tables, for pipelines of scikit-learn."""

from posteriori.preprocessing.mdlp import MDLPDiscretizer

__all__ = ["MDLPDiscretizer"]
