"""Advice for a driver that provisions no volume for a claim, from its message about the claim and its own pods."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from kschedx.controllers.daemon_set import is_running
from kschedx.explain.claim_causes import wrong_attributes_class
from kschedx.fixes.phrases import join_phrases
from kschedx.kube.names import PRESENT_TOPOLOGY
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.storage import (
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    identifying_parts,
    is_csi_name,
    plugin_named,
)
from kschedx.kube.types import Node
from kschedx.snapshot.events import EXTERNAL_PROVISIONING
from kschedx.snapshot.snapshot import Snapshot


def provisioner_repair(snapshot: Snapshot, claim: PersistentVolumeClaim, driver: str) -> str:
    """Return advice that lets a driver provision the volume of a claim, from its message about the claim and the state
    of its own pods."""
    in_tree = plugin_named(driver)
    driver = driver if in_tree is None else in_tree.driver
    report = snapshot.failed_create("PersistentVolumeClaim", claim.metadata)
    phrase = "" if report is None else report.message
    if (wrong := wrong_attributes_class(snapshot, claim)) is not None:
        other = f"VolumeAttributesClass {wrong.meant}" if wrong.meant else f"a VolumeAttributesClass of {driver}"
        use = f"{'' if claim.is_new else 'delete and recreate '}claim {claim.key} with {other}"
        create = f"create VolumeAttributesClass {wrong.name} of {driver}"
        advice = create if wrong.is_missing and not wrong.meant else use
        return f"{advice}, so that {driver} provisions its volume"
    nodes = snapshot.storage.csi_nodes.values()
    nowhere = bool(nodes) and all(csi_driver.name != driver for node in nodes for csi_driver in node.spec.drivers)
    down = _provisioners_down(snapshot, driver)
    source = claim.spec.data_source_ref or claim.spec.data_source
    is_reported = re.search(_OF_DATA_SOURCE, phrase, re.IGNORECASE)
    if source and (is_reported or not (phrase or down or nowhere)):
        kind, name = source.get("kind"), source.get("name")
        advice = f"make {kind} {name} ready"
        if "not found" in phrase:
            advice = f"create {kind} {name}, or correct the data source"
        elif size := re.search(_OF_SIZE, phrase):
            text = format_quantity(int(size[1] or size[2]), Unit.BYTE)
            return f"delete and recreate claim {claim.key} with at least {text}, the size of {kind} {name}"
        elif "VolumePopulator" in phrase:
            advice = f"install the volume populator for data sources of kind {kind}"
        return f"{advice}, so that {driver} provisions the volume for claim {claim.key} from it"
    advice = _provisioning_text(phrase, claim.key, claim.storage_class, driver, down, nowhere=nowhere)
    return advice if in_tree is None else advice.replace(driver, f"{driver}, the successor of {in_tree.name}", 1)


_OF_SIZE = r"source is (\d+)$|is less than the size (\d+) for the source"
_OF_DATA_SOURCE = (
    r"data ?source|getting PVC \S+|is less than the size \d+ for the source|"
    r"snapshot \S+ (?:is )?not (?:ready|found|bound)"
)
OF_ACCESS_MODES = (
    r"MULTI_NODE|multi writer|access ?modes?\b.*(?:not supported|unsupported|invalid)|"
    r"only (?:accessmodes|supports? ReadWrite|(?:ReadWrite|SINGLE_NODE)\w+ (?:is |are )?supported)"
)
_PROVISIONING = (
    (OF_ACCESS_MODES,
     "recreate claim {claim} with an access mode that {driver} supports, or with a class of another driver"),
    (r"no topology key found on CSINode (?P<name>\S+)",
     "run the node plugin of {driver} on {name}, where it is not registered"),
    (r"claim\.?(?:spec\.)? ?selector is not supported",
     "delete and recreate claim {claim} without its selector, which {driver} does not support"),
    (_OF_DATA_SOURCE, "make the data source of claim {claim} ready"),
    (r'volumeattributesclass\S* "(?P<name>[^"]+)" not found', "create VolumeAttributesClass {name} of {driver}"),
    (r'storageclass\S* "(?P<name>[^"]+)" not found',
     "create StorageClass {name}, or delete and recreate claim {claim} with a class that exists"),
    (r'secrets? "(?P<name>[^"]+)" not found', "create Secret {name}, which {driver} needs"),
    (r"(?:satisfy|satisfies|match|matches) .{0,30}topolog",
     "restrict class {storage_class} to places where {driver} has storage (allowedTopologies)"),
    (r"resource ?exhausted|quota|limit ?exceeded|(?:insufficient|not enough|no) (?:free )?(?:capacity|space|storage)",
     "raise the storage quota of {driver}, or free capacity there"),
    (r"access ?denied|unauthorized|not authorized|permission ?denied|forbidden|credentials|authfail|\b40[13]\b",
     "give {driver} the permission that it lacks"),
    (r"invalid ?argument|(?:invalid|unknown|unsupported|missing).{0,40}parameter",
     "delete and recreate StorageClass {storage_class} with correct parameters"),
)  # fmt: skip
"""Patterns of the messages of a driver that does not provision a volume, and the advice for each."""


def _provisioning_text(
    report: str, claim: str, storage_class: str, driver: str, down: Sequence[str], *, nowhere: bool
) -> str:
    """Return advice for a volume that is not provisioned. `report` is the driver's message about the claim, `down` are
    the driver's pods that are not ready; `nowhere` is whether no node has registered the driver."""
    volume = f"the volume for claim {claim}"
    for words, advice in _PROVISIONING:
        if (match := re.search(words, report, re.IGNORECASE)) is not None:
            name = "the nodes" if nowhere and "{name}, where it is" in advice else match.groupdict().get("name", "")
            text = advice.format(claim=claim, driver=driver, name=name, storage_class=storage_class)
            return text if claim in text else f"{text}, so that {driver} provisions {volume}"
    behind = f" ({', '.join(down[:2])} {'is' if len(down) == 1 else 'are'} not ready)" if down else ""
    is_unlisted = nowhere and not behind and is_csi_name(driver)
    may_lack = is_unlisted or (report.startswith(EXTERNAL_PROVISIONING) and not behind)
    verb = "install or repair" if may_lack else "repair"
    behind = behind or (", which no CSINode lists" if is_unlisted else "")
    return f"{verb} {driver}{behind}, so that it provisions {volume}"


def is_in_trouble(snapshot: Snapshot, claim: PersistentVolumeClaim, driver: str) -> bool:
    """Whether an event or an unready pod explains why the claim has no volume yet; otherwise, the driver may not have
    seen it."""
    key = "PersistentVolumeClaim", claim.metadata.namespace, claim.name
    return key in snapshot.failed_creates or bool(_provisioners_down(snapshot, driver))


def _provisioners_down(snapshot: Snapshot, driver: str) -> list[str]:
    """Return pods that are not ready and, by their names, provision for the driver."""
    parts, pods = identifying_parts(driver), snapshot.pods
    rows = (row for row, name in enumerate(pods.names) if re.search("provisioner|controller", name))
    mine = (row for row in rows if parts & set(re.split("[.-]", f"{pods.namespaces[row]}-{pods.names[row]}")))
    ended = ("Succeeded", "Failed")
    return [pods.key(row) for row in mine if pods.phases[row] not in ended and not is_running(pods, row)]


_USUAL_DRIVERS = {
    ("gp2", "gp3", "io1", "io2"): "ebs.csi.aws.com",
    ("efs",): "efs.csi.aws.com",
    ("standard-rwo", "premium-rwo", "enterprise-rwo"): "pd.csi.storage.gke.io",
    ("managed-csi", "managed-premium"): "disk.csi.azure.com",
    ("azurefile",): "file.csi.azure.com",
    ("longhorn",): "driver.longhorn.io",
    ("rook-ceph-block",): "rook-ceph.rbd.csi.ceph.com",
    ("rook-cephfs",): "rook-ceph.cephfs.csi.ceph.com",
    ("local-path",): "rancher.io/local-path",
    ("openebs-hostpath",): "openebs.io/local",
    ("do-block-storage",): "dobs.csi.digitalocean.com",
    ("hcloud-volumes",): "csi.hetzner.cloud",
    ("linode-block-storage",): "linodebs.csi.linode.com",
}
"""The names of the classes that clouds and projects install, also with a suffix such as `-encrypted`, and their
provisioners."""


def usual_driver(name: str) -> str:
    """Return the provisioner of the classes that usually have this name; empty for other names."""
    drivers = (driver for names, driver in _USUAL_DRIVERS.items() for it in names if f"{name}-".startswith(f"{it}-"))
    return next(drivers, "")


def class_allowing(storage_class: StorageClass, node: Node) -> tuple[StorageClass, str] | None:
    """Return the class with the node's topology added to allowedTopologies, and that topology as labels, if the node
    has the labels that the class compares."""
    keys = dict.fromkeys(key for segment in storage_class.allowed_segments for key, _ in segment)
    labels = {key: node.metadata.labels[key] for key in keys if key in node.metadata.labels}
    if not keys or len(labels) < len(keys):
        return None
    values = (TopologySelectorLabelRequirement(key=key, values=(value,)) for key, value in labels.items())
    term = TopologySelectorTerm(match_label_expressions=tuple(values))
    wider = replace(storage_class, allowed_topologies=(*storage_class.allowed_topologies, term))
    text = ", ".join(f"{key}={value}" for key, value in labels.items())
    return wider, f"allow {text} in allowedTopologies of class {storage_class.name}"


def class_with_known_labels(storage_class: StorageClass, snapshot: Snapshot) -> tuple[StorageClass, str] | None:
    """Return the class with labels in allowedTopologies that nodes have instead of those that no node has, and the
    change as text: the present name of a label, or one by which the driver knows places, with the same value."""
    has, nodes = snapshot.cluster.label_values, snapshot.storage.csi_nodes.values()
    drivers = [driver for node in nodes for driver in node.spec.drivers if driver.name == storage_class.driver]
    of_driver = sorted({key for driver in drivers for key in driver.topology_keys})
    new_keys = dict[str, str]()
    for label in (label for term in storage_class.allowed_topologies for label in term.match_label_expressions):
        keys = () if has(label.key) else (PRESENT_TOPOLOGY.get(label.key, label.key), *of_driver)
        if meant := next((key for key in keys if {*label.values} & {*has(key)}), ""):
            new_keys[label.key] = meant
    if not new_keys:
        return None

    def renamed(term: TopologySelectorTerm) -> TopologySelectorTerm:
        labels = (replace(label, key=new_keys.get(label.key, label.key)) for label in term.match_label_expressions)
        return TopologySelectorTerm(match_label_expressions=tuple(labels))

    text = f"use label {join_phrases(tuple(new_keys.values()))} in allowedTopologies of class {storage_class.name}"
    terms = tuple(map(renamed, storage_class.allowed_topologies))
    return replace(storage_class, allowed_topologies=terms), f"{text}: no node has {join_phrases(tuple(new_keys))}"
