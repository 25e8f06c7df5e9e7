"""What the devices of DRA drivers show about a request that they do not fulfill."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.explain.advice import FixGroup, RootCause, root_cause
from kschedx.explain.hardware import driver_of
from kschedx.findings import DeviceSelectorFailed, InsufficientResource
from kschedx.framework.cycle import Cycle
from kschedx.kube.typos import nearest_name
from kschedx.wording import list_names

_GATE = "DRAExtendedResource"


def unmapped_classes(cycle: Cycle, finding: InsufficientResource) -> Iterator[RootCause]:
    """Yield DeviceClasses for an extended resource in a version whose gate is off, or the one for the published devices
    of its vendor, which does not name the resource."""
    resource, devices, is_on = finding.resource, cycle.snapshot.devices, cycle.release.enabled(_GATE)
    if not finding.offered_nowhere:
        return
    drivers = {resource_slice.spec.driver for resource_slice in devices.slices if resource_slice.spec.devices}
    for name, device_class in sorted(devices.classes.items()):
        driver = driver_of(device_class.spec.selectors)
        if device_class.spec.extended_resource_name == resource and cycle.release.gates.get(_GATE) is False:
            text = f"DeviceClass {name} maps {resource} to devices only with feature gate {_GATE}, which is off"
            on = f"turn on feature gate {_GATE} in the control plane and the kubelets"
            title = f"{on}, or request the device with a ResourceClaim of class {name}"
            yield root_cause(text, title, group=FixGroup.CLUSTER)
        elif driver in drivers and driver.endswith(f".{resource.partition('/')[0]}"):
            text = f"driver {driver} publishes its devices for DRA, not as {resource}"
            claim = f"request a device of class {name} with a ResourceClaim instead of {resource}"
            mapping = f"set extendedResourceName: {resource} in DeviceClass {name}"
            is_open = is_on and not device_class.spec.extended_resource_name
            title = f"{mapping}, or {claim}" if is_open else claim
            yield root_cause(text, title, by_default=FixGroup.CLUSTER, leaves_no_node=True)
            return


def unpublished_attribute(cycle: Cycle, failed: DeviceSelectorFailed) -> Iterator[RootCause]:
    """Yield what a driver publishes instead of the attribute that a selector reads, unless it is only misspelled."""
    driver, missing = failed.device.partition("/")[0], failed.error.partition("no such key: ")[2]
    slices = (each for each in cycle.snapshot.devices.slices if each.spec.driver == driver)
    known = sorted(
        {name for each in slices for device in each.spec.devices for name in (*device.attributes, *device.capacity)}
    )
    if missing and missing not in known and not nearest_name(missing, known):
        text = f"devices of {driver} publish no {missing}: they have {list_names(known, 5, conjunction='and')}"
        yield root_cause(text, f"compare one of these in the selector of {failed.owner}")
