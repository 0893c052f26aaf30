"""What all tests share."""

import hypothesis

# Kernels compile on first use, so no example has a deadline; the same examples run everywhere.
hypothesis.settings.register_profile("posteriori", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("posteriori")
