"""KubeSchedulerConfiguration as it is written (staging/src/k8s.io/kube-scheduler/config/v1/types.go).

Field defaults are kube-scheduler's, since a null and an absent field mean the same.
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, field

from kschedx.errors import ConfigError, is_a_letter_away
from kschedx.framework.args import InTreeArgs, PluginArgs
from kschedx.framework.config.decoding import shown
from kschedx.kube.duration import Duration
from kschedx.kube.escaping import Url
from kschedx.kube.scalars import Int32, Int64

KIND = "KubeSchedulerConfiguration"
POLICY = "Policy"
"""The configuration kind of schedulers before the framework."""
DEFAULT_SCHEDULER_NAME = "default-scheduler"


class LeaderElection(Struct, frozen=True, kw_only=True, rename="camel"):
    leader_elect: bool = True
    lease_duration: Duration = Duration(0)
    renew_deadline: Duration = Duration(0)
    retry_period: Duration = Duration(0)
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnection(Struct, frozen=True, kw_only=True, rename="camel"):
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


class Extender(Struct, frozen=True, kw_only=True, rename="camel"):
    """A webhook for filtering, scoring, preemption, or binding; an empty verb is not supported by it."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(0)
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def url(self) -> Url:
        return Url(self.url_prefix)


class PluginEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    weight: Int32 = 0


class PluginSet(Struct, frozen=True, kw_only=True, rename="camel"):
    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


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

    def by_point(self) -> dict[str, PluginSet]:
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
    client_connection: ClientConnection = ClientConnection()
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

A = TypeVar("A", bound=InTreeArgs)


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
    weights: Mapping[str, int]
    """Every enabled score plugin to its weight, never 0; those in `points["score"]` run."""
    args: Mapping[str, PluginArgs]
    """Plugin to its arguments, defaulted and validated. Plugins without arguments are left out."""
    unknown: Mapping[str, tuple[str, ...]] = {}
    """Enabled plugins that kschedx does not have, with their places: extension points, or `multiPoint` for any of them.
    They are not in `points`."""

    def args_of(self, kind: type[A]) -> A:
        """Return the arguments of the in-tree plugin that takes `kind`. Raises KeyError if the profile lacks the
        plugin."""
        args = self.args[kind.__name__.removesuffix("Args")]
        assert isinstance(args, kind)
        return args


class SchedulerConfig(Struct, frozen=True, kw_only=True):
    profiles: tuple[Profile, ...]
    percentage_of_nodes_to_score: int
    parallelism: int
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
        near = next((name for name in known if is_a_letter_away(scheduler_name, name)), None)
        hint = f'did you mean "{near}"?' if near else ways
        raise ConfigError(f"profile not found for scheduler name {shown(scheduler_name)}", hint=hint)
