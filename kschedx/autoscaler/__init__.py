"""cluster-autoscaler's loop on node templates: whether the cluster grows, and if not, why."""
