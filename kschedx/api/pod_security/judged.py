"""What Pod Security looks at, of a pod or a template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.kubelet_fields import KubeletSpec, VolumeSource
from kschedx.api.security_context import PodSecurityContext, Profile, SecuredContainer, SecurityContext
from kschedx.api.types import Container, Labels, Pod

APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
"""With the container's name behind it."""
WINDOWS = "windows"

_PROFILES: Mapping[str, Profile] = {
    "unconfined": Profile(type="Unconfined"),
    "runtime/default": Profile(type="RuntimeDefault"),
}
_LOCAL = "localhost/"


class JudgedContainer(Struct, frozen=True, kw_only=True):
    name: str
    context: SecurityContext
    host_ports: frozenset[int]
    hosts: frozenset[str]


class Judged(Struct, frozen=True, kw_only=True):
    annotations: Labels
    is_windows: bool
    host_network: bool
    host_pid: bool
    host_ipc: bool
    has_own_users: bool
    """It is in a user namespace of its own: hostUsers is false."""
    context: PodSecurityContext
    volumes: tuple[VolumeSource, ...]
    containers: tuple[JudgedContainer, ...]
    """Init containers, the others, ephemeral ones."""


def judged(pod: Pod, kubelet: KubeletSpec, *, is_template: bool = False) -> Judged:
    """`pod` is as it would be stored, `kubelet` the rest of what its manifest says."""
    spec = pod.spec
    is_windows = kubelet.os is not None and kubelet.os.name == WINDOWS
    context = kubelet.security_context or PodSecurityContext()
    containers = (
        *_beside(spec.init_containers, kubelet.init_containers),
        *_beside(spec.containers, kubelet.containers),
        *_beside((), kubelet.ephemeral_containers),
    )
    if not (is_template or is_windows):
        annotations, of_pod = pod.metadata.annotations, context.app_armor_profile
        containers = tuple(_with_profile(one, annotations, of_pod) for one in containers)
    return Judged(
        annotations=pod.metadata.annotations,
        is_windows=is_windows,
        host_network=spec.host_network,
        host_pid=kubelet.host_pid,
        host_ipc=kubelet.host_ipc,
        has_own_users=spec.host_users is False,
        context=context,
        volumes=kubelet.volumes,
        containers=containers,
    )


def _beside(containers: Sequence[Container], secured: Sequence[SecuredContainer]) -> Iterator[JudgedContainer]:
    for index, one in enumerate(secured):
        ports = containers[index].ports if index < len(containers) else ()
        yield JudgedContainer(
            name=one.name,
            context=one.security_context or SecurityContext(),
            host_ports=frozenset(port.host_port for port in ports if port.host_port),
            hosts=one.hosts,
        )


def _with_profile(container: JudgedContainer, annotations: Labels, of_pod: Profile | None) -> JudgedContainer:
    """With the AppArmor profile that an annotation names, as a pod is stored (applyAppArmorVersionSkew in
    pkg/registry/core/pod/strategy.go)."""
    written = annotations.get(f"{APP_ARMOR_ANNOTATION}{container.name}")
    if written is None or container.context.app_armor_profile is not None:
        return container
    profile = _PROFILES.get(written)
    name = written.removeprefix(_LOCAL)
    if name != written and name and name == name.strip():
        profile = Profile(type="Localhost", localhost_profile=name)
    if profile is None or profile == of_pod:
        return container
    return replace(container, context=replace(container.context, app_armor_profile=profile))
