"""Refusals of ResourceQuotas, with the API server's messages."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from kschedx.apiserver.resource_quota import charge, quota_refusal, with_status
from kschedx.kube.resources import ResourceQuota
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import Pod
from tests.builders import Manifest


def quota(
    hard: Mapping[str, object], used: Mapping[str, object] | None = None, spec: Mapping[str, object] | None = None
) -> ResourceQuota:
    """Return a quota whose status has the hard limits, and 0 used unless given."""
    status = {"hard": hard, "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
    return msgspec.convert(
        {"metadata": {"name": "q"}, "spec": {"hard": hard, **(spec or {})}, "status": status}, ResourceQuota
    )


def pod(requests: Manifest | None = None, limits: Manifest | None = None, **spec: object) -> Pod:
    container = {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}
    return msgspec.convert({"metadata": {"name": "x"}, "spec": {"containers": [container], **spec}}, Pod)


def refusal(new_object: Pod | PersistentVolumeClaim, *quotas: ResourceQuota, pod_level: bool = True) -> str | None:
    text = quota_refusal(new_object, quotas, pod_level_resources=pod_level)
    return None if text is None else text.partition(" is forbidden: ")[2]


def test_the_message_of_an_exceeded_quota() -> None:
    text = quota_refusal(pod({"cpu": "1"}), [quota({"cpu": "10"}, {"cpu": "9500m"})], pod_level_resources=True)
    assert text == 'pods "x" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=9500m, limited: cpu=10'


def exceeded(requested: str, used: str, limited: str) -> str:
    return f"exceeded quota: q, requested: {requested}, used: {used}, limited: {limited}"


@pytest.mark.parametrize(
    ("new_pod", "quotas_of_namespace", "expected"),
    [
        (pod({"cpu": "500m"}), quota({"cpu": "10"}, {"cpu": "9500m"}), None),
        # all exceeded resources and no others, in order of their names
        (
            pod({"cpu": "2", "memory": "2Gi"}, {"cpu": "2"}),
            quota({"requests.memory": "1Gi", "requests.cpu": "1", "limits.cpu": "9"}),
            exceeded("requests.cpu=2,requests.memory=2Gi", "requests.cpu=0,requests.memory=0",
                     "requests.cpu=1,requests.memory=1Gi"),
        ),
        (pod(), quota({"pods": "3"}, {"pods": "3"}), exceeded("pods=1", "pods=3", "pods=3")),
        (
            pod(),
            quota({"count/pods": "3"}, {"count/pods": "3"}),
            exceeded("count/pods=1", "count/pods=3", "count/pods=3"),
        ),
        # extended resources count only with the prefix requests.
        (
            pod({"nvidia.com/gpu": "2"}),
            quota({"requests.nvidia.com/gpu": "1"}),
            exceeded("requests.nvidia.com/gpu=2", "requests.nvidia.com/gpu=0", "requests.nvidia.com/gpu=1"),
        ),
        (pod({"nvidia.com/gpu": "2"}), quota({"nvidia.com/gpu": "1"}), None),
        (
            pod({"hugepages-2Mi": "8Mi"}),
            quota({"hugepages-2Mi": "4Mi"}),
            exceeded("hugepages-2Mi=8Mi", "hugepages-2Mi=0", "hugepages-2Mi=4Mi"),
        ),
        # the overhead of the runtime class counts, also for limits
        (
            pod({"cpu": "1"}, {"cpu": "1"}, overhead={"cpu": "250m"}),
            quota({"limits.cpu": "1"}),
            exceeded("limits.cpu=1250m", "limits.cpu=0", "limits.cpu=1"),
        ),
        # a quota on CPU or memory requires a request or limit; a quota on other resources does not
        (pod({"cpu": "1"}), quota({"limits.cpu": "9", "memory": "9Gi"}),
         "failed quota: q: must specify limits.cpu for: c; memory for: c"),
        (pod(), quota({"requests.ephemeral-storage": "1Gi", "requests.nvidia.com/gpu": "1"}), None),
        (pod(resources={"limits": {"cpu": "1"}}), quota({"limits.cpu": "2"}), None),
        # the status has no used resources yet
        (
            pod({"cpu": "1"}),
            msgspec.convert({"metadata": {"name": "q"}, "status": {"hard": {"cpu": "1", "pods": "1"}}}, ResourceQuota),
            "status unknown for quota: q, resources: cpu,pods",
        ),
        (pod(), quota({"services": "0", "requests.storage": "0"}), None),
    ],
)  # fmt: skip
def test_resources_that_a_quota_counts(new_pod: Pod, quotas_of_namespace: ResourceQuota, expected: str | None) -> None:
    assert refusal(new_pod, quotas_of_namespace) == expected


FULL: Manifest = {"pods": "0"}
FULL_TEXT = exceeded("pods=1", "pods=0", "pods=0")
ELSEWHERE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaces": ["other"]}]
    }
}


def priority_class_scope(operator: str, *values: str) -> Manifest:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [expression]}}


@pytest.mark.parametrize(
    ("new_pod", "scope", "is_in"),
    [
        (pod(activeDeadlineSeconds=9), {"scopes": ["Terminating"]}, True),
        (pod(), {"scopes": ["Terminating"]}, False),
        (pod(), {"scopes": ["NotTerminating"]}, True),
        (pod(), {"scopes": ["BestEffort"]}, True),
        (pod(limits={"memory": "1"}), {"scopes": ["BestEffort"]}, False),
        (pod(limits={"memory": "1"}), {"scopes": ["NotBestEffort", "NotTerminating"]}, True),
        (pod(limits={"memory": "1"}), {"scopes": ["NotBestEffort", "Terminating"]}, False),
        (pod(affinity=ELSEWHERE), {"scopes": ["CrossNamespacePodAffinity"]}, True),
        (pod(), {"scopes": ["CrossNamespacePodAffinity"]}, False),
        (pod(priorityClassName="high"), priority_class_scope("In", "high", "low"), True),
        (pod(), priority_class_scope("In", "high"), False),
        (pod(priorityClassName="high"), priority_class_scope("NotIn", "high"), False),
        (pod(), priority_class_scope("NotIn", "high"), True),
        (pod(priorityClassName="high"), priority_class_scope("Exists"), True),
        (pod(), priority_class_scope("Exists"), False),
        (pod(), priority_class_scope("DoesNotExist"), True),
        (pod(), {"scopes": ["VolumeAttributesClass"]}, False),
    ],
)
def test_scopes_of_a_quota(new_pod: Pod, scope: Manifest, is_in: bool) -> None:
    assert refusal(new_pod, quota(FULL, spec=scope)) == (FULL_TEXT if is_in else None)


CLAIM = msgspec.convert(
    {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "8Gi"}}},
    },
    PersistentVolumeClaim,
)


@pytest.mark.parametrize(
    "resource", ["requests.storage", "gold.storageclass.storage.k8s.io/requests.storage"], ids=["all", "of its class"]
)
def test_quotas_of_claims(resource: str) -> None:
    storage_quota = quota({resource: "10Gi"}, {resource: "5Gi"})
    assert refusal(CLAIM, storage_quota) == (exceeded(f"{resource}=8Gi", f"{resource}=5Gi", f"{resource}=10Gi"))
    assert refusal(CLAIM, quota({"silver.storageclass.storage.k8s.io/requests.storage": "1"})) is None


@pytest.mark.parametrize(
    ("operator", "values", "is_in"),
    [("In", ["gold"], True), ("In", ["silver"], False), ("NotIn", ["gold"], False), ("Exists", [], True)],
)
def test_a_quota_of_volume_attributes_classes(operator: str, values: list[str], is_in: bool) -> None:
    claim = msgspec.structs.replace(
        CLAIM, spec=msgspec.structs.replace(CLAIM.spec, volume_attributes_class_name="gold")
    )
    scope = {"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}
    new_quota = quota({"requests.storage": "1Gi"}, spec={"scopeSelector": {"matchExpressions": [scope]}})
    assert (refusal(claim, new_quota) is not None) is is_in
    assert refusal(pod({"cpu": "1"}), new_quota) is None


def test_a_quota_without_status_counts_existing_pods() -> None:
    new_quota = msgspec.structs.replace(quota({"cpu": "2", "pods": "9"}), status=ResourceQuota().status)
    assert refusal(pod({"cpu": "2"}), new_quota) is None
    counted = with_status(new_quota, [pod({"cpu": "500m"}), pod({"cpu": "1"})], pod_level_resources=True)
    assert counted.status.used == {"cpu": "1500m", "pods": "2"}
    assert charge(counted, pod({"cpu": "500m"}), pod_level_resources=True).status.used == {"cpu": "2", "pods": "3"}
    assert refusal(pod({"cpu": "1"}), counted) == (exceeded("cpu=1", "cpu=1500m", "cpu=2"))
