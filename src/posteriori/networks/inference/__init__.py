"""Inference: evidence, exact and sampled answers, and the distributions that they are."""
