"""The mathematics: arrays in, arrays out. What runs on few rows without Numba is in `few_rows`."""
