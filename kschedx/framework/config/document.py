"""KubeSchedulerConfiguration as it is written (staging/src/k8s.io/kube-scheduler/config/v1/types.go).

Field defaults are kube-scheduler's, since a null and an absent field mean the same.
"""

from __future__ import annotations

from msgspec import Struct, field, structs

from kschedx.api.integers import Int32, Int64
from kschedx.framework.duration import Duration

KIND = "KubeSchedulerConfiguration"
POLICY = "Policy"
"""Of schedulers before the framework."""
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
    """A webhook for filtering, scoring, preemption or binding; an empty verb is one that it does not serve."""

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
        return {f.encode_name: getattr(self, f.name) for f in structs.fields(Plugins)}


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
