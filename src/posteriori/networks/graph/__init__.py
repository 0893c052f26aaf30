"""Graphs, the tables and densities along them, and the specification of a network."""
