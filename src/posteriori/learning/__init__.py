"""How models are learned, and how well they predict rows they have not seen.

These are algorithms on rows and plans, none on estimators: fits in one pass, in two passes and by EM; exact
cross-validation and leave-one-out from the same sums; discriminative weights; importance of columns. The work of each
is known as seconds and bytes before it begins.
"""
