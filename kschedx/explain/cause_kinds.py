"""The kinds of causes behind a rejection, which `root_causes` finds in the cluster's objects."""

from __future__ import annotations

from msgspec import Struct


class RootCause(Struct, frozen=True, kw_only=True):
    text: str


class ResizePending(RootCause, frozen=True, kw_only=True):
    """kube-scheduler counts the larger of a pod's requests and the resources that its node has allocated."""

    pod: str
    node: str


class NoDevicesPublished(RootCause, frozen=True, kw_only=True):
    driver: str
    """Empty if the class does not name one."""


class PartitionedResource(RootCause, frozen=True, kw_only=True):
    """Nodes offer other resources of the same vendor instead of the requested one."""

    others: tuple[str, ...]


class DevicePluginDown(RootCause, frozen=True, kw_only=True):
    """Why a node's device plugin publishes nothing."""

    pod: str = ""
    """The plugin's pod, `namespace/name`, which is not ready; empty if the node has none."""
    daemon_set: str = ""
    """The DaemonSet, `namespace/name`, which creates no pod for the node."""
    taint: str = ""
    """The taint that keeps it off a node that it selects; empty if it does not select the node."""
    layout: str = ""
    """The MIG configuration that NVIDIA's MIG manager has not applied."""
    is_failed: bool = False
    """Whether the MIG manager has given up."""


class IncompletePool(RootCause, frozen=True, kw_only=True):
    """kube-scheduler uses no device of a pool until the driver has published all of its ResourceSlices."""

    pool: str
    """`driver/pool`."""


class DeviceClaimRefused(RootCause, frozen=True, kw_only=True):
    """Why kube-controller-manager creates no ResourceClaim from the pod's template."""

    lacks_admin_label: bool
    """Whether the namespace lacks the label that requests with admin access need."""


class MembersNotCreated(RootCause, frozen=True, kw_only=True):
    """Why the controller of a gang's pods creates no more of them."""

    message: str
    """What the API server refuses them with."""


class MatchingPodPending(RootCause, frozen=True, kw_only=True):
    """The pod that a podAffinity term selects is itself pending."""

    pod: str


class SelectorOfNamespace(RootCause, frozen=True, kw_only=True):
    """Admission adds the node selector of a namespace's annotation, or OpenShift's default, to each of its pods."""

    namespace: str
    annotation: str
    """The annotation with the selector, or the one that replaces the default."""


class PortOfService(RootCause, frozen=True, kw_only=True):
    """Pods of k3s' load balancer use a host port for each port of a Service."""

    ports: tuple[int, ...]
    service: str
    """`namespace/name`."""
    own_service: str
    """The pending pod's own Service, if the pod belongs to the load balancer as well."""


class VirtualNode(RootCause, frozen=True, kw_only=True):
    """A node without its own machine, which a provider creates only for certain pods."""

    key: str
    value: str
    provider: str
    node: str = ""
    """The node for which a DaemonSet created the pod; empty if the cluster has no other nodes."""


class DriverNotRegistered(RootCause, frozen=True, kw_only=True):
    """A node lacks the topology label of a volume, which the driver's node plugin sets."""

    driver: str
    node: str


class CapacityNotPublished(RootCause, frozen=True, kw_only=True):
    """The driver publishes no capacity for a storage class, which counts as no capacity."""

    driver: str
    storage_class: str


class SharedByHami(RootCause, frozen=True, kw_only=True):
    """A part of a device, which nodes do not publish: HAMi's scheduler counts it, and did not get the pod."""
