"""kschedx explains kube-scheduler: why a pod is assigned to a node, or stays pending.

import kschedx snapshot = kschedx.load("cluster.yaml", "more/") result = kschedx.explain(snapshot, "shop/web-0")
result.outcome, result.best_nodes, result.message, result.to_dict()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from kschedx.version import __version__

# loading a subpackage sets it as an attribute of this package: load it before the function of the same name is defined
import_module("kschedx.explain")
import_module("kschedx.simulate")
import_module("kschedx.kueue")
import_module("kschedx.doctor")

if TYPE_CHECKING:
    from kschedx.autoscaler.flags import FlagValue
    from kschedx.autoscaler.run import Autoscaling
    from kschedx.descheduler.descheduling import Descheduling
    from kschedx.doctor.diagnosis import DumpDiagnosis
    from kschedx.explain.setup import Setup
    from kschedx.framework.extenders import Ask
    from kschedx.inquiry.daemon_set import DaemonSetAnswer
    from kschedx.inquiry.explanation import Explanation
    from kschedx.inquiry.fit import Fit
    from kschedx.inquiry.profile_difference import Comparison
    from kschedx.inquiry.simulation import Simulation
    from kschedx.inquiry.survive import Survival
    from kschedx.kueue.overview import Overview
    from kschedx.simulate.tuning import Tuning
    from kschedx.snapshot.snapshot import Snapshot

__all__ = [
    "Snapshot",
    "__version__",
    "autoscale",
    "deschedule",
    "diff_profiles",
    "doctor",
    "drain",
    "explain",
    "explain_daemon_set",
    "fit",
    "kueue",
    "load",
    "simulate",
    "survive",
    "tune_profiles",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    # numpy and msgspec are loaded when they are needed, so that `kschedx --version` stays fast
    if name == "Snapshot":
        from kschedx.snapshot.snapshot import Snapshot

        return Snapshot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(*paths: str, whole: bool = False) -> Snapshot:
    """Return a snapshot of files and folders of YAML or JSON (`-` is standard input). Raises `errors.InputError`.

    `whole` keeps the manifests of pods and nodes too, which extenders are sent.
    """
    from kschedx.kube.decoding import path
    from kschedx.loading import load as load_paths

    try:
        return load_paths([path(item, "path") for item in paths], whole=whole)
    except OSError as error:
        from kschedx.errors import InputError, system_reason

        raise InputError(f"cannot be read: {system_reason(error)}") from None


def explain(
    snapshot: Snapshot,
    pod: str | Mapping[str, object],
    *,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    admission_plugins: Sequence[str] = (),
    without_unknown_plugins: bool = False,
    extenders: str | Mapping[str, object] | None = None,
) -> Explanation:
    """Run one pod through the scheduler.

    `pod` names a pod or a workload in the snapshot (`shop/web-0`, `deploy/web`, `shop/deploy/web`), or is a manifest of
    either (Deployment, StatefulSet, Job, a Rollout, ...). A workload stands for the next pod of its template. A running
    pod is scheduled as if it were not running. A manifest is defaulted and admitted as by the API server, which runs
    `admission_plugins` (PodNodeSelector, PodTolerationRestriction, ExtendedResourceToleration) besides its default
    ones. `config` is a KubeSchedulerConfiguration, or a Policy for the versions before the scheduling framework (1.13
    and 1.5). A plugin that it names and kschedx does not have is left out. A pod that would fit is then `Undecided`,
    unless `without_unknown_plugins` states that the plugin rejects nothing.

    `extenders="call"` calls the HTTP extenders of the configuration for this pod, which needs a snapshot that was
    loaded whole. A parsed recording (`kschedx why --extenders record`) answers in their place. With neither, a pod that
    would fit is `Undecided` if an extender is interested in it.

    Raises `errors.InputError` for input that cannot be used, and `errors.UndecidableError` if kschedx would have to
    guess.
    """
    from kschedx.inquiry.pod import explain as explained
    from kschedx.inquiry.target import new_pod
    from kschedx.kube.decoding import boolean, texts

    ask = None
    if extenders is not None:
        from kschedx.extenders.client import answer_source

        ask = answer_source(extenders)
    cluster, target = _snapshot(snapshot), _target(pod, "pod")
    setup = _setup(
        cluster,
        config,
        kube_version,
        feature_gates,
        admission_plugins=texts(admission_plugins, "admission_plugins"),
        without_unknown_plugins=boolean(without_unknown_plugins, "without_unknown_plugins"),
        ask=ask,
    )
    return explained(new_pod(cluster, target, setup).subject, setup)


def explain_daemon_set(
    snapshot: Snapshot,
    daemon_set: str | Mapping[str, object],
    *,
    node: str | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> DaemonSetAnswer:
    """Return on which nodes the pods of a DaemonSet fit, and why they do not fit the others. With `node`, its pod is
    shown.

    `daemon_set` is a name (`kube-system/ds/agent`) or a manifest; the other arguments are as in `explain`.
    """
    from msgspec.structs import replace

    from kschedx.errors import InputError
    from kschedx.inquiry.ask import Clusters, Inquiry
    from kschedx.inquiry.target import find_target, node_names, written_in
    from kschedx.kube.decoding import text

    cluster, named = _snapshot(snapshot), _target(daemon_set, "daemon_set")
    setup = _setup(cluster, config, kube_version, feature_gates)
    if isinstance(named, str):
        applied, target = cluster, find_target(cluster, named)
    else:
        applied, target = written_in(cluster, named)
    if not target.is_daemon:
        raise InputError("daemon_set: it is no DaemonSet")
    inquiry = Inquiry(clusters=Clusters(read=cluster, before=cluster, applied=applied), setup=setup)
    answer = inquiry.explain_daemon_set(target, [target])
    return answer if node is None else replace(answer, node=node_names(cluster, [text(node, "node")])[0])


def kueue(
    snapshot: Snapshot,
    *,
    config: Mapping[str, object] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    version: str = "0.19.2",
    now: str | None = None,
) -> Overview:
    """Return which of Kueue's Workloads get quota, cycle after cycle, until nothing changes any more.

    `config` is Kueue's Configuration, by default that of the snapshot's ConfigMap. `feature_gates` are gates that
    differ from the defaults of `version`. `now` is the time of the first cycle (RFC 3339), by default the time of the
    snapshot. No workload finishes during the run, and admission checks keep their state. Raises `errors.InputError` for
    input that cannot be used.
    """
    from kschedx.kube.decoding import mapping, text
    from kschedx.kueue.overview import overview
    from kschedx.kueue.settings import settings_of, with_configuration

    changed = None if config is None else mapping(config, "config")
    settings = settings_of(with_configuration(_snapshot(snapshot), changed, feature_gates or {}))
    return overview(
        _snapshot(snapshot), settings, version=text(version, "version"), now=None if now is None else text(now, "now")
    )


def simulate(
    snapshot: Snapshot,
    *,
    changes: Sequence[Mapping[str, object]] = (),
    namespace: str = "default",
    recreate: bool = True,
    seed: int | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Simulation:
    """Schedule all pending pods, one after the other in the order of the queue.

    Each pod is scheduled on the cluster that results from the decisions before it. Victims of preemption are deleted at
    once, and recreated if they have a controller, unless `recreate` is False. Kueue's Workloads are admitted in Kueue's
    order, and their pods are scheduled after the other pending ones. If nodes tie, the first name is chosen, or a
    random one with a `seed`.

    `changes` are made first, in their order: `[{"scale": "deploy/web=10"}, {"drain": "node-1"}]`, with the keys of
    `kschedx simulate`'s options. `namespace` is the default one of the names in them. `config`, `kube_version`, and
    `feature_gates` are as in `explain`.
    """
    from kschedx.inquiry.what_if import simulate as simulated
    from kschedx.kube.decoding import boolean, mappings, text, whole_number
    from kschedx.simulate.changes import parse_changes as read_changes
    from kschedx.simulate.simulator import SimulationOptions
    from kschedx.sources.files import load_documents

    cluster = _snapshot(snapshot)
    wanted = mappings(changes, "changes")
    options = SimulationOptions(
        recreate=boolean(recreate, "recreate"), seed=None if seed is None else whole_number(seed, "seed")
    )
    default_namespace = text(namespace, "namespace")
    setup = _setup(cluster, config, kube_version, feature_gates)
    return simulated(cluster, setup, read_changes(wanted, load_documents), options=options, namespace=default_namespace)


def drain(
    snapshot: Snapshot,
    *nodes: str,
    force: bool = False,
    delete_emptydir_data: bool = False,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Simulation:
    """Return the effect of `kubectl drain` on these nodes, one after the other; without `nodes`, on every node by
    itself.

    The result's `drained` has each node's pods, what blocks their eviction, and where they are rescheduled. `config`,
    `kube_version`, and `feature_gates` are as in `explain`.
    """
    from kschedx.inquiry.what_if import drain_nodes
    from kschedx.kube.decoding import boolean, text
    from kschedx.simulate.simulator import SimulationOptions

    cluster = _snapshot(snapshot)
    options = SimulationOptions(
        force=boolean(force, "force"), delete_emptydir_data=boolean(delete_emptydir_data, "delete_emptydir_data")
    )
    setup = _setup(cluster, config, kube_version, feature_gates)
    names = tuple(text(name, "nodes") for name in nodes)
    return drain_nodes(cluster, setup, names or None, options=options)


def survive(
    snapshot: Snapshot,
    *targets: str,
    each: str | None = None,
    busiest: int = 0,
    drain: bool = False,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Survival:
    """Return which workloads survive the failure of nodes.

    `targets` fail together: node names, `zone=NAME`, `nodepool=NAME`, or `LABEL=VALUE`, and the `busiest` nodes. With
    `each` (`zone`, `nodepool`, `node`, or a label), every such failure is tried by itself. With neither, each zone is
    tried. `drain` evicts pods within their budgets; without it, all pods are lost at once. `config`, `kube_version`,
    and `feature_gates` are as in `explain`. Raises `errors.InputError` for input that cannot be used.
    """
    from kschedx.errors import InputError
    from kschedx.inquiry.survive import ZONE, OutageMode, each_failure, failure_of
    from kschedx.inquiry.survive import survive as survived
    from kschedx.kube.decoding import boolean, text, whole_number

    cluster = _snapshot(snapshot)
    names, number = [text(target, "targets") for target in targets], whole_number(busiest, "busiest")
    mode = OutageMode.DRAIN if boolean(drain, "drain") else OutageMode.OUTAGE
    if each is not None and (names or number):
        raise InputError("each tries failures one by one; targets and busiest name one failure")
    setup = _setup(cluster, config, kube_version, feature_gates)
    if names or number:
        return survived(cluster, setup, [failure_of(setup.scheduler_on(cluster).nodes, names, number)], mode=mode)
    return survived(cluster, setup, each_failure(cluster, text(each or ZONE, "each")), mode=mode)


def doctor(*paths: str) -> DumpDiagnosis:
    """Return what files and folders of a dump hold, lack, or mix, and which answers that affects."""
    from kschedx.doctor.contents import contents_of
    from kschedx.doctor.diagnosis import diagnose
    from kschedx.kube.decoding import path

    file_paths = [path(item, "path") for item in paths]
    return diagnose(contents_of(file_paths), file_paths)


def diff_profiles(
    snapshot: Snapshot,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    kube_versions: tuple[str, str] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    pods: str = "running",
) -> Comparison:
    """Compare where pods go with two scheduler configurations, or in two Kubernetes versions.

    `before` and `after` are KubeSchedulerConfigurations; None is the default. `kube_versions` are the versions of both
    sides, by default the cluster's. `pods` is `"running"`, each scheduled as if it were not running, or `"pending"`.
    `feature_gates` are as in `explain`. Raises `errors.InputError` for input that cannot be used.
    """
    from msgspec.structs import replace

    from kschedx.errors import require_one_of
    from kschedx.explain.profile_changes import Pair, changes
    from kschedx.inquiry.profile_difference import Comparison, compare_pods
    from kschedx.kube.decoding import text

    cluster = _snapshot(snapshot)
    require_one_of("pods", text(pods, "pods"), ("running", "pending"))
    versions = kube_versions or (None, None)
    first, second = (
        replace(_setup(cluster, config, version, feature_gates), name="default" if config is None else name)
        for name, config, version in zip(("before", "after"), (before, after), versions, strict=True)
    )
    pair = Pair(cluster, first, second)
    rows, left_out = pair.choose(pending=pods == "pending", running=pods == "running")
    return Comparison(
        before=first,
        after=second,
        changes=changes(first, second),
        summary=compare_pods(pair, rows, left_out),
        snapshot=cluster,
    )


def tune_profiles(
    snapshot: Snapshot,
    goal: str = "fewest-nodes",
    *,
    candidates: int = 200,
    seconds: int = 60,
    seed: int = 0,
    prices: Mapping[str, float] | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Tuning:
    """Search for the scheduler profile that reaches a goal on this cluster, by placing its running pods again.

    `goal` is `"fewest-nodes"`, `"least-fragmentation"`, `"spread"`, or `"cost"`, which needs the `prices` of nodes per
    hour, by name. At most `candidates` profiles are tried, for at most `seconds`; the same `seed` finds the same
    profile. `config` is the configuration whose profile is tuned; `kube_version` and `feature_gates` are as in
    `explain`. Raises `errors.InputError` for input that cannot be used.
    """
    from kschedx.errors import require_one_of
    from kschedx.kube.decoding import text, whole_number
    from kschedx.simulate.tuning import TuningGoal, base_of, tune

    cluster = _snapshot(snapshot)
    require_one_of("goal", text(goal, "goal"), TuningGoal)
    setup = _setup(cluster, config, kube_version, feature_gates)
    return tune(
        cluster,
        setup,
        base_of(config, setup),
        TuningGoal(goal),
        most=whole_number(candidates, "candidates"),
        seed=whole_number(seed, "seed"),
        seconds=whole_number(seconds, "seconds"),
        price_of=None if prices is None else prices.get,
    )


def _setup(
    cluster: Snapshot,
    config: object,
    kube_version: object,
    feature_gates: object,
    *,
    admission_plugins: Sequence[str] = (),
    without_unknown_plugins: bool = False,
    ask: Ask | None = None,
) -> Setup:
    """Return the scheduler of a question. Raises `InputError` for values of a wrong type, and `UndecidableError` if the
    snapshot may lack nodes or pods."""
    from kschedx.explain.missing_kinds import require_nodes_and_pods
    from kschedx.explain.setup import Setup
    from kschedx.kube.decoding import gates, mapping, text

    configuration = None if config is None else mapping(config, "config")
    version = None if kube_version is None else text(kube_version, "kube_version")
    checked_gates = None if feature_gates is None else gates(feature_gates)
    require_nodes_and_pods(cluster)
    return Setup.of_cluster(
        cluster,
        config=configuration,
        kube_version=version,
        feature_gates=checked_gates,
        admission_plugins=admission_plugins,
        without_unknown_plugins=without_unknown_plugins,
        ask=ask,
    )


def _target(given: object, argument: str) -> str | Mapping[str, object]:
    from kschedx.kube.decoding import mapping, text

    return text(given, argument) if isinstance(given, str) else mapping(given, argument)


def _snapshot(given: object) -> Snapshot:
    from kschedx.errors import InputError
    from kschedx.snapshot.snapshot import Snapshot

    if not isinstance(given, Snapshot):
        message = f"expected a snapshot, found {'None' if given is None else f'a {type(given).__name__}'}"
        raise InputError(message, hint="kschedx.load and kschedx.Snapshot.from_objects return one")
    return given


def fit(
    snapshot: Snapshot,
    pod: str | Mapping[str, object],
    *,
    replicas: int | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Fit:
    """Return how many more replicas of a pod fit, one after the other, or whether `replicas` more do. No pod is
    evicted.

    `pod` names a pod or a workload in the snapshot, or is a manifest of either, as in `explain`. `config`,
    `kube_version`, and `feature_gates` are as in `explain`.
    """
    from msgspec.structs import replace

    from kschedx.inquiry.ask import state_of_more
    from kschedx.inquiry.explanation import Explanation
    from kschedx.inquiry.fit import fit as fitted
    from kschedx.inquiry.target import new_pod
    from kschedx.kube.decoding import whole_number

    cluster = _snapshot(snapshot)
    setup = _setup(cluster, config, kube_version, feature_gates)
    new = new_pod(cluster, _target(pod, "pod"), setup)
    wanted = None if replicas is None else whole_number(replicas, "replicas")
    result = fitted(new.subject.snapshot, setup, new.subject.pod, manifest=new.workload, wanted=wanted)
    state = state_of_more(cluster, new.subject, setup, new.workload)
    return result if isinstance(state, Explanation) else replace(result, lifecycle=state)


def autoscale(
    snapshot: Snapshot,
    *,
    group_label: str,
    templates: Mapping[str, object] | None = None,
    flags: Mapping[str, FlagValue] | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    now: str | None = None,
) -> Autoscaling:
    """Run one loop of cluster-autoscaler over the pending pods.

    The snapshot has the autoscaler's status ConfigMap. A node belongs to the group that its label `group_label` names.
    `templates` are the cloud's templates of the groups, `{group: {"Node": manifest, "Pods": [manifest]}}`. `flags` is
    the autoscaler's command line, flag without dashes to value or list; `config` is its scheduler configuration; `now`
    is the time of the loop. Raises `errors.InputError` for input that cannot be used.
    """
    from kschedx.autoscaler.loop import Loop
    from kschedx.autoscaler.run import Autoscaling, setup_of
    from kschedx.kube.decoding import flags as checked_flags
    from kschedx.kube.decoding import mapping, text

    setup = setup_of(
        _snapshot(snapshot),
        group_label=text(group_label, "group_label"),
        templates=None if templates is None else mapping(templates, "templates"),
        flags=None if flags is None else checked_flags(flags, "flags"),
        config=None if config is None else mapping(config, "config"),
        kube_version=None if kube_version is None else text(kube_version, "kube_version"),
        now=None if now is None else text(now, "now"),
    )
    return Autoscaling(answer=Loop(setup).result, pods=setup.pods)


def deschedule(
    snapshot: Snapshot,
    policy: Mapping[str, object],
    *,
    evictions: str = "api",
    rounds: int = 0,
    kube_version: str | None = None,
    now: object = None,
) -> Descheduling:
    """Run the descheduler with a DeschedulerPolicy, and return which pods it evicts, and why it does not evict the
    others.

    `policy` is a DeschedulerPolicy `descheduler/v1alpha2`. `evictions` is `"api"`, which respects PodDisruptionBudgets,
    or `"dry-run"`, in which every eviction succeeds, as with the descheduler's own `--dry-run`. With `rounds`, evicted
    pods are recreated and scheduled, and the descheduler runs up to that often, as on the command line. `now` is the
    time of the run, a text or a datetime. If the descheduler refuses the policy, the answer has an `error`. Raises
    `errors.InputError` for input that cannot be used.
    """
    from datetime import datetime

    from kschedx.descheduler.descheduling import deschedule as descheduled
    from kschedx.kube.decoding import mapping, text, whole_number

    if isinstance(now, datetime):
        now = now.astimezone().isoformat()
    cluster, most = _snapshot(snapshot), whole_number(rounds, "rounds")
    return descheduled(
        cluster,
        mapping(policy, "policy"),
        evictions=text(evictions, "evictions"),
        now=None if now is None else text(now, "now"),
        setup=_setup(cluster, None, kube_version, None) if most else None,
        rounds=most,
    )
