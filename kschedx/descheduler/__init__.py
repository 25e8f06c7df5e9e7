"""The descheduler: which pods it evicts, which it does not evict and why, and where the evicted pods land.

It is a satellite: nothing in the core imports it. Upstream: sigs.k8s.io/descheduler 0.36.
"""
