"""The cluster as columns: a property that many rows share is stored once and evaluated once."""
