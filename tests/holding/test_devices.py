"""The reported status of device pools for a pod with pending claims."""

from __future__ import annotations

import pytest

from tests.holding.objects import Json, holding_of, node, pod


def request(name: str, created: str, *pools: Json) -> Json:
    meta = {"name": name, "creationTimestamp": created}
    kind = {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourcePoolStatusRequest"}
    return {**kind, "metadata": meta, "spec": {"driver": "gpu.acme.io"}, "status": {"pools": list(pools)}}


def pool(name: str, available: int, **fields: object) -> Json:
    counts = {"totalDevices": 8, "allocatedDevices": 8 - available, "availableDevices": available}
    return {"driver": "gpu.acme.io", "poolName": name, "generation": 1, **counts, "unavailableDevices": 0, **fields}


NEW = request("new", "2026-06-02T00:00:00Z", pool("a", 0, nodeName="n"))
OLD = request("old", "2026-06-01T00:00:00Z", pool("a", 5), {"driver": "d", "poolName": "b", "validationError": "v"})


@pytest.mark.parametrize("order", [(NEW, OLD), (OLD, NEW)])
def test_the_newest_status_of_a_pool_counts(order: tuple[Json, Json]) -> None:
    target = pod(gates=(), labels={})
    target["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    texts = holding_of(node("n"), *order, target=target)["pools"]
    assert [(item["request"], item["pool"], item.get("available"), item.get("error")) for item in texts] == [
        ("new", "a", 0, None),
        ("old", "b", None, "v"),
    ]


def test_a_pod_without_claims_has_no_pools() -> None:
    assert "pools" not in holding_of(node("n"), NEW, target=pod(gates=("acme.io/license",), labels={}))
