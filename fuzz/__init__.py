"""Mutated inputs: tables, options, model files and network files that try to provoke an unexpected error.

Every target turns a random generator into one input, hands it to posteriori as a user would, and returns whether it was
accepted. An input may be refused, in one sentence; anything else is a finding: an exception of another kind, a sentence
that spans lines, a warning that is no `UserWarning`, a crash of the process, or no answer in time.

``python -m fuzz 1000`` tries 1000 inputs of every target; ``python -m fuzz 1 --target tables --seed 123`` repeats one.
"""
