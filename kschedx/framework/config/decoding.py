"""Strict decoding of a KubeSchedulerConfiguration, with kube-scheduler's messages for what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct, field, inspect

from kschedx.errors import (
    ConfigError,
    InputError,
    Place,
    SeveralConfigError,
    differs_by_one_letter,
    join_fields,
    nearest,
)
from kschedx.framework.args import InTreeArgs, PluginArgs
from kschedx.kube import field_errors
from kschedx.kube.decoding import invalid_value, mismatch_text
from kschedx.kube.escaping import Url
from kschedx.kube.scalars import Duration, Int32, Int64
from kschedx.kube.types import Pod

_LONGEST = 80


class Faults:
    """The errors in a configuration, in order.

    kube-scheduler stops after the first step of reading with an error; here, the next steps follow all the same. Their
    errors are ignored in a field, or beside a field, that was wrong before, since they may only follow from that.
    """

    def __init__(self) -> None:
        self._errors: list[ConfigError] = []
        self._wrong: frozenset[str] = frozenset()
        self._around: frozenset[str] = frozenset()

    def add(self, error: InputError) -> None:
        field = error.place.field
        is_beside = field.rpartition(".")[0] in self._around
        if not (is_beside or any(_is_within(field, other) for other in self._wrong)):
            self._errors.append(ConfigError(error.message, place=error.place, hint=error.hint))

    def extend(self, errors: Iterable[InputError]) -> None:
        for error in errors:
            self.add(error)

    def next_step(self) -> None:
        self._wrong = frozenset(error.place.field for error in self._errors)
        self._around = frozenset(field.rpartition(".")[0] for field in self._wrong)

    def settle(self) -> None:
        """Raise `ConfigError` if there are any errors."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise SeveralConfigError(self._errors)


def _is_within(field: str, other: str) -> bool:
    return field == other or field.startswith((f"{other}.", f"{other}["))


def refuse(path: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError(message, place=Place(field=path), hint=hint)


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: the nearest known one, or all of them if none is near."""
    names = sorted(known)
    return nearest(name, names) or f"known: {', '.join(names)}"


def shown(value: object) -> str:
    """Return a value on one line of printable characters, shortened if it is long."""
    text = field_errors.quote_go(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# Strict decoding: an unknown field, or a value of another type, is an error with its path.

_T = TypeVar("_T")
_Unknown: TypeAlias = Callable[[str, object, Iterable[str]], ConfigError | None]
"""The error for an unknown field from its place, its name, and the names of the known fields; None to ignore it."""


def unknown_field_error(place: str, key: object, known: Iterable[str]) -> ConfigError | None:
    return refuse(place, f"unknown field {shown(key)}", nearest_or_all(str(key), known))


def decode(
    value: object, kind: type[_T], path: str, faults: Faults | None = None, unknown: _Unknown = unknown_field_error
) -> _T:
    """Decode `value`, as parsed from YAML or JSON, as a `kind`, whose fields have defaults. `path` is its place, for
    errors.

    Invalid fields are left out and added to `faults`; without `faults`, they are raised.
    """
    all_faults = faults or Faults()
    cleaned = _clean(value, _info(kind), path, all_faults, unknown)
    decoded: _T | None = None
    while decoded is None:
        try:
            decoded = msgspec.convert(cleaned, kind, dec_hook=_custom)
        except msgspec.ValidationError as error:
            all_faults.add(_refusal(str(error), cleaned, path))
            if not _leave_out(cleaned, _steps(str(error))):
                cleaned = {}  # the document itself is invalid
    if faults is None:
        all_faults.settle()
    return decoded


_INFOS: dict[object, inspect.Type] = {}
"""The descriptions of the types decoded so far; msgspec would describe them again at each call."""


def _info(kind: object) -> inspect.Type:
    if kind not in _INFOS:
        _INFOS[kind] = inspect.type_info(kind)
    return _INFOS[kind]


def _clean(value: object, kind: inspect.Type, path: str, faults: Faults, unknown: _Unknown) -> object:
    """Return `value` without nulls, which Go treats as absent fields, and without unknown fields."""
    match kind:
        case inspect.UnionType(types=types):
            some = next(t for t in types if not isinstance(t, inspect.NoneType))
            return _clean(value, some, path, faults, unknown)
        case inspect.StructType(fields=fields) if isinstance(value, Mapping):
            known = {f.encode_name: f.type for f in fields}
            kept: dict[object, object] = {}
            for key, item in value.items():
                if key not in known:
                    if (error := unknown(join_fields(path, _step(key)), key, known)) is not None:
                        faults.add(error)
                elif item is not None:
                    kept[key] = _clean(item, known[key], join_fields(path, key), faults, unknown)
            return kept
        case inspect.VarTupleType(item_type=item_type) if isinstance(value, Sequence) and not isinstance(value, str):
            return [
                _clean(_present(item, item_type), item_type, f"{path}[{i}]", faults, unknown)
                for i, item in enumerate(value)
            ]
        case inspect.DictType(value_type=value_type) if isinstance(value, Mapping):
            return {
                key: _clean(_present(item, value_type), value_type, join_fields(path, _step(key)), faults, unknown)
                for key, item in value.items()
            }
        case inspect.IntType() if isinstance(value, float) and value.is_integer():
            return int(value)  # kube-scheduler gets YAML's 5.0 as JSON's 5
        case _:
            return value


def _present(value: object, kind: inspect.Type) -> object:
    """Return an item of a list or a mapping, in which null is Go's zero value."""
    if value is not None:
        return value
    match kind:
        case inspect.StrType():
            return ""
        case inspect.FloatType() | inspect.IntType():
            return 0
        case inspect.StructType():
            return {}
        case _:
            return None


def _custom(kind: type, value: object) -> object:
    if kind is object:
        return value
    if kind is Duration and isinstance(value, str):
        return Duration.parse(value)
    raise ValueError('expected a duration such as "10s" or "1m30s"')


def _refusal(text: str, document: object, path: str) -> ConfigError:
    """Return msgspec's error in kschedx's words."""
    reason, _, where = text.partition(" - at `$")
    field, value = invalid_value(where.removeprefix(".").removesuffix("`"), reason, document) or ("", document)
    expected = mismatch_text(reason).partition(", found ")[0]
    return refuse(join_fields(path, field), f"{expected[:1].lower()}{expected[1:]}, found {shown(value)}")


def _steps(text: str) -> str:
    """Return the path in msgspec's error: `.profiles[0].schedulerName`."""
    return text.partition(" - at `$")[2].removesuffix("`").removesuffix("[...]")


def _leave_out(document: object, steps: str) -> bool:
    """Remove the field with the error; return False if that is the document itself."""
    parent, dot, last = steps.rpartition(".")
    holder = _value_at(document, parent)
    if not dot or not isinstance(holder, dict):
        return False
    del holder[last.partition("[")[0]]
    return True


def _value_at(document: object, steps: str) -> object:
    for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", steps):
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list):
            document = document[int(index)]
    return document


def _step(key: object) -> str:
    """Return a mapping's key as a step of a path; a key that is no plain name is in brackets, as data."""
    return key if isinstance(key, str) and re.fullmatch(r"[\w-]+", key, re.ASCII) else f"[{shown(key)}]"


# KubeSchedulerConfiguration as it is written (staging/src/k8s.io/kube-scheduler/config/v1/types.go).
# Field defaults are kube-scheduler's, since a null and an absent field mean the same.

KIND = "KubeSchedulerConfiguration"


class LeaderElection(Struct, frozen=True, kw_only=True, rename="camel"):
    leader_elect: bool = True
    lease_duration: Duration = Duration(0)
    renew_deadline: Duration = Duration(0)
    retry_period: Duration = Duration(0)
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class _ClientConnection(Struct, frozen=True, kw_only=True, rename="camel"):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0.0
    burst: Int32 = 0


class ExtenderTLSConfig(Struct, frozen=True, kw_only=True, rename="camel"):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    ignored_by_scheduler: bool = False


class BaseExtender(Struct, frozen=True, kw_only=True, rename="camel"):
    """A webhook for filtering, scoring, preemption, or binding; an empty verb is not supported by it."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def url(self) -> Url:
        return Url(self.url_prefix)

    def is_interested(self, pod: Pod) -> bool:
        """Return whether it manages every pod, or a resource that a container names, in whatever amount."""
        managed = {resource.name for resource in self.managed_resources}
        return not managed or any(
            not managed.isdisjoint(amounts)
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )


class Extender(BaseExtender, frozen=True, kw_only=True, rename="camel"):
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(0)


class _PluginEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    weight: Int32 = 0


class PluginSet(Struct, frozen=True, kw_only=True, rename="camel"):
    enabled: tuple[_PluginEntry, ...] = ()
    disabled: tuple[_PluginEntry, ...] = ()


class Plugins(Struct, frozen=True, kw_only=True, rename="camel"):
    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def sets_by_point(self) -> dict[str, PluginSet]:
        names = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)
        return {encoded: getattr(self, name) for encoded, name in names}


class PluginConfig(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    args: object = None


class ProfileDocument(Struct, frozen=True, kw_only=True, rename="camel"):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ConfigurationDocument(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: _ClientConnection = _ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileDocument, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    healthz_bind_address: str = ""
    metrics_bind_address: str = ""


# A loaded configuration, as the runtime reads it.

_A = TypeVar("_A", bound=InTreeArgs)


class Profile(Struct, frozen=True, kw_only=True):
    """How pods with one `spec.schedulerName` are scheduled."""

    scheduler_name: str
    percentage_of_nodes_to_score: int
    """The profile's own value, else the configuration's; if 0, it depends on the size of the cluster."""
    points: Mapping[str, tuple[str, ...]]
    """Every extension point in `releases.POINTS` to its plugins in the order in which they run."""
    enabled: Mapping[str, tuple[str, ...]]
    """`points` with the plugins that kschedx does not have; `multiPoint` has those whose points are unknown."""
    placement: Mapping[str, int] = {}
    """The plugins that generate or score the placements of pod groups, with their weights."""
    weights: Mapping[str, int]  # every enabled score plugin to its weight, never 0; those in `points["score"]` run
    args: Mapping[str, PluginArgs]
    """Plugin to its arguments, defaulted and validated. Plugins without arguments are left out."""
    unknown: Mapping[str, tuple[str, ...]] = {}
    """Enabled plugins that kschedx does not have, with their places: extension points, or `multiPoint` for any of them.
    They are not in `points`."""

    def args_of(self, kind: type[_A]) -> _A:
        """The arguments of the in-tree plugin that takes `kind`. Raises KeyError if the profile lacks the plugin."""
        args = self.args[kind.__name__.removesuffix("Args")]
        assert isinstance(args, kind)
        return args


class SchedulerConfig(Struct, frozen=True, kw_only=True):
    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...]
    """In the configured order; `framework.extenders.call_order` returns the order of the calls."""
    without_unknown_plugins: bool = False
    """Whether the caller asserts that no plugin that kschedx lacks would change a decision."""

    def profile_for(self, scheduler_name: str) -> Profile:
        """Return the profile for a pod's `spec.schedulerName`. Raises `ConfigError` if none has that name."""
        for profile in self.profiles:
            if profile.scheduler_name == scheduler_name:
                return profile
        known = [profile.scheduler_name for profile in self.profiles]
        ways = (
            f"another scheduler schedules such pods: --profile {known[0]} answers with that profile, "
            "--config FILE gives a configuration that has the profile"
        )
        near = next((name for name in known if differs_by_one_letter(scheduler_name, name)), None)
        hint = f'did you mean "{near}"?' if near else ways
        raise ConfigError(f"profile not found for scheduler name {shown(scheduler_name)}", hint=hint)
