"""Posteriors of fitted models: of one row given as a dict, and of tables larger than memory, without estimators.

`posteriori predict` and services need no more than this. It does not import scikit-learn, so that it starts fast and
runs in a small environment.
"""

from posteriori.scoring.fitted import load_scorer
from posteriori.scoring.numbers import NumberScorer
from posteriori.scoring.posterior import ModelRows, RowPosterior, Scorer

__all__ = ["ModelRows", "NumberScorer", "RowPosterior", "Scorer", "load_scorer"]
