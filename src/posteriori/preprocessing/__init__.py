"""Transformers of tables, for scikit-learn pipelines."""

from posteriori.preprocessing.mdlp import MDLPDiscretizer

__all__ = ["MDLPDiscretizer"]
