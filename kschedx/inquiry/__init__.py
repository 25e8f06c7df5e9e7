"""The answer to a question about one pod: how it is computed, and how it is reported."""
