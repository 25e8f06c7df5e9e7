"""What the descheduler evicts, whom it leaves alone and why, and where the evicted pods land.

A satellite: nothing in the core imports it. Upstream: sigs.k8s.io/descheduler 0.36.
"""
