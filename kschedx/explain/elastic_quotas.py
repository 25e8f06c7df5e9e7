"""What lies behind a namespace that exceeds its ElasticQuota of scheduler-plugins."""

from collections.abc import Iterator

from kschedx.explain.advice import FixGroup, RootCause, root_cause
from kschedx.findings import ElasticQuotaExceeded
from kschedx.kube.kubectl import merge_patch
from kschedx.kube.other_schedulers import ElasticQuota
from kschedx.kube.quantity import Unit, format_quantity, resource_amount
from kschedx.snapshot.snapshot import Snapshot

_KIND = "elasticquotas.scheduling.x-k8s.io"


def elastic_quota(snapshot: Snapshot, finding: ElasticQuotaExceeded) -> Iterator[RootCause]:
    """Yield which ElasticQuota limits the namespace, and the bounds that admit the pod: what exceeds `min` is borrowed,
    and all namespaces together may not use more than the sum of all `min`."""
    namespace, resource = finding.namespace, finding.resource
    quota = next((quota for quota in snapshot.of(ElasticQuota) if quota.metadata.namespace == namespace), None)
    if quota is None:
        return
    bounds = {"min": quota.spec.min, "max": quota.spec.max}
    known = {name: resource_amount(resource, of[resource]) for name, of in bounds.items() if of and resource in of}
    needed = finding.requested + finding.used
    if finding.of_all:
        needed = known.get("min", 0) + needed - finding.limit
    raised = [name for name, bound in known.items() if bound < needed]
    if not raised:
        return
    after = format_quantity(needed, Unit.of(resource))
    title = f"raise {' and '.join(raised)} of ElasticQuota {quota.key}: {resource} to {after}"
    patch = {"spec": {name: {resource: after} for name in raised}}
    command = merge_patch(_KIND, namespace, quota.metadata.name, patch)
    text = f"ElasticQuota {quota.key} limits namespace {namespace}"
    yield root_cause(text, title, command, by_default=FixGroup.CLUSTER, leaves_no_node=True)
