"""Inputs that are valid, or valid except for one thing, and that try to provoke an unexpected error.

Every target turns a random generator into one input, hands it to posteriori as a user would, and returns whether it was
answered. An input may be refused, in one sentence; anything else is a finding: an exception that no line raises on
purpose, a sentence that spans lines, a warning that is no `UserWarning`, probabilities that are NaN or do not sum to 1,
a crash of the process, or no answer in 60 seconds of the processor. The last lines count the inputs that
ended at the door (before a model was learned or read), with a model, and with an answer.

``python -m fuzz 1000`` tries 250 inputs of each target; ``python -m fuzz 1 --target commands --seed 123`` repeats one.
"""
