"""Kueue's admission: which Workload gets quota, in which flavors, at whose expense, and why the others wait.

Upstream: kubernetes-sigs/kueue 0.19, `pkg/scheduler`, `pkg/cache` and `pkg/controller/core`.
"""
