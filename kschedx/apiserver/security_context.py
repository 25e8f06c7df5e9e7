"""A pod's security settings: schedulers ignore them, Pod Security evaluates them.

They are decoded from manifests and templates in questions, never from the pods of a cluster. Upstream: core/v1.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.kube.scalars import Int64
from kschedx.kube.types import Container, Labels, Pod, PodOS


class SELinuxOptions(Struct, frozen=True, kw_only=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SecurityProfile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A seccomp or AppArmor profile."""

    type: str = ""
    localhost_profile: str | None = None


class WindowsOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class Sysctl(Struct, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class Capabilities(Struct, frozen=True, kw_only=True):
    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class SharedContext(Struct, frozen=True, kw_only=True, rename="camel"):
    """Fields that a container may override."""

    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: SecurityProfile | None = None
    app_armor_profile: SecurityProfile | None = None


class PodSecurityContext(SharedContext, frozen=True, kw_only=True, rename="camel"):
    supplemental_groups: tuple[Int64, ...] | None = None
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str | None = None
    se_linux_change_policy: str | None = None
    sysctls: tuple[Sysctl, ...] = ()


class SecurityContext(SharedContext, frozen=True, kw_only=True, rename="camel"):
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None


class HTTPGetAction(Struct, frozen=True, kw_only=True):
    host: str = ""


class TCPSocketAction(Struct, frozen=True, kw_only=True):
    host: str = ""


class Handler(Struct, frozen=True, kw_only=True, rename="camel"):
    """The handler of a probe or lifecycle hook."""

    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(action.host for action in (self.http_get, self.tcp_socket) if action is not None and action.host)


class Lifecycle(Struct, frozen=True, kw_only=True, rename="camel"):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


class SecuredContainer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A container of any kind, with the fields that Pod Security reads besides its ports."""

    name: str = ""
    security_context: SecurityContext | None = None
    liveness_probe: Handler | None = None
    readiness_probe: Handler | None = None
    startup_probe: Handler | None = None
    lifecycle: Lifecycle | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that its probes and lifecycle hooks connect to, other than the pod itself."""
        steps = () if self.lifecycle is None else (self.lifecycle.post_start, self.lifecycle.pre_stop)
        handlers = (self.liveness_probe, self.readiness_probe, self.startup_probe, *steps)
        return frozenset(host for handler in handlers if handler is not None for host in handler.hosts)


class Rights(Struct, frozen=True, kw_only=True, rename="camel"):
    """The security settings of a pod's spec."""

    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None


# Other fields for the kubelet. They are decoded from manifests in questions, never from the pods of a cluster.

VolumeSource = Mapping[str, object]
"""A volume in a manifest: its name, and a source under each of its other keys."""


class KubeletSpec(Rights, frozen=True, kw_only=True, rename="camel"):
    volumes: tuple[VolumeSource, ...] = ()
    containers: tuple[SecuredContainer, ...] = ()
    init_containers: tuple[SecuredContainer, ...] = ()
    ephemeral_containers: tuple[SecuredContainer, ...] = ()
    os: PodOS | None = None


class KubeletFields(Struct, frozen=True, kw_only=True):
    """The kubelet's fields of a whole pod; empty if only what scheduling reads is known."""

    spec: KubeletSpec = field(default_factory=KubeletSpec)


# What Pod Security evaluates of a pod or template.

APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
"""Followed by the container's name."""
WINDOWS = "windows"

_PROFILES: Mapping[str, SecurityProfile] = {
    "unconfined": SecurityProfile(type="Unconfined"),
    "runtime/default": SecurityProfile(type="RuntimeDefault"),
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
    """Whether it has its own user namespace: hostUsers is false."""
    context: PodSecurityContext
    volumes: tuple[VolumeSource, ...]
    containers: tuple[JudgedContainer, ...]
    """Init containers, containers, and ephemeral containers."""


def judged(pod: Pod, kubelet: KubeletSpec, *, is_template: bool = False) -> Judged:
    """`pod` has its defaults; `kubelet` has the other fields of its manifest."""
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
        containers = tuple(_with_profile(container, annotations, of_pod) for container in containers)
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
    for index, container in enumerate(secured):
        ports = containers[index].ports if index < len(containers) else ()
        yield JudgedContainer(
            name=container.name,
            context=container.security_context or SecurityContext(),
            host_ports=frozenset(port.host_port for port in ports if port.host_port),
            hosts=container.hosts,
        )


def _with_profile(container: JudgedContainer, annotations: Labels, of_pod: SecurityProfile | None) -> JudgedContainer:
    """Return the container with the AppArmor profile of an annotation, as a pod is stored (applyAppArmorVersionSkew in
    pkg/registry/core/pod/strategy.go)."""
    written = annotations.get(f"{APP_ARMOR_ANNOTATION}{container.name}")
    if written is None or container.context.app_armor_profile is not None:
        return container
    profile = _PROFILES.get(written)
    name = written.removeprefix(_LOCAL)
    if name != written and name and name == name.strip():
        profile = SecurityProfile(type="Localhost", localhost_profile=name)
    if profile is None or profile == of_pod:
        return container
    return replace(container, context=replace(container.context, app_armor_profile=profile))
