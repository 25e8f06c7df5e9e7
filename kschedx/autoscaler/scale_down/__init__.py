"""Why cluster-autoscaler does not remove a node: its utilisation, its pods, their places, and its group.

Upstream: core/scaledown/ and simulator/ of kubernetes/autoscaler, read as of 1.36. No loop of it was recorded.
"""
