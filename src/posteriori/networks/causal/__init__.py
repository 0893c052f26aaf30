"""Causes: adjustment sets, identification, and the effects of interventions."""
