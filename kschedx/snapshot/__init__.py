"""The cluster as columns: a value that many rows share is stored and evaluated once."""
