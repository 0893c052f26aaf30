"""Pools of models: candidates that suit a table, their held-out predictions, and the weights that these determine."""
