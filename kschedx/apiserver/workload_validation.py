"""Numbers of pods, and percentages of them.

Upstream: ValidatePositiveIntOrPercent and IsNotMoreThan100Percent in pkg/apis/apps/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from kschedx.apiserver.placement_validation import validate_label_selector, validate_labels
from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES
from kschedx.apiserver.validation import PREEMPTION_POLICIES, validate_claim_spec
from kschedx.errors import InputError, Place
from kschedx.kube.decoding import decode, is_stored, without_nulls
from kschedx.kube.field_errors import as_json, forbidden, invalid, not_supported, quoted, required, syntax
from kschedx.kube.names import dns_label_errors, dns_subdomain_errors, label_key_errors
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.types import PersistentVolumeClaimSpec
from kschedx.kube.workloads import MAKING_PODS

NEGATIVE = "must be greater than or equal to 0"
_PERCENT = re.compile(r"[0-9]+%")
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_MORE_THAN_ALL = re.compile(r"0*+(?!100%)[1-9][0-9]{2,}+%")
_SOME = re.compile(r"0*+[1-9][0-9]*+%|[+-]?0*+[1-9][0-9]*+")


def validate_share(share: object, field: str) -> Iterator[InputError]:
    if isinstance(share, str) and not _PERCENT.fullmatch(share):
        yield invalid(field, as_json(share), _NO_PERCENT)
    elif isinstance(share, int) and share < 0:
        yield invalid(field, str(share), NEGATIVE)


def at_most_all(share: object, field: str) -> Iterator[InputError]:
    if isinstance(share, str) and _MORE_THAN_ALL.fullmatch(share):
        yield invalid(field, as_json(share), "must not be greater than 100%")


def is_zero(share: object) -> bool:
    """Go reads a text that is no number as 0."""
    return not share if isinstance(share, int) else not _SOME.fullmatch(str(share))


# What an API server refuses about a PodDisruptionBudget.
#
# Upstream: ValidatePodDisruptionBudgetSpec in pkg/apis/policy/validation.

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def validate_budget(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """Of a PodDisruptionBudget; nothing for any other kind. Its selector is not looked at here."""
    spec = without_nulls(manifest.get("spec"))
    if manifest.get("kind") != "PodDisruptionBudget" or not isinstance(spec, Mapping):
        return
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        share = spec.get(field)
        yield from validate_share(share, f"spec.{field}")
        yield from at_most_all(share, f"spec.{field}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if isinstance(policy, str) and policy not in _POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", quoted(policy), _POLICIES)


def _shown(spec: Mapping[str, object]) -> str:
    """As Go writes it, whose fields have no other names."""
    written = spec.get("selector")
    selector = None if written is None else decode(msgspec.json.encode(written), LabelSelector)
    fields = {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": msgspec.to_builtins(selector, order="deterministic"),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
    return as_json(fields)


# What an API server refuses in the spec of a workload, or in a class beside the template of its pods.
#
# Upstream: pkg/apis/{apps,batch,scheduling}/validation, and ValidateReplicationControllerSpec in
# pkg/apis/core/validation. Each function yields errors in upstream's order.

Errors = Iterator[InputError]
Json = Mapping[str, object]

_LONGEST_CRON_JOB = 52
_LONGEST_LABEL = 63
_HIGHEST_OF_USERS = 1_000_000_000
_SYSTEM = "system-"
_FIELDS_OF_CRON = 5


def workload_spec(kind: str, spec: Json) -> Errors:
    """Of a workload of apps/v1, batch/v1 or v1, by its kind; what concerns its selector is not looked at here."""
    spec = _mapping(without_nulls(spec))
    match kind:
        case "Deployment":
            yield from _nonnegative(spec, "spec", "replicas")
            yield from _always("ReplicaSet", _mapping(spec.get("template")))
            yield from _deployment_strategy(_mapping(spec.get("strategy")))
            yield from _nonnegative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
            deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
            if isinstance(deadline, int) and isinstance(ready, int) and deadline <= ready:
                yield invalid("spec.progressDeadlineSeconds", str(deadline), "must be greater than minReadySeconds")
        case "ReplicaSet" | "ReplicationController":
            yield from _nonnegative(spec, "spec", "minReadySeconds", "replicas")
            yield from _always(kind, _mapping(spec.get("template")))
        case "DaemonSet":
            yield from _always(kind, _mapping(spec.get("template")))
            yield from _nonnegative(spec, "spec", "minReadySeconds")
            yield from _daemon_set_strategy(_mapping(spec.get("updateStrategy")))
            yield from _nonnegative(spec, "spec", "revisionHistoryLimit")
        case "StatefulSet":
            yield from _stateful_set(spec)
        case "Job":
            # an API server makes one pod of a Job that says neither how many nor how many at a time
            yield from _job(spec if "parallelism" in spec else {"completions": 1, **spec}, "spec")
            yield from _own_selector(spec)
        case "CronJob":
            yield from _cron_job(spec)


def name_of_jobs(kind: str, name: str) -> Errors:
    """Which a label of the pods holds, and in front of a time a Job's name."""
    if kind == "CronJob" and len(name) > _LONGEST_CRON_JOB:
        yield invalid("metadata.name", quoted(name), f"must be no more than {_LONGEST_CRON_JOB} characters")
    if kind == "Job" and len(name) > _LONGEST_LABEL:
        yield invalid("metadata.labels", quoted(name), f"must be no more than {_LONGEST_LABEL} bytes")


def priority_class(manifest: Json) -> Errors:
    name, value = str(_mapping(manifest.get("metadata")).get("name") or ""), manifest.get("value") or 0
    if name.startswith(_SYSTEM):
        reserved = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. error:"
        known = BUILT_IN_CLASSES.get(name)
        if known is None:
            yield forbidden("metadata.name", f"{reserved} {name} is not a known system priority class")
        elif known.value != value:
            yield forbidden("metadata.name", f"{reserved} value of {name} PriorityClass must be {known.value}")
    elif isinstance(value, int) and value > _HIGHEST_OF_USERS:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST_OF_USERS}")
    policy = manifest.get("preemptionPolicy")
    if policy is not None and policy not in PREEMPTION_POLICIES:
        yield not_supported("preemptionPolicy", quoted(str(policy)), PREEMPTION_POLICIES)


# --- apps/v1


def _always(kind: str, template: Json) -> Errors:
    """Of pods that are to run until somebody deletes them."""
    spec = _mapping(template.get("spec"))
    yield from _no_ephemeral(spec, "spec.template.spec")
    policy = spec.get("restartPolicy")
    if policy and policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", quoted(str(policy)), ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _no_ephemeral(spec: Json, field: str) -> Errors:
    if spec.get("ephemeralContainers"):
        yield forbidden(f"{field}.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _deployment_strategy(strategy: Json) -> Errors:
    field, rolling = "spec.strategy", strategy.get("rollingUpdate")
    match strategy.get("type") or "RollingUpdate":
        case "Recreate":
            if rolling is not None:
                yield forbidden(f"{field}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
        case "RollingUpdate":
            said = _mapping(rolling)
            unavailable, surge = said.get("maxUnavailable", "25%"), said.get("maxSurge", "25%")
            yield from validate_share(unavailable, f"{field}.rollingUpdate.maxUnavailable")
            yield from validate_share(surge, f"{field}.rollingUpdate.maxSurge")
            if is_zero(unavailable) and is_zero(surge):
                where, detail = f"{field}.rollingUpdate.maxUnavailable", "may not be 0 when `maxSurge` is 0"
                yield invalid(where, as_json(unavailable), detail)
            yield from at_most_all(unavailable, f"{field}.rollingUpdate.maxUnavailable")
        case _:
            yield not_supported(field, _strategy_shown(strategy), ("Recreate", "RollingUpdate"))


def _daemon_set_strategy(strategy: Json) -> Errors:
    field = "spec.updateStrategy"
    match strategy.get("type") or "RollingUpdate":
        case "OnDelete":
            return
        case "RollingUpdate":
            said, where = _mapping(strategy.get("rollingUpdate")), f"{field}.rollingUpdate"
            unavailable, surge = said.get("maxUnavailable", 1), said.get("maxSurge", 0)
            for name, share in (("maxUnavailable", unavailable), ("maxSurge", surge)):
                yield from validate_share(share, f"{where}.{name}")
            for name, share in (("maxUnavailable", unavailable), ("maxSurge", surge)):
                yield from at_most_all(share, f"{where}.{name}")
            if not is_zero(unavailable) and not is_zero(surge):
                yield invalid(f"{where}.maxSurge", as_json(surge), "may not be set when maxUnavailable is non-zero")
            elif is_zero(unavailable) and is_zero(surge):
                yield required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")
        case _:
            yield not_supported(field, _strategy_shown(strategy), ("RollingUpdate", "OnDelete"))


def _stateful_set(spec: Json) -> Errors:
    policy = spec.get("podManagementPolicy")
    if policy and policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", quoted(str(policy)), "must be 'OrderedReady' or 'Parallel'")
    strategy = _mapping(spec.get("updateStrategy"))
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type") or "RollingUpdate":
        case "OnDelete":
            if rolling is not None:
                detail = "only allowed for updateStrategy 'RollingUpdate'"
                yield invalid("spec.updateStrategy.rollingUpdate", _partition_shown(_mapping(rolling)), detail)
        case "RollingUpdate":
            yield from _nonnegative(_mapping(rolling), "spec.updateStrategy.rollingUpdate", "partition")
        case kind:
            shown = "null" if rolling is None else _partition_shown(_mapping(rolling))
            shown = f'{{"Type":{as_json(kind)},"RollingUpdate":{shown}}}'
            yield invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    retention = _mapping(spec.get("persistentVolumeClaimRetentionPolicy"))
    for field in ("whenDeleted", "whenScaled"):
        kept = retention.get(field)
        if kept and kept not in ("Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            yield not_supported(where, quoted(str(kept)), ("Retain", "Delete"))
    yield from _nonnegative(spec, "spec", "replicas", "minReadySeconds")
    yield from _nonnegative(_mapping(spec.get("ordinals")), "spec.ordinals", "start")
    service = spec.get("serviceName")
    if isinstance(service, str) and service:
        yield from syntax(dns_label_errors, service, "spec.serviceName")
    yield from _always("StatefulSet", _mapping(spec.get("template")))


# --- batch/v1


def _job(spec: Json, field: str) -> Errors:
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from _nonnegative(spec, field, *numbers, "backoffLimitPerIndex", "maxFailedIndexes")
    per_index, most_failed = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if most_failed is not None and per_index is None:
        yield required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        yield not_supported(f"{field}.completionMode", quoted(str(mode)), ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{field}.completions", "when completion mode is Indexed")
    if mode in (None, "NonIndexed"):
        for name, number in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", most_failed)):
            if number is not None:
                yield invalid(f"{field}.{name}", str(number), "requires indexed completion mode")
    replacement, on_failure = spec.get("podReplacementPolicy"), spec.get("podFailurePolicy")
    allowed = ("Failed", "TerminatingOrFailed") if on_failure is None else ("Failed",)
    if replacement is not None and replacement not in allowed:
        yield not_supported(f"{field}.podReplacementPolicy", quoted(str(replacement)), allowed)
    yield from _job_template(_mapping(_mapping(spec.get("template")).get("spec")), f"{field}.template.spec", on_failure)


def _job_template(spec: Json, field: str, on_failure: object) -> Errors:
    yield from _no_ephemeral(spec, field)
    policy = spec.get("restartPolicy")
    if policy in (None, "", "Always"):
        yield required(f"{field}.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(f"{field}.restartPolicy", quoted(str(policy)), ("OnFailure", "Never"))
    elif on_failure is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(f"{field}.restartPolicy", quoted(str(policy)), detail)


def _own_selector(spec: Json) -> Errors:
    """A Job's is made for it, unless somebody wants to do that by hand."""
    selector = spec.get("selector")
    if spec.get("manualSelector"):
        if selector is None:
            yield required("spec.selector", "")
    elif selector is not None:
        yield invalid("spec.selector", as_json(selector), "`selector` not auto-generated")


def _cron_job(spec: Json) -> Errors:
    schedule = spec.get("schedule")
    if not schedule:
        yield required("spec.schedule", "")
    elif isinstance(schedule, str):
        yield from _schedule(schedule)
    yield from _nonnegative(spec, "spec", "startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone == "":
        yield invalid("spec.timeZone", '""', "timeZone must be nil or non-empty string")
    elif isinstance(zone, str) and zone.casefold() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid("spec.timeZone", quoted(zone), detail)
    policy = spec.get("concurrencyPolicy")
    if policy and policy not in ("Allow", "Forbid", "Replace"):
        yield not_supported("spec.concurrencyPolicy", quoted(str(policy)), ("Allow", "Forbid", "Replace"))
    job = _mapping(_mapping(spec.get("jobTemplate")).get("spec"))
    yield from _job(job, "spec.jobTemplate.spec")
    if job.get("selector") is not None:
        yield invalid("spec.jobTemplate.spec.selector", as_json(job["selector"]), "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported("spec.jobTemplate.spec.manualSelector", "true", ("nil", "false"))
    yield from _nonnegative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def _schedule(schedule: str) -> Errors:
    """As far as its form goes: which numbers a field may have, is not looked at."""
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", quoted(schedule), detail)
        return
    fields = schedule.split()
    if not schedule.startswith("@") and len(fields) != _FIELDS_OF_CRON:
        detail = f"expected exactly {_FIELDS_OF_CRON} fields, found {len(fields)}: [{' '.join(fields)}]"
        yield invalid("spec.schedule", quoted(schedule), detail)


# --- numbers


def _nonnegative(spec: Json, field: str, *names: str) -> Errors:
    for name in names:
        number = spec.get(name)
        if isinstance(number, int) and number < 0:
            yield invalid(f"{field}.{name}", str(number), NEGATIVE)


def _strategy_shown(strategy: Json) -> str:
    """As Go writes it, whose fields have no other names."""
    rolling = strategy.get("rollingUpdate")
    said = _mapping(rolling)
    shares = (
        f'{{"MaxUnavailable":{as_json(said.get("maxUnavailable", 0))},"MaxSurge":{as_json(said.get("maxSurge", 0))}}}'
    )
    return f'{{"Type":{as_json(strategy.get("type"))},"RollingUpdate":{"null" if rolling is None else shares}}}'


def _partition_shown(rolling: Json) -> str:
    unavailable = as_json(rolling.get("maxUnavailable"))
    return f'{{"Partition":{as_json(rolling.get("partition", 0))},"MaxUnavailable":{unavailable}}}'


def _mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


# What an API server refuses about a workload itself, classes and claims, not about the pods of a template.
#
# Upstream: ValidateDeploymentSpec, ValidateStatefulSetSpec, ValidateDaemonSetSpec in pkg/apis/apps/validation,
# ValidatePersistentVolumeClaim in pkg/apis/core/validation.

SELECTING = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_PATCH = "of a patch, what it comes to: kubectl kustomize FOLDER | kschedx why -"


def validate_workload(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """The name, labels and spec of any workload and class; and for one of apps/v1, that its selector is there and
    selects its own pods. Of what an API server has stored nothing but that is looked at."""
    kind, spec, metadata = str(manifest.get("kind")), _map(manifest.get("spec")), _map(manifest.get("metadata"))
    match (manifest.get("apiVersion"), kind):
        case _ if is_stored(manifest):
            pass
        case ("apps/v1" | "batch/v1" | "v1", _) if kind in MAKING_PODS:
            yield from _metadata(manifest)
            yield from workload_spec(kind, spec)
        case (_, _) if kind in MAKING_PODS:
            yield from _name(kind, metadata)
        case ("v1", "PersistentVolumeClaim"):
            yield from _metadata(manifest)
        case ("policy/v1", "PodDisruptionBudget"):  # whose name nobody looks at
            yield from _metadata({**manifest, "metadata": {**metadata, "name": None}})
            selector = decode(msgspec.json.encode(_map(spec.get("selector"))), LabelSelector)
            yield from validate_label_selector(selector, "spec.selector")
        case ("scheduling.k8s.io/v1", "PriorityClass"):
            yield from _metadata(manifest)
            yield from priority_class(manifest)
    if (manifest.get("apiVersion"), kind) == ("v1", "ReplicationController"):
        yield from _selects_own_pods(_map(spec.get("selector")), spec)
    if manifest.get("apiVersion") != "apps/v1" or manifest.get("kind") not in SELECTING:
        return
    written = spec.get("selector")
    if not _map(spec.get("template")):
        return
    if not isinstance(written, Mapping):
        hint = _PATCH if _is_of_patch(_map(spec.get("template"))) else ""
        yield InputError("Required value", place=Place(field="spec.selector"), hint=hint)
        return

    selector = decode(msgspec.json.encode(written), LabelSelector)
    faults = list(validate_label_selector(selector, "spec.selector"))
    yield from faults
    if not selector.match_labels and not selector.match_expressions:
        of = "deployment" if kind == "ReplicaSet" else kind.lower()
        yield invalid("spec.selector", "{}", f"empty selector is invalid for {of}")
    elif not faults and not compile_selector(selector).matches(_labels_of_template(spec)):
        yield _not_selected(_labels_of_template(spec))


def _selects_own_pods(selector: Mapping[str, object], spec: Mapping[str, object]) -> Iterator[InputError]:
    """Of a ReplicationController, whose selector is that of its template's labels where it has none."""
    labels = _labels_of_template(spec)
    if not selector and not labels:
        yield InputError("Required value", place=Place(field="spec.selector"))
    elif any(labels.get(str(key)) != value for key, value in selector.items()):
        yield _not_selected(labels)


def _not_selected(labels: Mapping[str, str]) -> InputError:
    shown = msgspec.json.encode(dict(sorted(labels.items()))).decode() if labels else "null"
    return invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")


def _labels_of_template(spec: Mapping[str, object]) -> dict[str, str]:
    labels = _map(_map(_map(spec.get("template")).get("metadata")).get("labels"))
    return {str(key): str(value) for key, value in labels.items()}


def validate_claims(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """For a PersistentVolumeClaim, and for the claims that a StatefulSet's controller would create."""
    match (manifest.get("apiVersion"), manifest.get("kind")):
        case ("v1", "PersistentVolumeClaim"):
            yield from _claim(manifest, "spec")
        case ("apps/v1", "StatefulSet"):
            templates = _map(manifest.get("spec")).get("volumeClaimTemplates")
            for index, template in enumerate(templates if isinstance(templates, list) else ()):
                yield from _claim(_map(template), f"spec.volumeClaimTemplates[{index}].spec")


def _claim(manifest: Mapping[str, object], field: str) -> Iterator[InputError]:
    spec = decode(msgspec.json.encode(_map(manifest.get("spec"))), PersistentVolumeClaimSpec)
    return validate_claim_spec(spec, field)


def _metadata(manifest: Mapping[str, object]) -> Iterator[InputError]:
    metadata = _map(manifest.get("metadata"))
    yield from _name(str(manifest.get("kind")), metadata)
    labels = {str(key): value for key, value in _map(metadata.get("labels")).items() if isinstance(value, str)}
    yield from validate_labels(labels, "metadata.labels")
    for key in sorted(map(str, _map(metadata.get("annotations")))):
        yield from (invalid("metadata.annotations", quoted(key), text) for text in label_key_errors(key.lower()))


def _name(kind: str, metadata: Mapping[str, object]) -> Iterator[InputError]:
    name = metadata.get("name")
    if not isinstance(name, str):
        return
    yield from syntax(dns_label_errors if kind == "StatefulSet" else dns_subdomain_errors, name, "metadata.name")
    yield from name_of_jobs(kind, name)


def _is_of_patch(template: Mapping[str, object]) -> bool:
    """As one repeats only what it changes, and so has no labels, or no images."""
    containers = _map(template.get("spec")).get("containers")
    has_images = isinstance(containers, list) and all("image" in _map(one) for one in containers)
    return not has_images or not _map(template.get("metadata")).get("labels")


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
