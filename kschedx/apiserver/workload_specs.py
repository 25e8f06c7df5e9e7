"""What an API server refuses in the spec of a workload, or in a class beside the template of its pods.

Upstream: pkg/apis/{apps,batch,scheduling}/validation, and ValidateReplicationControllerSpec in
pkg/apis/core/validation. Each function yields errors in upstream's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedx.api.decode import without_nulls
from kschedx.api.field_errors import as_json, forbidden, invalid, not_supported, quoted, required
from kschedx.api.names import dns_label_errors
from kschedx.api.priority import BUILT_IN_CLASSES
from kschedx.api.validation import PREEMPTION_POLICIES
from kschedx.api.validation_parts import syntax
from kschedx.apiserver.shares import NEGATIVE, at_most_all, is_zero, validate_share
from kschedx.errors import InputError

Errors = Iterator[InputError]
Json = Mapping[str, object]

_LONGEST_CRON_JOB = 52
_LONGEST_LABEL = 63
_HIGHEST_OF_USERS = 1_000_000_000
_SYSTEM = "system-"
_FIELDS_OF_CRON = 5


def workload_spec(kind: str, spec: Json) -> Errors:
    """Of a workload of apps/v1, batch/v1 or v1, by its kind; what concerns its selector is not looked at here."""
    spec = _map(without_nulls(spec))
    match kind:
        case "Deployment":
            yield from _nonnegative(spec, "spec", "replicas")
            yield from _always("ReplicaSet", _map(spec.get("template")))
            yield from _deployment_strategy(_map(spec.get("strategy")))
            yield from _nonnegative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
            deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
            if isinstance(deadline, int) and isinstance(ready, int) and deadline <= ready:
                yield invalid("spec.progressDeadlineSeconds", str(deadline), "must be greater than minReadySeconds")
        case "ReplicaSet" | "ReplicationController":
            yield from _nonnegative(spec, "spec", "minReadySeconds", "replicas")
            yield from _always(kind, _map(spec.get("template")))
        case "DaemonSet":
            yield from _always(kind, _map(spec.get("template")))
            yield from _nonnegative(spec, "spec", "minReadySeconds")
            yield from _daemon_set_strategy(_map(spec.get("updateStrategy")))
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
    name, value = str(_map(manifest.get("metadata")).get("name") or ""), manifest.get("value") or 0
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
    spec = _map(template.get("spec"))
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
            said = _map(rolling)
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
            said, where = _map(strategy.get("rollingUpdate")), f"{field}.rollingUpdate"
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
    strategy = _map(spec.get("updateStrategy"))
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type") or "RollingUpdate":
        case "OnDelete":
            if rolling is not None:
                detail = "only allowed for updateStrategy 'RollingUpdate'"
                yield invalid("spec.updateStrategy.rollingUpdate", _partition_shown(_map(rolling)), detail)
        case "RollingUpdate":
            yield from _nonnegative(_map(rolling), "spec.updateStrategy.rollingUpdate", "partition")
        case kind:
            shown = "null" if rolling is None else _partition_shown(_map(rolling))
            shown = f'{{"Type":{as_json(kind)},"RollingUpdate":{shown}}}'
            yield invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    retention = _map(spec.get("persistentVolumeClaimRetentionPolicy"))
    for field in ("whenDeleted", "whenScaled"):
        kept = retention.get(field)
        if kept and kept not in ("Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            yield not_supported(where, quoted(str(kept)), ("Retain", "Delete"))
    yield from _nonnegative(spec, "spec", "replicas", "minReadySeconds")
    yield from _nonnegative(_map(spec.get("ordinals")), "spec.ordinals", "start")
    service = spec.get("serviceName")
    if isinstance(service, str) and service:
        yield from syntax(dns_label_errors, service, "spec.serviceName")
    yield from _always("StatefulSet", _map(spec.get("template")))


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
    yield from _job_template(_map(_map(spec.get("template")).get("spec")), f"{field}.template.spec", on_failure)


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
    job = _map(_map(spec.get("jobTemplate")).get("spec"))
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
    said = _map(rolling)
    shares = (
        f'{{"MaxUnavailable":{as_json(said.get("maxUnavailable", 0))},"MaxSurge":{as_json(said.get("maxSurge", 0))}}}'
    )
    return f'{{"Type":{as_json(strategy.get("type"))},"RollingUpdate":{"null" if rolling is None else shares}}}'


def _partition_shown(rolling: Json) -> str:
    unavailable = as_json(rolling.get("maxUnavailable"))
    return f'{{"Partition":{as_json(rolling.get("partition", 0))},"MaxUnavailable":{unavailable}}}'


def _map(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}
