"""What the API server refuses in security contexts and in the old annotations for them; as `validation` for the rest.

Upstream: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from kschedx.api.field_errors import as_json, duplicate, forbidden, invalid, not_supported, quoted, required
from kschedx.api.integers import MAX_INT32
from kschedx.api.kubelet_fields import KubeletSpec
from kschedx.api.names import dns_subdomain_errors
from kschedx.api.pod_security.judged import APP_ARMOR_ANNOTATION, WINDOWS
from kschedx.api.security_context import PodSecurityContext, Profile, SecurityContext, WindowsOptions
from kschedx.api.types import Labels, PodSpec
from kschedx.api.validation_parts import Errors, syntax
from kschedx.errors import InputError, Place

_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED = "Localhost", "RuntimeDefault", "Unconfined"
_TYPES = (_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED)
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_LOCAL = "localhost/"
_ANNOTATED: dict[str, tuple[str, ...]] = {
    _RUNTIME_DEFAULT: ("runtime/default", "docker/default"),
    _UNCONFINED: ("unconfined",),
}
"""A profile's type to the annotations that mean it; of AppArmor only the first."""
_LONGEST_PATH = 4095
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_LONGEST_SYSCTL = 253
_OF_NETWORK = ("net.",)
_OF_IPC = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_IDS = f"must be between 0 and {MAX_INT32}, inclusive"
_NOT_FOR_WINDOWS = "cannot be set for a windows pod"
_GO_NAMES = {
    "seLinuxOptions": "SELinuxOptions",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "gmsaCredentialSpec": "GMSACredentialSpec",
}
_GO_ORDER = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip
"""Of the fields of a container's security context."""


def validate_container_context(context: SecurityContext | None, field: str, *, own_users: bool) -> Errors:
    """`own_users`: the pod is in a user namespace of its own."""
    if context is None:
        return
    for name, number in (("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)):
        yield from _id(number, f"{field}.{name}")
    mount = context.proc_mount
    if mount is not None and mount not in ("Default", "Unmasked"):
        yield not_supported(f"{field}.procMount", as_json(mount), ("Default", "Unmasked"))
    if mount == "Unmasked" and not own_users:
        yield invalid(f"{field}.procMount", quoted(mount), "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(context.seccomp_profile, f"{field}.seccompProfile")
    if context.allow_privilege_escalation is False:
        added = context.capabilities.add if context.capabilities is not None else None
        if context.privileged:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(field, _go_context(context), detail)
        for name in added or ():
            if name == "CAP_SYS_ADMIN":
                detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield invalid(field, _go_context(context), detail)
    yield from _windows_options(context.windows_options, f"{field}.windowsOptions")
    yield from _app_armor(context.app_armor_profile, f"{field}.appArmorProfile")


def validate_pod_context(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    context = kubelet.security_context or PodSecurityContext()
    numbers = (("fsGroup", context.fs_group), ("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group))
    for name, number in numbers:
        yield from _id(number, f"{field}.{name}")
    for index, group in enumerate(context.supplemental_groups or ()):
        yield from _id(group, f"{field}.supplementalGroups[{index}]")
    if kubelet.share_process_namespace and kubelet.host_pid:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{field}.shareProcessNamespace", "true", detail)
    yield from _sysctls(context, spec, kubelet, f"{field}.sysctls")
    policies = ("Always", "OnRootMismatch")
    yield from _one_of(context.fs_group_change_policy, policies, f"{field}.fsGroupChangePolicy")
    yield from _seccomp(context.seccomp_profile, f"{field}.seccompProfile")
    yield from _windows_options(context.windows_options, f"{field}.windowsOptions")
    yield from _app_armor(context.app_armor_profile, f"{field}.appArmorProfile")
    yield from _one_of(context.supplemental_groups_policy, ("Merge", "Strict"), f"{field}.supplementalGroupsPolicy")
    yield from _one_of(context.se_linux_change_policy, ("Recursive",), f"{field}.seLinuxChangePolicy")


def validate_host_processes(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    """On Windows: all containers are processes of the node, or none is."""
    of_pod = _host_process(kubelet.security_context)
    count = total = 0
    for where, context in _contexts(kubelet, field):
        own = _host_process(context)
        total += 1
        count += bool(own if own is not None else of_pod)
        if of_pod is not None and own is not None and of_pod != own:
            shown = str(of_pod).lower()
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            yield invalid(f"{where}.windowsOptions.hostProcess", str(own).lower(), detail)
    if count and count != total:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(field, '""', detail)
    if count and not spec.host_network:
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{field}.hostNetwork", "false", detail)


def validate_own_users(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    if spec.host_users is not False:
        return
    for name, is_shared in (("HostPID", kubelet.host_pid), ("HostIPC", kubelet.host_ipc)):
        if is_shared:
            yield forbidden(f"{field}.{name}", "when `hostUsers` is false")


def validate_system(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    """What a pod of another operating system can say."""
    if kubelet.os is None or kubelet.os.name not in ("linux", WINDOWS):
        return
    places = [(f"{field}.securityContext", kubelet.security_context), *_contexts(kubelet, field)]
    if kubelet.os.name != WINDOWS:
        for where, context in places:
            if context is not None and context.windows_options is not None:
                yield forbidden(f"{where}.windowsOptions", "windows options cannot be set for a linux pod")
        return
    (where, of_pod), *of_containers = places
    for name, is_said in (
        ("hostUsers", spec.host_users is not None),
        ("hostPID", kubelet.host_pid),
        ("hostIPC", kubelet.host_ipc),
        ("shareProcessNamespace", kubelet.share_process_namespace is not None),
    ):
        if is_said:
            yield forbidden(f"{field}.{name}", _NOT_FOR_WINDOWS)
    if isinstance(of_pod, PodSecurityContext):
        yield from _not_for_windows(of_pod, where, _OF_LINUX_PODS)
    for where, context in of_containers:
        if context is not None:
            yield from _not_for_windows(context, where, _OF_LINUX_CONTAINERS)


def validate_security_annotations(annotations: Labels, kubelet: KubeletSpec, field: str) -> Errors:
    for key in sorted(annotations):
        value = annotations[key]
        if key == _SECCOMP_OF_POD or key.startswith(_SECCOMP_OF_CONTAINER):
            known = ("runtime/default", "docker/default", "unconfined")
            if value not in known and not value.startswith(_LOCAL):
                yield invalid(f"{field}.{key}", quoted(value), "must be a valid seccomp profile")
            elif value.startswith(_LOCAL):
                yield from _descending(value.removeprefix(_LOCAL), f"{field}.{key}")
    names = {one.name for one in (*kubelet.containers, *kubelet.init_containers, *kubelet.ephemeral_containers)}
    for key in sorted(annotations):
        value, name = annotations[key], key.removeprefix(APP_ARMOR_ANNOTATION)
        if name == key:
            continue
        if name not in names:
            yield invalid(f"{field}[{key}]", quoted(name), "container not found")
        if value not in ("", "runtime/default", "unconfined") and not value.startswith(_LOCAL):
            yield invalid(f"{field}[{key}]", quoted(value), f"invalid AppArmor profile name: {quoted(value)}")


def validate_annotated_profiles(annotations: Labels, kubelet: KubeletSpec, field: str) -> Errors:
    """Who says it in both ways says the same."""
    own = kubelet.security_context
    if own is not None and own.seccomp_profile is not None and _SECCOMP_OF_POD in annotations:
        where = f"{field}.securityContext.seccompProfile"
        yield from _matches("seccomp", own.seccomp_profile, annotations[_SECCOMP_OF_POD], where, 2)
    named = [*zip(_names(kubelet), _contexts(kubelet, field), strict=True)]
    for name, (where, context) in named:
        written = annotations.get(f"{_SECCOMP_OF_CONTAINER}{name}")
        if written is not None and context is not None and context.seccomp_profile is not None:
            yield from _matches("seccomp", context.seccomp_profile, written, f"{where}.seccompProfile", 2)
    if kubelet.os is not None and kubelet.os.name == WINDOWS:
        return
    of_pod = None if own is None else own.app_armor_profile
    for name, (where, context) in named:
        written = annotations.get(f"{APP_ARMOR_ANNOTATION}{name}")
        of_container = None if context is None else context.app_armor_profile
        profile = of_container or (None if written is None else _annotated_app_armor(written)) or of_pod
        if written is not None and profile is not None:
            yield from _matches("apparmor", profile, written, f"{where}.appArmorProfile", 1)


def _annotated_app_armor(written: str) -> Profile | None:
    """What becomes the container's own profile before it is looked at."""
    is_known = written in ("runtime/default", "unconfined") or (
        written.startswith(_LOCAL) and written.removeprefix(_LOCAL).strip() == written.removeprefix(_LOCAL) != ""
    )
    if not is_known:
        return None
    if written.startswith(_LOCAL):
        return Profile(type=_LOCALHOST, localhost_profile=written.removeprefix(_LOCAL))
    return Profile(type=_UNCONFINED if written == "unconfined" else _RUNTIME_DEFAULT)


# --- parts


_OF_LINUX_PODS = (
    "app_armor_profile", "se_linux_options", "seccomp_profile", "fs_group", "fs_group_change_policy", "sysctls",
    "run_as_user", "run_as_group", "supplemental_groups", "supplemental_groups_policy", "se_linux_change_policy",
)  # fmt: skip
_OF_LINUX_CONTAINERS = (
    "app_armor_profile", "se_linux_options", "seccomp_profile", "capabilities", "read_only_root_filesystem",
    "privileged", "allow_privilege_escalation", "proc_mount", "run_as_user", "run_as_group",
)  # fmt: skip


def _not_for_windows(context: Struct, field: str, names: tuple[str, ...]) -> Errors:
    encoded = {info.name: info.encode_name for info in msgspec.structs.fields(context)}
    for name in names:
        if getattr(context, name) not in (None, ()) or (name == "supplemental_groups" and getattr(context, name) == ()):
            yield forbidden(f"{field}.{encoded[name]}", _NOT_FOR_WINDOWS)


def _names(kubelet: KubeletSpec) -> Iterator[str]:
    yield from (one.name for one in (*kubelet.init_containers, *kubelet.containers))


def _contexts(kubelet: KubeletSpec, field: str) -> Iterator[tuple[str, SecurityContext | None]]:
    for kind, containers in (("initContainers", kubelet.init_containers), ("containers", kubelet.containers)):
        for index, one in enumerate(containers):
            yield f"{field}.{kind}[{index}].securityContext", one.security_context


def _host_process(context: PodSecurityContext | SecurityContext | None) -> bool | None:
    return None if context is None or context.windows_options is None else context.windows_options.host_process


def _id(number: int | None, field: str) -> Errors:
    if number is not None and not 0 <= number <= MAX_INT32:
        yield invalid(field, str(number), _IDS)


def _one_of(value: str | None, allowed: tuple[str, ...], field: str) -> Errors:
    if value is not None and value not in allowed:
        yield not_supported(field, as_json(value), allowed)


def _seccomp(profile: Profile | None, field: str) -> Errors:
    if profile is None:
        return
    if not profile.type:
        yield required(f"{field}.type", "type is required when seccompProfile is set")
    elif profile.type not in _TYPES:
        yield not_supported(f"{field}.type", as_json(profile.type), _TYPES)
    path = profile.localhost_profile
    if profile.type == _LOCALHOST and path is None:
        yield required(f"{field}.localhostProfile", "must be set when seccomp type is Localhost")
    elif profile.type == _LOCALHOST and path is not None:
        yield from _descending(path, f"{field}.localhostProfile")
    elif path is not None:
        yield invalid(f"{field}.localhostProfile", _go(profile), "can only be set when seccomp type is Localhost")


def _app_armor(profile: Profile | None, field: str) -> Errors:
    if profile is None:
        return
    path, where = profile.localhost_profile, f"{field}.localhostProfile"
    if not profile.type:
        yield required(f"{field}.type", "type is required when appArmorProfile is set")
    elif profile.type not in _TYPES:
        yield not_supported(f"{field}.type", as_json(profile.type), _TYPES)
    elif profile.type != _LOCALHOST:
        if path is not None:
            yield invalid(where, quoted(path), "can only be set when AppArmor type is Localhost")
    elif path is None or (not path.strip() and path == path.strip()):
        yield required(where, "must be set when AppArmor type is Localhost")
    else:
        if path != path.strip():
            yield invalid(where, quoted(path), "must not be padded with whitespace")
        if len(path) > _LONGEST_PATH:
            yield InputError(f"Too long: may not be more than {_LONGEST_PATH} bytes", place=Place(field=where))


def _descending(path: str, field: str) -> Errors:
    if path.startswith("/"):
        yield invalid(field, quoted(path), "must be a relative path")
    if ".." in path.split("/"):
        yield invalid(field, quoted(path), "must not contain '..'")


def _windows_options(options: WindowsOptions | None, field: str) -> Errors:
    if options is None:
        return
    if options.gmsa_credential_spec_name is not None:
        yield from syntax(dns_subdomain_errors, options.gmsa_credential_spec_name, f"{field}.gmsaCredentialSpecName")
    if options.gmsa_credential_spec == "":
        yield invalid(f"{field}.gmsaCredentialSpec", '""', "gmsaCredentialSpec cannot be an empty string")
    name, where = options.run_as_user_name, f"{field}.runAsUserName"
    if name is None:
        return
    user = name.rpartition("\\")[2]
    if not name:
        yield invalid(where, '""', "runAsUserName cannot be an empty string")
    elif name.count("\\") > 1:
        yield invalid(where, quoted(name), "runAsUserName cannot contain more than one backslash")
    elif not user:
        yield invalid(where, quoted(name), "runAsUserName's User cannot be empty")
    elif not user.strip(". "):
        yield invalid(where, quoted(name), "runAsUserName's User cannot contain only periods or spaces")
    elif re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
        detail = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        yield invalid(where, quoted(name), detail)


def _sysctls(context: PodSecurityContext, spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    seen: set[str] = set()
    for index, one in enumerate(context.sysctls):
        where, name = f"{field}[{index}].name", one.name
        if not name:
            yield required(where, "")
        elif len(name) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL, name):
            yield invalid(
                where, quoted(name), f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL}"
            )
        elif name in seen:
            yield duplicate(where, quoted(name))
        dotted = name.replace("/", ".")
        if spec.host_network and dotted.startswith(_OF_NETWORK):
            yield invalid(where, quoted(name), "may not be specified when 'hostNetwork' is true")
        elif kubelet.host_ipc and (dotted.startswith(_OF_IPC) or dotted == "kernel.sem"):
            yield invalid(where, quoted(name), "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _matches(what: str, profile: Profile, written: str, field: str, most: int) -> Errors:
    """`most` are how many spellings of a type count."""
    if profile.type == _LOCALHOST:
        if not written.startswith(_LOCAL):
            yield forbidden(f"{field}.type", f"{what} type in annotation and field must match")
        elif profile.localhost_profile != written.removeprefix(_LOCAL):
            yield forbidden(f"{field}.localhostProfile", f"{what} profile in annotation and field must match")
    elif profile.type in _ANNOTATED and written not in _ANNOTATED[profile.type][:most]:
        yield forbidden(f"{field}.type", f"{what} type in annotation and field must match")


def _go_context(context: SecurityContext) -> str:
    values = {info.encode_name: getattr(context, info.name) for info in msgspec.structs.fields(context)}
    return "{" + ",".join(f'"{_go_name(name)}":{_go(values[name])}' for name in _GO_ORDER) + "}"


def _go(value: object) -> str:
    """As Go's encoding/json writes a value of its internal types, whose fields have no other names."""
    if isinstance(value, Struct):
        fields = [(info.encode_name, getattr(value, info.name)) for info in msgspec.structs.fields(value)]
        return "{" + ",".join(f'"{_go_name(name)}":{_go(item)}' for name, item in fields) + "}"
    return msgspec.json.encode(value).decode()


def _go_name(name: str) -> str:
    return _GO_NAMES.get(name, f"{name[:1].upper()}{name[1:]}")
