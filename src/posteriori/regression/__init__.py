"""Regression: the density of a number given a row, from sums of squares, from trees, and from their pool."""
