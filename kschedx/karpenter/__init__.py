"""Karpenter's provisioning, as far as a cluster's objects show it: which pods it provisions for, and what it adds.

It follows Karpenter 1.13, or 1.14 if the cluster runs it (kubernetes-sigs/karpenter, pkg/controllers/provisioning and
pkg/scheduling). Decisions and error messages of 1.13 were compared with its own scheduler: see
tests/karpenter/README.md. The cloud's current state (prices, insufficient capacity, reservations) is not in a cluster
and is not guessed.
"""
