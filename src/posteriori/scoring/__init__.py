"""Posteriors of fitted models: of one row given as a dict, and of tables larger than memory, without estimators."""

from posteriori.scoring.posterior import ModelRows, Posterior, RowPosterior, Scorer

__all__ = ["ModelRows", "Posterior", "RowPosterior", "Scorer"]
