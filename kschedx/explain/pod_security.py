"""What Pod Security admission makes of new pods in a snapshot's namespaces, as far as that can be known.

The API server's own configuration (defaults other than `privileged`, exempt namespaces, users and RuntimeClasses) is
in no dump: it is taken to be the built-in one.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kschedx.api.admission import PodSecurity
from kschedx.api.decode import decode
from kschedx.api.kinds import KINDS
from kschedx.api.kubelet_fields import KubeletFields, KubeletSpec
from kschedx.api.pod_security.evaluation import Standards
from kschedx.api.pod_security.policy import Level, Policy, policy_of
from kschedx.api.stored import is_stored
from kschedx.api.types import Pod
from kschedx.api.workloads import ALWAYS_STORED
from kschedx.explain.notes.admission import PodSecurityUnread
from kschedx.releases.release import Release
from kschedx.snapshot.snapshot import Snapshot

_FIRST = 23
"""The release of Kubernetes 1 whose API server looks at the labels unless it is told not to."""
_OWN_USERS = "UserNamespacesPodSecurityStandards"
_OPENSHIFT = "node.openshift.io/os_id"


def enforced(
    snapshot: Snapshot, namespace: str, release: Release, maker: Mapping[str, object] | None = None
) -> PodSecurity | PodSecurityUnread | None:
    """What a new pod is held against; None where every pod is let in. `maker` is the workload whose template it has."""
    standards, wanted = standards_of(release), _policy(snapshot, namespace).enforce
    if standards is None or wanted.level is Level.PRIVILEGED:
        return None
    is_cut = maker is not None and _is_cut(maker)
    if is_cut or _OPENSHIFT in snapshot.cluster.label_keys:
        return PodSecurityUnread(namespace=namespace, level=str(wanted.level), is_cut=is_cut)
    return PodSecurity(wanted=wanted, standards=standards)


def enforcing(snapshot: Snapshot, release: Release) -> frozenset[str]:
    """The namespaces that do not let every pod in."""
    if standards_of(release) is None:
        return frozenset()
    return frozenset(name for name in snapshot.namespaces if _policy(snapshot, name).enforce.level)


def refused_by_template(snapshot: Snapshot, pod: Pod, release: Release) -> str | None:
    """Why Pod Security refuses one more pod of a workload of the snapshot; None where it does not, or is not known."""
    owner, namespace = pod.metadata.controller, pod.metadata.namespace
    raw = None if owner is None else snapshot.workloads.get((owner.kind, namespace, owner.name))
    if raw is None or _policy(snapshot, namespace).enforce.level is Level.PRIVILEGED:
        return None
    maker = msgspec.json.decode(raw, type=dict[str, object])
    standard = enforced(snapshot, namespace, release, maker)
    if not isinstance(standard, PodSecurity):
        return None
    template = decode(msgspec.json.encode(_template(maker)), KubeletFields)
    return standard.refusal(pod, template.spec)


def warned(
    snapshot: Snapshot, pod: Pod, kubelet: KubeletSpec, release: Release, maker: Mapping[str, object] | None = None
) -> str:
    """What kubectl prints when the manifest of a pod or of its `maker` is applied; empty where nothing."""
    standards, wanted = standards_of(release), _policy(snapshot, pod.metadata.namespace).warn
    if standards is None or _OPENSHIFT in snapshot.cluster.label_keys or (maker is not None and is_stored(maker)):
        return ""
    return PodSecurity(wanted=wanted, standards=standards).warning(pod, kubelet, is_template=maker is not None)


def standards_of(release: Release) -> Standards | None:
    """None for releases before Pod Security."""
    minor = int(release.version.partition(".")[2])
    return Standards(minor=minor, relaxes_own_users=release.enabled(_OWN_USERS)) if minor >= _FIRST else None


def _policy(snapshot: Snapshot, namespace: str) -> Policy:
    return policy_of(snapshot.namespaces.get(namespace, {}))


def _is_cut(maker: Mapping[str, object]) -> bool:
    """A snapshot file keeps of a template what scheduling reads."""
    spec = _template(maker).get("spec")
    return is_stored(maker) and isinstance(spec, dict) and ALWAYS_STORED not in spec


def _template(maker: Mapping[str, object]) -> Mapping[str, object]:
    """Of the pods of one of Kubernetes' own workloads."""
    kind = KINDS.get(str(maker.get("kind")))
    found: object = None if kind is None else maker
    for part in () if kind is None else kind.template:
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
