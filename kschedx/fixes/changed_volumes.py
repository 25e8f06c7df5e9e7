"""Changes of a volume that lacks the labels or the volumeMode of a claim, or whose node does not exist."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kschedx.fixes import steps as s
from kschedx.fixes.trial import RemedyCandidate
from kschedx.kube.documents import with_spec
from kschedx.kube.escaping import shell_command
from kschedx.kube.names import HOSTNAME
from kschedx.kube.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    required_node_affinity,
    terms_of,
)
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, VolumeNodeAffinity, bound_claim
from kschedx.kube.types import FILESYSTEM, Node
from kschedx.kube.typos import nearest_name
from kschedx.plugins.volume_binding.matching import SearchError, VolumeSearch
from kschedx.snapshot.storage import Storage


def fits_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Return whether the claim can be bound to the volume, on some node."""
    try:
        search = VolumeSearch(claim, Storage(volumes={volume.name: volume}), attributes_classes=True)
        return bool(search.fitting_volumes)
    except SearchError:
        return False


def changed_volumes(claim: PersistentVolumeClaim, storage: Storage, *, at_once: bool) -> Iterator[s.ObjectStep]:
    """Yield the smallest free volume of the claim's class that it matches after one change. The claim is bound to it
    `at_once`, or with the pod."""
    for volume in sorted(storage.volumes_of(claim.storage_class), key=lambda volume: (volume.size, volume.name)):
        selector, labels, mode = claim.spec.selector, volume.metadata.labels, claim.spec.volume_mode
        wanted = {} if selector is None else selector.match_labels
        lacking = {key: value for key, value in wanted.items() if key not in labels}
        kubectl: tuple[str, ...] = ()
        if lacking:
            changed = replace(volume, metadata=replace(volume.metadata, labels={**labels, **lacking}))
            title = f"label volume {volume.name} {', '.join(f'{key}={value}' for key, value in lacking.items())}"
            words = (word for label in lacking.items() for word in label)
            kubectl = (shell_command("kubectl label pv {}" + " {}={}" * len(lacking), volume.name, *words),)
        elif mode == FILESYSTEM or volume.spec.csi is not None or volume.spec.local is not None:
            changed = with_spec(volume, volume_mode=mode)
            title = f"delete and recreate volume {volume.name} with volumeMode {mode}, which the claim requests"
        else:
            continue
        if changed != volume and fits_claim(claim, changed):
            bound = (bound_claim(claim, volume.name),) if at_once else ()
            group = s.FixGroup.CLUSTER
            yield s.ObjectStep(title=title, group=group, objects=(changed, *bound), kubectl=kubectl)
            return


def stranded_volumes(claim: PersistentVolumeClaim, place: RemedyCandidate) -> Iterator[s.ObjectStep]:
    """Yield the free volumes on the disk of a node that does not exist, recreated on this one."""
    host = place.node.metadata.labels.get(HOSTNAME, "")
    for volume in place.snapshot.storage.volumes_of(claim.storage_class):
        needs = [need for term in terms_of(volume.required_node_affinity) for need in term.match_expressions]
        gone = [name for need in needs for name in need.values]
        is_elsewhere = {(need.key, need.operator) for need in needs} == {(HOSTNAME, "In")}
        is_free = volume.spec.is_on_node and volume.spec.claim_ref is None and fits_claim(claim, volume)
        if host and is_elsewhere and is_free and not is_on_any(volume, place.snapshot.cluster.nodes):
            need = SelectorRequirement(key=HOSTNAME, operator="In", values=(host,))
            terms = (NodeSelectorTerm(match_expressions=(need,)),)
            affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
            title = f"delete and recreate volume {volume.name} on {place.node.name}: no node has host name {gone[0]}"
            cost = s.Cost.TYPO if nearest_name(gone[0], [host]) else s.Cost.AROUND
            moved = with_spec(volume, node_affinity=affinity)
            yield s.ObjectStep(title=title, cost=cost, group=s.FixGroup.CLUSTER, objects=(moved,))


def is_on_any(volume: PersistentVolume, nodes: Iterable[Node]) -> bool:
    reach = required_node_affinity(None, volume.required_node_affinity)
    return any(reach.matches(node.metadata.labels, node.name) for node in nodes)
