"""Typed records of the Kubernetes objects that scheduling reads, with their decoding, defaults, and arithmetic."""
