"""Pools of models: candidates that suit a table, their held-out predictions, and the weights that these determine.

A fit takes a recipe and returns a `FittedPool`, whose members are `Fitted` values. Its stages are the summary of the
table, candidates, trials within a budget, and weights; adding, removing and merging rows go to the members.
"""
