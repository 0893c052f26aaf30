"""Regression: the density of a number given a row, from sums of squares, from trees, and from their pool.

The target is cut into cells, each of which is to a pool what a class is. Members are least squares on features of
columns and on similarities to landmarks, and neighbours in trees. What columns do is shown as sums, effects and
importance.
"""
