"""Explains a finished cycle: the diagnosis, who uses what, and notes on how far to trust the answer."""
