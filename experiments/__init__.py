"""The measurements behind the pages of docs/: `python -m experiments.pool` and the like; see the Makefile."""
