"""kube-scheduler before the scheduling framework: predicates that a node must pass, priorities that rank those that do.

Two designs, each with the release that it is read from: 1.13 and 1.5 (`providers`). They are configured by a Policy
(`policy`), read manifests as an API server of their time stored them (`stored`), and end in the same `Cycle` as the
framework: predicates take the place of Filter plugins, priorities that of Score plugins.

Where a rule has not changed since, a predicate asks the plugin that has it today.
"""
