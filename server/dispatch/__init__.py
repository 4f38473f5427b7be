"""Dispatch: for each group of shapes the candidate that wins there, as a plain Python module, with its evidence."""
