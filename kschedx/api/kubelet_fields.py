"""What a manifest says to the kubelet alone: no scheduler reads it, but the API server refuses a pod for its mistakes.

Decoded from manifests that are asked about, never from the pods of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from kschedx.api.security_context import Rights, SecuredContainer

VolumeSource = Mapping[str, object]
"""A volume as written: its name, and a source under each of its other keys."""


class VolumeMount(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""


class VolumeDevice(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    device_path: str = ""


class EnvVar(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    value: str = ""
    value_from: Mapping[str, object] | None = None


class KubeletContainer(SecuredContainer, frozen=True, kw_only=True, rename="camel"):
    env: tuple[EnvVar, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    image_pull_policy: str = ""


class PodOS(Struct, frozen=True, kw_only=True):
    name: str = ""


class KubeletSpec(Rights, frozen=True, kw_only=True, rename="camel"):
    volumes: tuple[VolumeSource, ...] = ()
    containers: tuple[KubeletContainer, ...] = ()
    init_containers: tuple[KubeletContainer, ...] = ()
    ephemeral_containers: tuple[SecuredContainer, ...] = ()
    dns_policy: str = ""
    hostname: str = ""
    subdomain: str = ""
    os: PodOS | None = None


class KubeletFields(Struct, frozen=True, kw_only=True):
    """The same of a whole pod; empty for a pod of which nothing but what scheduling reads is known."""

    spec: KubeletSpec = field(default_factory=KubeletSpec)
