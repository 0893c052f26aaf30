"""Generative against discriminative: what each learns from how many rows."""

from posteriori.comparison.discriminative import DiscriminativeClassifier, discriminative
from posteriori.comparison.result import Comparison
from posteriori.comparison.rows import training_sizes
from posteriori.comparison.running import compare

__all__ = ["Comparison", "DiscriminativeClassifier", "compare", "discriminative", "training_sizes"]
