"""Karpenter's provisioning, as far as a cluster's objects show: which pods it looks at, and what it adds for them.

Follows Karpenter 1.13, and 1.14 where the cluster runs it (kubernetes-sigs/karpenter, pkg/controllers/provisioning and
pkg/scheduling). Decisions and error texts of 1.13 were held against its own scheduler, run with given instance types:
see tests/karpenter/README.md. What the cloud says at the moment (prices, capacity that has run out, reservations) is
not in a cluster, and is not guessed.
"""
