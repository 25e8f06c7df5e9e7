"""Changes of a volume that lacks the labels or the volumeMode of a claim."""

from collections.abc import Iterator

from msgspec.structs import replace

from kschedx.fixes import steps as s
from kschedx.kube.documents import with_spec
from kschedx.kube.escaping import shell_command
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, bound_claim
from kschedx.kube.types import FILESYSTEM
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
