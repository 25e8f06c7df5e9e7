"""Pod Security admission: which pods a namespace's Pod Security Standard admits, in the API server's words.

Upstream: k8s.io/pod-security-admission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.kube.decoding import decode, encode
from kschedx.kube.field_errors import quote_go
from kschedx.kube.scalars import Int64, parse_int64
from kschedx.kube.types import Container, Labels, Pod, PodOS
from kschedx.patterns import lazy_pattern

# A pod's security settings: schedulers ignore them, Pod Security evaluates them.
# They are decoded from manifests and templates in questions, never from the pods of a cluster. Upstream: core/v1.


class _SELinuxOptions(Struct, frozen=True, kw_only=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class _SecurityProfile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A seccomp or AppArmor profile."""

    type: str = ""
    localhost_profile: str | None = None


class _WindowsOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class _Sysctl(Struct, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class _Capabilities(Struct, frozen=True, kw_only=True):
    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class _SharedContext(Struct, frozen=True, kw_only=True, rename="camel"):
    """Fields that a container may override."""

    se_linux_options: _SELinuxOptions | None = None
    windows_options: _WindowsOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: _SecurityProfile | None = None
    app_armor_profile: _SecurityProfile | None = None


class _PodSecurityContext(_SharedContext, frozen=True, kw_only=True, rename="camel"):
    supplemental_groups: tuple[Int64, ...] | None = None
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str | None = None
    se_linux_change_policy: str | None = None
    sysctls: tuple[_Sysctl, ...] = ()


class _SecurityContext(_SharedContext, frozen=True, kw_only=True, rename="camel"):
    capabilities: _Capabilities | None = None
    privileged: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None


class _ProbeAction(Struct, frozen=True, kw_only=True):
    host: str = ""


class _Handler(Struct, frozen=True, kw_only=True, rename="camel"):
    """The handler of a probe or lifecycle hook."""

    http_get: _ProbeAction | None = None
    tcp_socket: _ProbeAction | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(action.host for action in (self.http_get, self.tcp_socket) if action is not None and action.host)


class _Lifecycle(Struct, frozen=True, kw_only=True, rename="camel"):
    post_start: _Handler | None = None
    pre_stop: _Handler | None = None


class _VolumeMount(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    mount_path: str = ""


class KubeletContainer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A container of any kind, with its mounts and the fields that Pod Security reads besides its ports."""

    name: str = ""
    volume_mounts: tuple[_VolumeMount, ...] = ()
    security_context: _SecurityContext | None = None
    liveness_probe: _Handler | None = None
    readiness_probe: _Handler | None = None
    startup_probe: _Handler | None = None
    lifecycle: _Lifecycle | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that its probes and lifecycle hooks connect to, other than the pod itself."""
        steps = () if self.lifecycle is None else (self.lifecycle.post_start, self.lifecycle.pre_stop)
        handlers = (self.liveness_probe, self.readiness_probe, self.startup_probe, *steps)
        return frozenset(host for handler in handlers if handler is not None for host in handler.hosts)


class _Rights(Struct, frozen=True, kw_only=True, rename="camel"):
    """The security settings of a pod's spec."""

    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: _PodSecurityContext | None = None


# Other fields for the kubelet. They are decoded from manifests in questions, never from the pods of a cluster.

VolumeSource = Mapping[str, object]  # a volume in a manifest: its name, and a source under each of its other keys


class KubeletSpec(_Rights, frozen=True, kw_only=True, rename="camel"):
    volumes: tuple[VolumeSource, ...] = ()
    containers: tuple[KubeletContainer, ...] = ()
    init_containers: tuple[KubeletContainer, ...] = ()
    ephemeral_containers: tuple[KubeletContainer, ...] = ()
    service_account_name: str = ""
    os: PodOS | None = None


class KubeletFields(Struct, frozen=True, kw_only=True):
    """The kubelet's fields of a whole pod; empty if only what scheduling reads is known."""

    spec: KubeletSpec = field(default_factory=KubeletSpec)


def kubelet_spec(manifest: Mapping[str, object]) -> KubeletSpec:
    return decode(encode(manifest, "pod"), KubeletFields).spec


# What Pod Security evaluates of a pod or template.

_APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"  # followed by the container's name

_PROFILES: Mapping[str, _SecurityProfile] = {
    "unconfined": _SecurityProfile(type="Unconfined"),
    "runtime/default": _SecurityProfile(type="RuntimeDefault"),
}
_LOCALHOST = "localhost/"


class _JudgedContainer(Struct, frozen=True, kw_only=True):
    name: str
    context: _SecurityContext
    host_ports: frozenset[int]
    hosts: frozenset[str]


class _PodSecurityView(Struct, frozen=True, kw_only=True):
    annotations: Labels
    is_windows: bool
    host_network: bool
    host_pid: bool
    host_ipc: bool
    has_own_users: bool  # whether it has its own user namespace: hostUsers is false
    context: _PodSecurityContext
    volumes: tuple[VolumeSource, ...]
    containers: tuple[_JudgedContainer, ...]  # init containers, containers, and ephemeral containers


def security_view(pod: Pod, kubelet: KubeletSpec, *, is_template: bool = False) -> _PodSecurityView:
    """`pod` has its defaults; `kubelet` has the other fields of its manifest."""
    spec = pod.spec
    is_windows = kubelet.os is not None and kubelet.os.name == "windows"
    context = kubelet.security_context or _PodSecurityContext()
    containers = (
        *_pair_containers(spec.init_containers, kubelet.init_containers),
        *_pair_containers(spec.containers, kubelet.containers),
        *_pair_containers((), kubelet.ephemeral_containers),
    )
    if not (is_template or is_windows):
        annotations, of_pod = pod.metadata.annotations, context.app_armor_profile
        containers = tuple(_with_profile(container, annotations, of_pod) for container in containers)
    return _PodSecurityView(
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


def _pair_containers(
    containers: Sequence[Container], secured: Sequence[KubeletContainer]
) -> Iterator[_JudgedContainer]:
    for index, container in enumerate(secured):
        ports = containers[index].ports if index < len(containers) else ()
        yield _JudgedContainer(
            name=container.name,
            context=container.security_context or _SecurityContext(),
            host_ports=frozenset(port.host_port for port in ports if port.host_port),
            hosts=container.hosts,
        )


def _with_profile(
    container: _JudgedContainer, annotations: Labels, of_pod: _SecurityProfile | None
) -> _JudgedContainer:
    """Return the container with the AppArmor profile of an annotation, as a pod is stored (applyAppArmorVersionSkew in
    pkg/registry/core/pod/strategy.go)."""
    written = annotations.get(f"{_APP_ARMOR_ANNOTATION}{container.name}")
    if written is None or container.context.app_armor_profile is not None:
        return container
    profile = _PROFILES.get(written)
    name = written.removeprefix(_LOCALHOST)
    if name != written and name and name == name.strip():
        profile = _SecurityProfile(type="Localhost", localhost_profile=name)
    if profile is None or profile == of_pod:
        return container
    return replace(container, context=replace(container.context, app_armor_profile=profile))


# A namespace's labels for Pod Security admission. Upstream: api/helpers.go and api/constants.go.

PREFIX = "pod-security.kubernetes.io/"
_LATEST = "latest"
_VERSION = lazy_pattern(r"v1\.(0|[1-9][0-9]*)")


class PodSecurityLevel(IntEnum):
    """Levels, least strict first."""

    PRIVILEGED = 0
    BASELINE = 1
    RESTRICTED = 2

    def __str__(self) -> str:
        return self.name.lower()


_LEVELS: Mapping[str, PodSecurityLevel] = {str(level): level for level in PodSecurityLevel}


class LevelVersion(Struct, frozen=True):
    level: PodSecurityLevel = PodSecurityLevel.PRIVILEGED
    minor: int | None = None  # the minor version of Kubernetes 1; None is the API server's newest

    def __str__(self) -> str:
        return f"{self.level}:{_LATEST if self.minor is None else f'v1.{self.minor}'}"


class NamespacePolicy(Struct, frozen=True, kw_only=True):
    enforce: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


def policy_of(labels: Mapping[str, str]) -> NamespacePolicy:
    """Return the policy of a namespace, with the API server's built-in defaults. An invalid level counts as restricted
    with the newest version; for warnings, as privileged."""
    enforce, is_level = _read(labels, "enforce", PodSecurityLevel.RESTRICTED)
    warn, _ = _read(labels, "warn", PodSecurityLevel.PRIVILEGED)
    if f"{PREFIX}warn" not in labels and is_level and enforce.level > warn.level:
        has_version = f"{PREFIX}warn-version" in labels
        warn = LevelVersion(enforce.level, warn.minor if has_version else enforce.minor)
    return NamespacePolicy(enforce=enforce, warn=warn)


def _read(labels: Mapping[str, str], mode: str, unreadable: PodSecurityLevel) -> tuple[LevelVersion, bool]:
    """Return the level of a mode, and whether a label sets it."""
    written = labels.get(f"{PREFIX}{mode}")
    level = PodSecurityLevel.PRIVILEGED if written is None else _LEVELS.get(written, unreadable)
    version = _VERSION.fullmatch(labels.get(f"{PREFIX}{mode}-version", _LATEST))
    return LevelVersion(level, parse_int64(version[1]) if version else None), written in _LEVELS


# The checks of the Pod Security Standards: each returns a pod's violation, or None. Upstream: policy/check_*.go.


class _Edition(Struct, frozen=True, kw_only=True):
    """The version of the standards that applies."""

    minor: int
    relaxes_own_users: bool = False  # behind UserNamespacesPodSecurityStandards before 1.35, then always

    def lets_pass(self, pod: _PodSecurityView) -> bool:
        """Root in the pod's own user namespace has no rights on the node."""
        return pod.has_own_users and (self.relaxes_own_users or self.minor >= _OWN_USERS)


class Violation(Struct, frozen=True, kw_only=True):
    reason: str  # what a check forbids: `hostPath volumes`
    detail: str  # the part of the pod that violates it: `volume "logs"`

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


_PodSecurityRule = Callable[[_PodSecurityView, _Edition], Violation | None]

_OWN_USERS = 35
_WINDOWS = 25  # the version since which Windows pods are exempt from checks of Linux fields

_ALLOWED_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
"""Allowed by baseline."""
_NET_BIND_SERVICE = "NET_BIND_SERVICE"  # the only capability that restricted allows
ALL = "ALL"
_PROFILE_TYPES = ("RuntimeDefault", "Localhost")  # the allowed types of seccomp and AppArmor profiles

_SYSCTLS: Mapping[str, int] = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
"""Allowed sysctls, and since which version."""
_SE_LINUX_TYPES: Mapping[str, int] = {
    "": 0,
    "container_t": 0,
    "container_init_t": 0,
    "container_kvm_t": 0,
    "container_engine_t": 31,
}
_VOLUME_TYPES = frozenset({
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
})  # fmt: skip
"""Allowed by restricted."""
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_OLD_SECCOMP = ("runtime/default", "docker/default")


# --- baseline


def _app_armor(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    types, setters = _forbidden_types(pod, lambda context: context.app_armor_profile)
    annotations = sorted(
        f"{key}={quote_go(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR_ANNOTATION)
        and value not in ("", _OLD_SECCOMP[0])
        and not value.startswith(_LOCALHOST)
    )
    if annotations:
        setters.append(_plural("annotation", annotations))
    if not setters:
        return None
    profiles = [*types, *annotations]
    return Violation(
        reason=_plural("forbidden AppArmor profile", profiles),
        detail=f"{' and '.join(setters)} must not set AppArmor profile type to {_names(profiles)}",
    )


def _baseline_capabilities(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    bad, forbidden = _added_capabilities(pod, _ALLOWED_CAPABILITIES)
    if not bad:
        return None
    detail = f"{_containers(bad)} must not include {_names(forbidden)} in securityContext.capabilities.add"
    return Violation(reason="non-default capabilities", detail=detail)


def _host_namespaces(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    shared = {"hostNetwork": pod.host_network, "hostPID": pod.host_pid, "hostIPC": pod.host_ipc}
    texts = [f"{name}=true" for name, is_shared in shared.items() if is_shared]
    return Violation(reason="host namespaces", detail=", ".join(texts)) if texts else None


def _host_path_volumes(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    names = [_name(volume) for volume in pod.volumes if volume.get("hostPath") is not None]
    if not names:
        return None
    return Violation(reason="hostPath volumes", detail=f"{_plural('volume', names)} {_names(names)}")


def _host_ports(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    bad = [container.name for container in pod.containers if container.host_ports]
    ports = sorted({str(port) for container in pod.containers for port in container.host_ports})
    if not bad:
        return None
    detail = f"{_containers(bad)} {_uses(bad)} {_plural('hostPort', ports)} {', '.join(ports)}"
    return Violation(reason="hostPort", detail=detail)


def _hosts_of_probes(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    bad = sorted({container.name for container in pod.containers if container.hosts})
    hosts = sorted({host for container in pod.containers for host in container.hosts})
    if not bad:
        return None
    detail = f"{_containers(bad)} {_uses(bad)} {_plural('probe or lifecycle host', hosts)} {_names(hosts)}"
    return Violation(reason="probe or lifecycle host", detail=detail)


def _privileged(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    bad = [container.name for container in pod.containers if container.context.privileged]
    return _must_not("privileged", [_containers(bad)] if bad else [], "set securityContext.privileged=true")


def _baseline_proc_mount(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    return None if edition.lets_pass(pod) else _proc_mount(pod, edition)


def _proc_mount(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    mounts = {container.name: container.context.proc_mount for container in pod.containers}
    bad = [name for name, mount in mounts.items() if mount not in (None, "Default")]
    if not bad:
        return None
    values = sorted({mounts[name] or "" for name in bad})
    return Violation(
        reason="procMount", detail=f"{_containers(bad)} must not set securityContext.procMount to {_names(values)}"
    )


def _se_linux(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    def is_bad(options: _SELinuxOptions | None) -> bool:
        return options is not None and bool(
            _is_new(_SE_LINUX_TYPES, options.type, edition) or options.user or options.role
        )

    setters = _setters(pod, lambda context: is_bad(context.se_linux_options))
    if not setters:
        return None
    contexts = (pod.context, *(container.context for container in pod.containers))
    bad = [options for context in contexts if (options := context.se_linux_options) is not None and is_bad(options)]
    types = sorted({options.type for options in bad if _is_new(_SE_LINUX_TYPES, options.type, edition)})
    data = [f"{_plural('type', types)} {_names(types)}"] if types else []
    data += ["user may not be set"] if any(options.user for options in bad) else []
    data += ["role may not be set"] if any(options.role for options in bad) else []
    detail = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Violation(reason="seLinuxOptions", detail=detail)


def _baseline_seccomp(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    return _seccomp_annotations(pod) if edition.minor < 19 else _bad_seccomp(pod)


def _sysctls(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    bad = [sysctl.name for sysctl in pod.context.sysctls if _is_new(_SYSCTLS, sysctl.name, edition)]
    return Violation(reason="forbidden sysctls", detail=", ".join(bad)) if bad else None


def _windows_host_process(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    def is_bad(context: _SharedContext) -> bool:
        return context.windows_options is not None and bool(context.windows_options.host_process)

    return _must_not("hostProcess", _setters(pod, is_bad), "set securityContext.windowsOptions.hostProcess=true")


# --- restricted


def _allow_privilege_escalation(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    bad = [container.name for container in pod.containers if container.context.allow_privilege_escalation is not False]
    if not bad or _is_windows(pod, edition):
        return None
    return Violation(
        reason="allowPrivilegeEscalation != false",
        detail=f"{_containers(bad)} must set securityContext.allowPrivilegeEscalation=false",
    )


def _restricted_capabilities(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    if _is_windows(pod, edition):
        return None
    missing = [container.name for container in pod.containers if ALL not in _dropped_capabilities(container)]
    bad, forbidden = _added_capabilities(pod, frozenset({_NET_BIND_SERVICE}))
    phrases = [f'{_containers(missing)} must set securityContext.capabilities.drop=["ALL"]'] if missing else []
    if bad:
        phrases.append(f"{_containers(bad)} must not include {_names(forbidden)} in securityContext.capabilities.add")
    return Violation(reason="unrestricted capabilities", detail="; ".join(phrases)) if phrases else None


def _restricted_volumes(pod: _PodSecurityView, _: _Edition) -> Violation | None:
    bad: list[str] = []
    types: set[str] = set()
    for volume in pod.volumes:
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if sources and _VOLUME_TYPES.isdisjoint(sources):  # a volume without a source is an emptyDir
            bad.append(_name(volume))
            types.add(sources[0])
    if not bad:
        return None
    kinds = sorted(types)
    text = f"{_plural('restricted volume type', kinds)} {_names(kinds)}"
    return Violation(
        reason="restricted volume types", detail=f"{_plural('volume', bad)} {_names(bad)} {_uses(bad)} {text}"
    )


def _run_as_non_root(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    if edition.lets_pass(pod):
        return None
    reason, of_pod = "runAsNonRoot != true", pod.context.run_as_non_root
    setters = _setters(pod, lambda context: context.run_as_non_root is False)
    silent = [it.name for it in pod.containers if it.context.run_as_non_root is None and not of_pod]
    if setters or not silent:
        return _must_not(reason, setters, "set securityContext.runAsNonRoot=false")
    return Violation(reason=reason, detail=f"pod or {_containers(silent)} must set securityContext.runAsNonRoot=true")


def _run_as_user(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    if edition.lets_pass(pod):
        return None
    return _must_not("runAsUser=0", _setters(pod, lambda context: context.run_as_user == 0), "set runAsUser=0")


def _restricted_seccomp(pod: _PodSecurityView, edition: _Edition) -> Violation | None:
    if _is_windows(pod, edition):
        return None
    explicit = _bad_seccomp(pod)
    if explicit is not None or pod.context.seccomp_profile is not None:
        return explicit
    silent = [container.name for container in pod.containers if container.context.seccomp_profile is None]
    if not silent:
        return None
    allowed = '"RuntimeDefault" or "Localhost"'
    detail = f"pod or {_containers(silent)} must set securityContext.seccompProfile.type to {allowed}"
    return Violation(reason="seccompProfile", detail=detail)


# --- shared by several checks


def _bad_seccomp(pod: _PodSecurityView) -> Violation | None:
    types, setters = _forbidden_types(pod, lambda context: context.seccomp_profile)
    return _must_not("seccompProfile", setters, f"set securityContext.seccompProfile.type to {_names(types)}")


def _forbidden_types(
    pod: _PodSecurityView, profile_of: Callable[[_SharedContext], _SecurityProfile | None]
) -> tuple[list[str], list[str]]:
    """Return the types of profiles that are not allowed, and what sets them: the pod, and containers."""

    def is_bad(context: _SharedContext) -> bool:
        profile = profile_of(context)
        return profile is not None and profile.type not in _PROFILE_TYPES

    profiles = map(profile_of, (pod.context, *(container.context for container in pod.containers)))
    types = {profile.type for profile in profiles if profile is not None} - {*_PROFILE_TYPES}
    return sorted(types), _setters(pod, is_bad)


def _setters(pod: _PodSecurityView, is_bad: Callable[[_SharedContext], bool]) -> list[str]:
    """Return what sets something that is not allowed: the pod, and containers."""
    bad = [container.name for container in pod.containers if is_bad(container.context)]
    return [*(["pod"] if is_bad(pod.context) else []), *([_containers(bad)] if bad else [])]


def _must_not(reason: str, setters: Sequence[str], what: str) -> Violation | None:
    return Violation(reason=reason, detail=f"{' and '.join(setters)} must not {what}") if setters else None


def _seccomp_annotations(pod: _PodSecurityView) -> Violation | None:
    keys = {_SECCOMP_OF_POD, *(f"{_SECCOMP_OF_CONTAINER}{container.name}" for container in pod.containers)}
    phrases = sorted(
        f"{key}={quote_go(pod.annotations[key])}"
        for key in keys & pod.annotations.keys()
        if pod.annotations[key] not in _OLD_SECCOMP and not pod.annotations[key].startswith(_LOCALHOST)
    )
    if not phrases:
        return None
    return Violation(reason="seccompProfile", detail=f"forbidden {_plural('annotation', phrases)} {', '.join(phrases)}")


def _added_capabilities(pod: _PodSecurityView, allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return the containers that add capabilities beyond the allowed ones, and these capabilities."""
    bad: list[str] = []
    forbidden: set[str] = set()
    for container in pod.containers:
        capabilities = container.context.capabilities
        beyond = set() if capabilities is None else {*(capabilities.add or ())} - allowed
        if beyond:
            bad.append(container.name)
            forbidden |= beyond
    return bad, sorted(forbidden)


def _dropped_capabilities(container: _JudgedContainer) -> tuple[str, ...]:
    capabilities = container.context.capabilities
    return () if capabilities is None else capabilities.drop or ()


def _is_windows(pod: _PodSecurityView, edition: _Edition) -> bool:
    return pod.is_windows and edition.minor >= _WINDOWS


def _is_new(allowed: Mapping[str, int], value: str, edition: _Edition) -> bool:
    """Return whether the version does not allow the value (yet)."""
    return value not in allowed or allowed[value] > edition.minor


def _name(volume: Mapping[str, object]) -> str:
    return str(volume.get("name") or "")


def _containers(names: Sequence[str]) -> str:
    return f"{_plural('container', names)} {_names(names)}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(word: str, of: Sequence[str]) -> str:
    return word if len(of) == 1 else f"{word}s"


def _uses(of: Sequence[str]) -> str:
    return "uses" if len(of) == 1 else "use"


# The checks of each level by version, and their results. Upstream: policy/registry.go and policy/checks.go.


class _PodSecurityCheck(Struct, frozen=True, kw_only=True):
    name: str
    rule: _PodSecurityRule
    level: PodSecurityLevel = PodSecurityLevel.BASELINE
    since: int = 0  # the first minor version of Kubernetes 1 with it
    overrides: str = ""  # the baseline check that it replaces


_restricted = partial(_PodSecurityCheck, level=PodSecurityLevel.RESTRICTED)

_CHECKS = (
    _PodSecurityCheck(name="appArmorProfile", rule=_app_armor),
    _PodSecurityCheck(name="capabilities_baseline", rule=_baseline_capabilities),
    _PodSecurityCheck(name="hostNamespaces", rule=_host_namespaces),
    _PodSecurityCheck(name="hostPathVolumes", rule=_host_path_volumes),
    _PodSecurityCheck(name="hostPorts", rule=_host_ports),
    _PodSecurityCheck(name="hostProbesAndHostLifecycle", rule=_hosts_of_probes, since=34),
    _PodSecurityCheck(name="privileged", rule=_privileged),
    _PodSecurityCheck(name="procMount", rule=_baseline_proc_mount),
    _PodSecurityCheck(name="seLinuxOptions", rule=_se_linux),
    _PodSecurityCheck(name="seccompProfile_baseline", rule=_baseline_seccomp),
    _PodSecurityCheck(name="sysctls", rule=_sysctls),
    _PodSecurityCheck(name="windowsHostProcess", rule=_windows_host_process),
    _restricted(name="allowPrivilegeEscalation", rule=_allow_privilege_escalation, since=8),
    _restricted(
        name="capabilities_restricted", rule=_restricted_capabilities, since=22, overrides="capabilities_baseline"
    ),
    _restricted(name="procMount_restricted", rule=_proc_mount, since=35, overrides="procMount"),
    _restricted(name="restrictedVolumes", rule=_restricted_volumes, overrides="hostPathVolumes"),
    _restricted(name="runAsNonRoot", rule=_run_as_non_root),
    _restricted(name="runAsUser", rule=_run_as_user, since=23),
    _restricted(
        name="seccompProfile_restricted", rule=_restricted_seccomp, since=19, overrides="seccompProfile_baseline"
    ),
)
"""In the order of reports: baseline first, each level by name."""


class Standards(Struct, frozen=True, kw_only=True):
    """The API server's version of the standards."""

    minor: int
    relaxes_own_users: bool = False  # UserNamespacesPodSecurityStandards

    def edition(self, wanted: LevelVersion) -> _Edition:
        """A version newer than the API server counts as the API server's."""
        minor = self.minor if wanted.minor is None else min(wanted.minor, self.minor)
        return _Edition(minor=minor, relaxes_own_users=self.relaxes_own_users)


def violations(pod: _PodSecurityView, wanted: LevelVersion, standards: Standards) -> tuple[Violation, ...]:
    """Return a pod's violations of a level, in the order of reports."""
    edition = standards.edition(wanted)
    results = (check.rule(pod, edition) for check in _checks(wanted.level, edition.minor))
    return tuple(violation for violation in results if violation is not None)


def violations_text(violations_found: tuple[Violation, ...]) -> str:
    return ", ".join(map(str, violations_found))


def _checks(level: PodSecurityLevel, minor: int) -> Iterator[_PodSecurityCheck]:
    checks = [check for check in _CHECKS if check.level <= level and check.since <= minor]
    overridden = {check.overrides for check in checks}
    return (check for check in checks if check.name not in overridden)
