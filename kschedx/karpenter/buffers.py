"""The virtual pods of CapacityBuffers: capacity that Karpenter keeps free, behind its feature gate CapacityBuffer.

Upstream: controllers/provisioning/buffers.go of Karpenter 1.14.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kschedx.kube.autoscalers import CapacityBuffer, condition
from kschedx.kube.decoding import decode
from kschedx.kube.types import ObjectMeta, Pod, PodSpec, PodTemplateSpec
from kschedx.snapshot.snapshot import Snapshot

SCALABLE = ("Deployment", "StatefulSet", "ReplicaSet")
LOWEST_PRIORITY = -(2**31)


class _Spec(Struct, frozen=True, kw_only=True):
    template: PodTemplateSpec = PodTemplateSpec()


class _Workload(Struct, frozen=True, kw_only=True):
    spec: _Spec = _Spec()


def virtual_pods(snapshot: Snapshot) -> Iterator[Pod]:
    """Of buffers that are ready and name a workload; those that name a PodTemplate, which is not read, have none."""
    for buffer in snapshot.of(CapacityBuffer):
        ready = condition(buffer.status.conditions, "ReadyForProvisioning")
        named = buffer.spec.scalable_ref
        if ready is None or ready.status != "True" or named is None or buffer.spec.pod_template_ref is not None:
            continue
        if named.kind not in SCALABLE or named.api_group not in ("", "apps"):
            continue
        raw = snapshot.workloads.get((named.kind, buffer.metadata.namespace, named.name))
        if raw is None:
            continue
        spec = _placeable(decode(raw, _Workload).spec.template.spec)
        for number in range(1, (buffer.status.replicas or 0) + 1):
            metadata = ObjectMeta(
                name=f"capacity-buffer-{buffer.metadata.name}-{number}",
                namespace=buffer.metadata.namespace,
                uid=f"{buffer.metadata.uid}-{number}",
                labels={
                    "karpenter.sh/capacity-buffer-name": buffer.metadata.name,
                    "karpenter.sh/capacity-buffer-namespace": buffer.metadata.namespace,
                },
                creation_timestamp="~",
            )
            yield Pod(metadata=metadata, spec=spec)


def _placeable(spec: PodSpec) -> PodSpec:
    """Without a node and without volumes that claims stand for."""
    volumes = tuple(one for one in spec.volumes if one.persistent_volume_claim is None and one.ephemeral is None)
    return replace(spec, node_name="", priority=LOWEST_PRIORITY, volumes=volumes)
