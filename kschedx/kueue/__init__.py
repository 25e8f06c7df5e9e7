"""Kueue's admission: which Workload gets quota, in which flavors, which Workloads it preempts, and why others stay
pending.

Upstream: kubernetes-sigs/kueue 0.19, `pkg/scheduler`, `pkg/cache`, and `pkg/controller/core`.
"""
