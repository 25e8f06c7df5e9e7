"""Reads a finished cycle: the diagnosis, who holds what, what to know to trust the answer."""
