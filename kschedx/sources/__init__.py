"""Bytes to Kubernetes objects. `files.read` yields batches of JSON, whatever the input was written in."""
