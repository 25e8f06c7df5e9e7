"""What a manifest says of the rights that a pod has on its node: no scheduler reads it, but Pod Security judges by it.

Decoded from manifests and templates that are asked about, never from the pods of a cluster. Upstream: core/v1.
"""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.api.integers import Int64


class SELinuxOptions(Struct, frozen=True, kw_only=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class Profile(Struct, frozen=True, kw_only=True, rename="camel"):
    """Of seccomp or of AppArmor."""

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


class _Shared(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a container may say anew."""

    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None


class PodSecurityContext(_Shared, frozen=True, kw_only=True, rename="camel"):
    supplemental_groups: tuple[Int64, ...] | None = None
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str | None = None
    se_linux_change_policy: str | None = None
    sysctls: tuple[Sysctl, ...] = ()


class SecurityContext(_Shared, frozen=True, kw_only=True, rename="camel"):
    """A container's."""

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
    """Of a probe, or of a step of a container's life."""

    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(one.host for one in (self.http_get, self.tcp_socket) if one is not None and one.host)


class Lifecycle(Struct, frozen=True, kw_only=True, rename="camel"):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


class SecuredContainer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A container of any kind, as Pod Security sees it beside its ports."""

    name: str = ""
    security_context: SecurityContext | None = None
    liveness_probe: Handler | None = None
    readiness_probe: Handler | None = None
    startup_probe: Handler | None = None
    lifecycle: Lifecycle | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """To which its probes and the steps of its life connect, where that is not the pod itself."""
        steps = () if self.lifecycle is None else (self.lifecycle.post_start, self.lifecycle.pre_stop)
        handlers = (self.liveness_probe, self.readiness_probe, self.startup_probe, *steps)
        return frozenset(host for handler in handlers if handler is not None for host in handler.hosts)


class Rights(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a pod's spec says of its rights."""

    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
