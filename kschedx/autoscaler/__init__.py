"""cluster-autoscaler's own loop on template nodes: would the cluster grow, and if not, why."""
