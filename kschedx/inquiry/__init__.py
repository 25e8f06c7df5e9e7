"""The answer to a question about one pod: what is run, and what is reported of it."""
