"""Reads bytes as Kubernetes objects. `files.read` yields batches of JSON, whatever the format of the input."""
