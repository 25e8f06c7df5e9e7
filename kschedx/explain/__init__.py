"""Reads a finished cycle: the document, the diagnosis, who holds what, and what would fix it."""
