"""The node group of a node, by labels, annotations, and names that clouds set."""

from __future__ import annotations

import pytest

from kschedx.autoscaler.node_groups import membership
from kschedx.kube.types import Node, NodeSpec, ObjectMeta

MIG = "https://www.googleapis.com/compute/v1/projects/p/zones/europe-west1-{}/instanceGroups/gke-prod-pool-1-{}-grp"


def node(
    name: str,
    provider_id: str = "",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
) -> Node:
    metadata = ObjectMeta(name=name, labels=labels or {}, annotations=annotations or {})
    return Node(metadata=metadata, spec=NodeSpec(provider_id=provider_id))


@pytest.mark.parametrize(
    ("item", "groups", "group"),
    [
        pytest.param(
            node("w-1", annotations={"machine.openshift.io/machine": "openshift-machine-api/ocp-a-x7k2p"}),
            ["MachineSet/openshift-machine-api/ocp-a", "MachineSet/openshift-machine-api/ocp-b"],
            "MachineSet/openshift-machine-api/ocp-a",
            id="OpenShift",
        ),
        pytest.param(
            node("ip-10-0-0-1", labels={"eks.amazonaws.com/nodegroup": "web"}),
            ["eks-web-62c4f0aa-11d2-4c0e-9f7e-30b1c2d4e5f6", "eks-webapp-72c4f0aa-11d2-4c0e-9f7e-30b1c2d4e5f6"],
            "eks-web-62c4f0aa-11d2-4c0e-9f7e-30b1c2d4e5f6",
            id="EKS",
        ),
        pytest.param(
            node("gke-prod-pool-1-2222bbbb-x7k2", labels={"cloud.google.com/gke-nodepool": "pool-1"}),
            [MIG.format("b", "1111aaaa"), MIG.format("c", "2222bbbb")],
            MIG.format("c", "2222bbbb"),
            id="GKE, a pool with a group in each zone",
        ),
        pytest.param(
            node(
                "aks-gpu-1234-vmss000001",
                "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/"
                "aks-gpu-1234-vmss/virtualMachines/1",
            ),
            ["aks-gpu-1234-vmss", "aks-web-1234-vmss"],
            "aks-gpu-1234-vmss",
            id="AKS",
        ),
        pytest.param(
            node("worker-1", labels={"kops.k8s.io/instancegroup": "nodes-eu-1a"}),
            ["nodes-eu-1a.prod.example.com", "nodes-eu-1b.prod.example.com"],
            "nodes-eu-1a.prod.example.com",
            id="kops",
        ),
        pytest.param(
            node(
                "md-0-abc12-x",
                annotations={
                    "cluster.x-k8s.io/owner-kind": "MachineSet",
                    "cluster.x-k8s.io/owner-name": "md-0-abc12",
                    "cluster.x-k8s.io/cluster-namespace": "fleet",
                },
            ),
            ["MachineDeployment/fleet/md-0", "MachineDeployment/fleet/md-1"],
            "MachineDeployment/fleet/md-0",
            id="Cluster API",
        ),
        pytest.param(
            node("shoot--team--prod-cpu-z1-5c9d8-2x", labels={"worker.gardener.cloud/pool": "cpu"}),
            ["shoot--team--prod.shoot--team--prod-cpu-z1", "shoot--team--prod.shoot--team--prod-cpu-z2"],
            "shoot--team--prod.shoot--team--prod-cpu-z1",
            id="Gardener",
        ),
        pytest.param(
            node("10.0.0.4", annotations={"oci.oraclecloud.com/node-pool-id": "ocid1.nodepool.oc1..aaaa"}),
            ["ocid1.nodepool.oc1..aaaa"],
            "ocid1.nodepool.oc1..aaaa",
            id="OKE",
        ),
        pytest.param(node("laptop"), ["web"], None, id="no group"),
        pytest.param(
            node("i-1", labels={"eks.amazonaws.com/nodegroup": "web"}),
            ["eks-web-62c4f0aa-11d2", "eks-web-72c4f0aa-11d2"],
            None,
            id="ambiguous",
        ),
    ],
)
def test_the_group_of_a_node_by_cloud(item: Node, groups: list[str], group: str | None) -> None:
    result = membership([item], groups)
    assert result.groups.get(item.name) == group
    assert bool(result.sources) == (group is not None)


def test_a_given_label_replaces_the_detection() -> None:
    result = node("web-1", labels={"team": "db"})
    assert membership([result], ["web", "db"], label="team").groups.get(result.name) == "db"
    assert membership([result], ["web", "db"], label="missing").groups.get(result.name) is None


def test_the_map_of_nodes_precedes_the_label() -> None:
    item = node("web-1", labels={"team": "db"})
    result = membership([item], ["web", "db"], label="team", group_by_node={"web-1": "web"})
    assert result.groups == {"web-1": "web"}
