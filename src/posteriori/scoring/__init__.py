"""Posteriors of fitted models: of one row given as a dict, and of tables larger than memory, without estimators."""

from posteriori.scoring.fitted import load_scorer
from posteriori.scoring.numbers import NumberScorer
from posteriori.scoring.posterior import ModelRows, RowPosterior, Scorer

__all__ = ["ModelRows", "NumberScorer", "RowPosterior", "Scorer", "load_scorer"]
