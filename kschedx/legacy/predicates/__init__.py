"""Predicates: whether a node can take the pod, and if not, why."""
