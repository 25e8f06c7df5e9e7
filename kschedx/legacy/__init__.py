"""kube-scheduler before the scheduling framework: predicates filter nodes, and priorities score the feasible ones.

There are two designs, each modeled on one version: 1.13 and 1.5 (`scheduler`). A Policy configures them (`policy`), and
they read manifests as an API server of that time stored them (`api_schema`). Both return the same `Cycle` as the
framework, with predicates in place of Filter plugins and priorities in place of Score plugins. If a rule has not
changed since, the predicate calls the plugin that has it now.
"""
