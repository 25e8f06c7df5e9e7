"""Fixes for pods that the API server refuses.

Each is tried before it is printed: the pod is admitted and goes through a scheduling cycle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from kschedx.apiserver.admission import TOLERATIONS_WHITELIST, PodSecurity, conflicting_selectors, refused_tolerations
from kschedx.apiserver.defaulting import default_pod
from kschedx.apiserver.pod_classes import global_default
from kschedx.apiserver.pod_security import PREFIX, LevelVersion, PodSecurityLevel, kubelet_spec, security_view
from kschedx.controllers.pod_lifecycle import backend_state, unready_pods
from kschedx.controllers.stateful_set import over_quota
from kschedx.controllers.workloads import member_rows, workload_of
from kschedx.errors import InputError, NotAdmittedError, UndecidableError, closest
from kschedx.explain.admission import enforced_standard, quotas_of, service_accounts
from kschedx.explain.advice import FixGroup
from kschedx.explain.hardware import admin_access
from kschedx.explain.setup import Subject
from kschedx.fixes.changes import apply_patch
from kschedx.fixes.owners import ClaimTemplate, owner_change, template_owner
from kschedx.fixes.phrases import REFUSALS, advice_for
from kschedx.fixes.pod_edits import ENFORCE, enforce_level, secure_fields
from kschedx.fixes.raised_quota import (
    EXCEEDED,
    RolloutQuota,
    also_refused,
    amounts_within,
    below_defaults,
    finished_jobs,
    finished_pods,
    format_like,
    raised_quota,
    wait_for_leaving,
)
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.scc_fixes import scc_fixes
from kschedx.inquiry.stopped_pod import Patch, StoppedPod, fix_with_outcome
from kschedx.kube.conditions import condition_of
from kschedx.kube.decoding import Manifest, decode, encode, list_at, map_at
from kschedx.kube.documents import Change, Target, pointer, remove_field, set_field, with_spec
from kschedx.kube.escaping import shell_command, why_command
from kschedx.kube.kinds import KINDS
from kschedx.kube.quantity import Quantity, parse_quantity
from kschedx.kube.tolerations import toleration_text
from kschedx.kube.types import LimitRange, Pod
from kschedx.kube.typos import nearest_name
from kschedx.kube.workloads import LONGEST_STATEFUL_SET_NAME, MAKING_PODS, claims_for, contains
from kschedx.patterns import lazy_pattern
from kschedx.releases.api_versions import has_other_fields, served_version
from kschedx.releases.dates import minor
from kschedx.snapshot.edits import with_applied
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_MOST_DELETED = 10
_USUAL = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "1Gi"}
"""Requests for a container without any, if a quota or a LimitRange requires them."""

_BOUND = lazy_pattern(
    r"(?P<rule>maximum|minimum) (?P<resource>\S+) usage per (?P<type>Container|Pod|PersistentVolumeClaim) "
    r"is (?P<bound>[^\s,.]+(?:\.\d+\S*)?)"
    r"(?:, but (?P<side>limit|request) is (?P<value>\S+)|\.\s+No (?P<absent>limit|request) is specified)"
)
_CLAIM = lazy_pattern(r'persistentvolumeclaims "(?P<name>[^"]+)" is forbidden')
_Resources = dict[str, dict[str, dict[str, str]]]  # container to `requests` and `limits` to resource to amount
_RATIO = lazy_pattern(r"(?P<resource>[^\s\[]+) max limit to request ratio per \S+ is (?P<ratio>[^\s,]+),")
_INVALID = lazy_pattern(r'(?:^ResourceClaim\S* "(?P<claim>[^"]+)")? is invalid: \[?(?P<field>[a-z]\S*): ')
_CONSTRAINT = lazy_pattern(r"^\[(?P<name>[^\]\s]+)\] (?P<rule>[^\n]+)")
_WARDEN = lazy_pattern(r'\[denied by (?P<name>[^\[\]]+)\]\W*(?P<rule>\w[^"\n]+)')
_KYVERNO = lazy_pattern(r"due to the following policies\s+(?P<name>[^\s:]+):")
_OF_CLASS = {
    "integer value of priority (": "priority",
    "value of PreemptionPolicy (": "preemptionPolicy",
    " Overhead ": "overhead",
}
"""Words in refusals about fields that a priority class or RuntimeClass sets, and the field to remove."""


_VIOLATED = lazy_pattern(r'violates PodSecurity "(?P<level>[a-z]+):(?P<version>[^"]+)"')
_SHOWN_NAMES = 3
_MOST_ADMITTED = 1_000  # the maximum number of missing pods that are tried


class Refusal(StoppedPod, frozen=True, kw_only=True):
    """A pod that is not created because it is refused."""

    def recreate_fix(self) -> Fix | None:
        """Return the fix to recreate a workload with a changed immutable field. A StatefulSet with the same selector
        adopts its pods."""
        if self.maker is None or self.maker.get("kind") not in MAKING_PODS:
            return None
        workload = workload_of(self.maker)
        stored = self.snapshot.manifest_of(workload) or {}
        rows = member_rows(self.snapshot, workload)
        selectors = [map_at(item, "spec").get("selector") for item in (stored, self.maker)]
        is_adopted = workload.kind == "StatefulSet" and contains(*selectors)
        others = {item: raw for item, raw in self.snapshot.workloads.items() if item != workload}
        template = f"kubectl delete {{}}/{{}} -n {{}}{' --cascade=orphan' if is_adopted else ''}"
        commands = [shell_command(template, workload.kind.lower(), workload.name, self._namespace)]
        if self.file not in ("", "-"):
            commands.append(shell_command("kubectl apply -f {} -n {}", Path(self.file), self._namespace))
        pods = count(len(rows), "pod")
        cost = "" if not rows else f"; it keeps its {pods}" if is_adopted else f"; this deletes its {pods}"
        target = self._workload_change([]).target
        return self._try(
            f"delete {workload.kind} {workload.name} and create it again{cost}",
            (Change(target=target, delete=True, orphan=is_adopted), Change(target=target, create=dict(self.maker))),
            snapshot=replace(self.snapshot.without_pods(rows), workloads=others),
            commands=tuple(commands),
        )

    def fixes(self, message: str) -> Iterator[Fix]:
        try:
            fixes = [fix for fix in self._message_fixes(message) if fix is not None]
            if not fixes and message not in self.refusals:  # after each, another refusal follows
                rest = replace(self, refusals=(*self.refusals, message))
                fixes = [fix for fix in rest._message_fixes(message) if fix is not None]
        except InputError:  # an amount in the message that no API server writes
            fixes = []
        yield from fixes or self._manual_fixes(message)

    def _next_fixes(self, message: str) -> Iterator[Fix]:
        known = (pattern.search(message) for pattern, _ in _FIXES if any(map(pattern.search, self.refusals)))
        if self.refusals and not any(known):
            yield from replace(self, refusals=(*self.refusals, message)).fixes(message)

    def _manual_fixes(self, message: str) -> Iterator[Fix]:
        """Yield what to correct if the pod template does not have what the message names: the dump lacks the rule, a
        webhook adds it, or the template has changed since."""
        where = "the pod" if self.maker is None else "the pod template"
        kind, name = str((self.maker or {}).get("kind") or ""), self._workload_name
        if kind == "StatefulSet" and f'"{name}-' in message and len(name) > LONGEST_STATEFUL_SET_NAME:
            most = f"a name of at most {LONGEST_STATEFUL_SET_NAME} characters"
            title = f"delete StatefulSet {name} and create it again with {most}: labels of its pods contain the name"
            yield Fix.untried(title)
        elif match := _INVALID.search(message):
            where = f"ResourceClaim {match['claim']}" if match["claim"] else where
            yield Fix.untried(f"correct {match['field']} in {where}")
        elif _RATIO.search(message) or _BOUND.search(message):
            command = shell_command("kubectl get limitrange -n {} -o yaml", self._namespace)
            what = f"requests and limits of {where}"
            what = "the size of the claim template" if "per PersistentVolumeClaim" in message else what
            yield Fix.untried(f"keep {what} within the LimitRange", command)
        elif advice := advice_for(REFUSALS, message):
            yield Fix.untried(advice)

    def _message_fixes(self, message: str) -> Iterator[Fix | None]:
        """Yield the fixes of the first rule whose pattern the message has."""
        pod = self
        if _CLAIM.search(message) and self.maker is not None:  # so its controller has not created the claim yet
            claims = claims_for(self.maker, self.pod.metadata.name)
            pod = replace(self, dependents=(*self.dependents, *claims))
        for pattern, fixes in _FIXES:
            if match := pattern.search(message):
                yield from fixes(pod, match)
                return

    def _admin_access_fixes(self, _match: re.Match[str]) -> Iterator[Fix | None]:
        yield Fix.of_advice(admin_access(self._namespace))

    def _limit_range_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for the rules of LimitRanges: maximum, minimum, and ratio of limits to requests."""
        message = match.string
        bounds, ratios = [*_BOUND.finditer(message)], [*_RATIO.finditer(message)]
        if ratios and "but no request is specified" in message:
            each = (f"limits.{ratio['resource']} at most {ratio['ratio']} times requests" for ratio in ratios)
            yield Fix.untried(f"set requests and limits of every container: {', '.join(each)}")
        elif len(bounds) + len(ratios) > 1:
            yield self._limit_ranges_fix(message)
        elif bounds:
            yield from self._bound_fixes(bounds[0])
        else:
            lower, higher = self._ratio_amounts(ratios[0]["resource"], ratios[0]["ratio"])
            for verb, wanted in (("lower", lower), ("raise", higher)):
                patch, phrases = self._resources(wanted)
                if patch:
                    yield self._patch_fix(f"{verb} {', '.join(phrases)}", patch)

    def _runtime_selector_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        title = f"remove {match['key']} from nodeSelector: RuntimeClass {self.pod.spec.runtime_class_name} sets it"
        yield self._patch_fix(title, [remove_field(f"/spec/nodeSelector/{pointer(match['key'])}")])

    @property
    def _namespace_rules(self) -> Mapping[str, str]:
        """The annotations of the pod's namespace that admission plugins read."""
        return self.snapshot.namespace_annotations.get(self._namespace, {})

    def _selector_fixes(self, _: re.Match[str]) -> Iterator[Fix | None]:
        """Yield the pod without the node selectors that contradict those of its namespace."""
        own, default = self.pod.spec.node_selector, self.snapshot.default_node_selector
        wrong = dict(conflicting_selectors(own, self._namespace_rules, default))
        theirs = list_names([f"{key}={value}" for key, value in wrong.items()], 3)
        mine = list_names([f"{key}={own[key]}" for key in wrong], 3)
        title = f"remove {mine} from nodeSelector: it conflicts with {theirs} of namespace {self._namespace}"
        patch = [remove_field(f"/spec/nodeSelector/{pointer(key)}") for key in wrong]
        yield self._patch_fix(title, patch) if wrong else None

    def _tolerations_fixes(self, _: re.Match[str]) -> Iterator[Fix | None]:
        """Yield the pod without the tolerations that the whitelist of its namespace does not cover."""
        wrong = [*refused_tolerations(self.pod.spec.tolerations, self._namespace_rules)]
        named = list_names([toleration_text(self.pod.spec.tolerations[index]) for index in wrong], 3)
        why = f"annotation {TOLERATIONS_WHITELIST} of namespace {self._namespace} does not allow"
        patch = [remove_field(f"/spec/tolerations/{index}") for index in reversed(wrong)]
        fix = self._patch_fix(f"remove toleration {named}, which {why}", patch) if wrong else None
        yield fix or Fix.untried(f"remove the tolerations that {why}")

    def _limit_ranges_fix(self, message: str) -> Fix | None:
        """Return the fix for several rules of LimitRanges at once."""
        wanted: _Resources = {}
        parts = [self._bound_amounts(match) for match in _BOUND.finditer(message)]
        parts += [self._ratio_amounts(match["resource"], match["ratio"])[0] for match in _RATIO.finditer(message)]
        for part in parts:
            for name, sides in part.items():
                for side, amounts in sides.items():
                    wanted.setdefault(name, {}).setdefault(side, {}).update(amounts)
        patch, phrases = self._resources(wanted)
        return self._patch_fix(f"set {', '.join(phrases)}", patch) if patch else None

    def _ratio_amounts(self, resource: str, ratio: str) -> tuple[_Resources, _Resources]:
        """Return the lower limits, and the higher requests, of containers with a larger ratio."""
        lower: _Resources = {}
        higher: _Resources = {}
        most = parse_quantity(ratio).scaled_value(-9)
        for _, name, container in self._containers() if most > 0 else ():
            request, limit = (_amount(container, side, resource) for side in ("requests", "limits"))
            if request is None or limit is None:
                continue
            if limit.scaled_value(_MILLI) * 10**9 <= most * request.scaled_value(_MILLI):
                continue
            allowed = request.scaled_value(_MILLI) * most // 10**9
            needed = -(-limit.scaled_value(_MILLI) * 10**9 // most)
            lower[name] = {"limits": {resource: format_like(request, allowed)}}
            higher[name] = {"requests": {resource: format_like(request, needed)}}
        return lower, higher

    def _above_limit_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for a request above its limit. The limit is in the template, or is a LimitRange's default, which
        can be overridden."""
        resource, limit = match["resource"], match["limit"]
        bound = parse_quantity(limit).scaled_value(_MILLI)
        lower: _Resources = {}
        higher: _Resources = {}
        is_default = True
        for _, name, container in self._containers():
            request, own = (map_at(container, "resources", side).get(resource) for side in ("requests", "limits"))
            if request is not None and parse_quantity(str(request)).scaled_value(_MILLI) > bound:
                is_default &= own is None
                lower[name] = {"requests": {resource: limit}}
                higher[name] = {"limits": {resource: str(request)}}
        ways = ("set" if is_default else "raise", higher), ("lower", lower)
        ranges = self.snapshot.limit_ranges.get(self._namespace, ()) if is_default else ()
        setting = [each.metadata.name for each in ranges if any(resource in item.default for item in each.spec.limits)]
        because = f": LimitRange {setting[0]} sets {limit} by default" if setting else ""
        for verb, wanted in ways if is_default else reversed(ways):
            patch, phrases = self._resources(wanted)
            if patch:
                yield self._patch_fix(f"{verb} {', '.join(phrases)}{because}", patch)

    def _class_field_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for a value that differs from the one of the pod's priority class or RuntimeClass."""
        field = _OF_CLASS[match[0]]
        removal = remove_field(f"/spec/{field}")
        same = (
            name
            for name, priority_class in self.snapshot.priority_classes.items()
            if priority_class.value == self.pod.spec.priority
        )
        if field == "priority" and (name := next(same, "")):
            patch = [removal, set_field("/spec/priorityClassName", name)]
            yield self._patch_fix(f"set priorityClassName to {name} instead of spec.priority", patch)
        yield self._patch_fix(f"remove spec.{field}: admission sets it", [removal])

    def _scoped_quota_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for limitedResources, with which an API server admits pods of a scope only to namespaces with a
        quota for it."""
        scope, operator, values = match["scope"], match["operator"], match["values"].split()
        own = self.pod.spec.priority_class_name if scope == "PriorityClass" else ""
        if own in values:
            operator, values = "In", [own]
        selected = {"scopeName": scope, "operator": operator, **({"values": values} if values else {})}
        hard, selector = {"pods": str(max(self.count, 10))}, {"matchExpressions": [selected]}
        spec = {"spec": {"hard": hard, "scopeSelector": selector}}
        named = f"{scope} {', '.join(values)}".strip()
        title, name = f"create a ResourceQuota with scope {named}", f"{own or scope.lower()}-pods"
        yield self._create_fix("v1", "ResourceQuota", name, spec, title=title)
        if own:
            yield self._patch_fix(f"remove priorityClassName {own}", [remove_field("/spec/priorityClassName")])

    def _scc_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        account = str(map_at(self.manifest, "spec").get("serviceAccountName") or "default")
        yield from scc_fixes(match.string, account, self._namespace)

    def _pod_security_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for a violation of the namespace's Pod Security Standard: the change of the pod, if that is
        enough, and a lower level."""
        violated = _VIOLATED.search(match.string)
        pod = default_pod(decode(encode(self.manifest, "pod"), Pod))
        namespace, snapshot = pod.metadata.namespace, self.snapshot
        if violated and not any(label.startswith(PREFIX) for label in snapshot.namespaces.get(namespace, {})):
            # the event shows the enforced level, which the dump lacks
            labels = {ENFORCE: violated["level"], f"{ENFORCE}-version": violated["version"]}
            snapshot = replace(snapshot, namespaces={**snapshot.namespaces, namespace: labels})
        standard = enforced_standard(snapshot, namespace, self.setup.release, self.maker) if violated else None
        if isinstance(standard, PodSecurity) and standard.refusal(pod, kubelet_spec(self.manifest)) is not None:
            refused = replace(self, pod=pod, snapshot=snapshot)
            of_pod, of_namespace = (*refused._with_context(standard),), (*refused._lower_level_fixes(standard),)
            yield from (*of_pod, *of_namespace) if of_pod[0].changes else (*of_namespace, *of_pod)
            return
        template = f"kubectl label namespace {{}} {PREFIX}enforce=privileged --overwrite"
        yield Fix.untried("meet the Pod Security Standard of the namespace in the pod template")
        yield Fix.untried(
            f"enforce a lower Pod Security level in namespace {self._namespace}, for all its pods",
            shell_command(template, self._namespace),
        )

    def _with_context(self, standard: PodSecurity) -> Iterator[Fix]:
        """Yield the fix that sets in the pod what the namespace requires. It also removes what the namespace forbids,
        which the pod may need."""
        secured, where = secure_fields(self.manifest), "pod" if self.maker is None else "pod template"
        manifest = None if secured is None else apply_patch(dict(self.manifest), secured.change.patch)
        left = standard.violations(self.pod, kubelet_spec(self.manifest if manifest is None else manifest))
        if secured is None or manifest is None or left:
            reasons = list_names([violation.reason for violation in left], 3, conjunction="and")
            then = (
                "and set what it requires"
                if standard.wanted.level is PodSecurityLevel.RESTRICTED
                else "if it works without"
            )
            yield Fix.untried(f"remove what {standard.wanted.level} forbids from the {where} ({reasons}), {then}")
            return
        owner = template_owner(self.snapshot, self.pod)
        change = secured.change if owner is None else owner_change(secured.change, owner, self.pod)
        costs = self._without_user if "runAsNonRoot" in secured.fields else ()
        title = f"set the securityContext that {standard.wanted.level} requires in the {where}"
        yield replace(self._secured_by(title, change, self.snapshot, manifest), costs=costs)

    @property
    def _without_user(self) -> tuple[str, ...]:
        """What the images of containers that may run as root must do."""
        judged_pod = security_view(self.pod, kubelet_spec(self.manifest))
        names = [
            container.name
            for container in judged_pod.containers
            if not (container.context.run_as_user or judged_pod.context.run_as_user)
        ]
        image = f"the image{'s' if len(names) > 1 else ''} of {list_names(names, _SHOWN_NAMES)}"
        return (f"{image} must set a non-root user, or set runAsUser",) if names else ()

    def _lower_level_fixes(self, standard: PodSecurity) -> Iterator[Fix]:
        """Yield the fix to enforce in the namespace the strictest level that admits the pod."""
        namespace, kubelet = self._namespace, kubelet_spec(self.manifest)
        for level in sorted(PodSecurityLevel, reverse=True):
            lower = replace(standard, wanted=LevelVersion(level, standard.wanted.minor))
            if level < standard.wanted.level and lower.refusal(self.pod, kubelet) is None:
                labels = {**self.snapshot.namespaces.get(namespace, {}), ENFORCE: str(level)}
                snapshot = replace(self.snapshot, namespaces={**self.snapshot.namespaces, namespace: labels})
                title = f"enforce {level} in namespace {namespace}, for all its pods"
                command = shell_command(f"kubectl label namespace {{}} {ENFORCE}={level} --overwrite", namespace)
                yield self._secured_by(title, enforce_level(namespace, level), snapshot, self.manifest, command)
                return

    def _secured_by(self, title: str, change: Change, snapshot: Snapshot, manifest: Manifest, *commands: str) -> Fix:
        """Return the fix; untried if something else refuses the pod then."""
        fix = Fix.untried(title, *commands, changes=(change,))
        try:
            return fix_with_outcome(fix, self.explain(self._admit(snapshot, manifest), self.setup))
        except UndecidableError:
            return fix
        except InputError as error:
            return Fix.untried(f"{title}; what refuses the pod then: {error}", *commands, changes=(change,))

    def _missing_amount_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for missing requests and limits: `requests.cpu for: app,sidecar; limits.memory for: app`. A
        container that is not in the pod template was added by a webhook; LimitRanges apply to it as well."""
        wanted: _Resources = {}
        for part in match["missing"].split("; "):
            resource, _, names = part.partition(" for: ")
            side, _, name = resource.partition(".")
            side, name = (side, name) if name else ("requests", side)
            for container in names.split(","):
                amount = self._usual_amount(container, side, name)
                wanted.setdefault(container, {}).setdefault(side, {})[name] = amount
        patch, phrases = self._resources(wanted)
        added = sorted(wanted.keys() - {name for _, name, _ in self._containers()})
        if not added:
            yield self._patch_fix(f"set {', '.join(phrases)}", patch)
        limits: dict[str, dict[str, str]] = {}
        for sides in wanted.values():
            for side, least in sides.items():
                defaults = limits.setdefault("defaultRequest" if side == "requests" else "default", {})
                defaults.update(
                    {name: max(amount, defaults.get(name, amount), key=_milli) for name, amount in least.items()}
                )
        spec = {"limits": [{"type": "Container", **limits}]}
        amounts = " and ".join(sorted({side for sides in wanted.values() for side in sides}))
        title = f"create a LimitRange with default {amounts}"
        fix = self._create_fix("v1", "LimitRange", f"{match['quota']}-defaults", {"spec": spec}, title=title)
        if added and fix is not None:
            which = f"container{'s' if len(added) > 1 else ''} {list_names(added, 3, conjunction='and')}"
            title = f"{title} for {which}, which a webhook adds"
            fix = Fix.untried(title, changes=fix.changes)
        yield fix

    def _usual_amount(self, name: str, side: str, resource: str) -> str:
        """Return what a container without this request or limit gets; a limit is at least the container's request."""
        usual = _USUAL.get(resource, "1")
        container = next((container for _, own, container in self._containers() if own == name), {})
        requested = map_at(container, "resources", "requests").get(resource) if side == "limits" else None
        return usual if requested is None else max(usual, str(requested), key=_milli)

    def _resources(self, wanted: Mapping[str, Mapping[str, Mapping[str, str]]]) -> tuple[Patch, list[str]]:
        """Return a patch that sets requests and limits of containers, and `requests.cpu of container app to 100m` for
        each amount."""
        patch: Patch = []
        alike: dict[tuple[str, str], list[str]] = {}
        for path, name, container in self._containers():
            if not (sides := wanted.get(name)):
                continue
            after = dict(map_at(container, "resources"))
            for side, amounts in sides.items():
                after[side] = {**map_at(after, side), **amounts}
                for resource, value in amounts.items():
                    alike.setdefault((f"{side}.{resource}", value), []).append(name)
            patch.append(set_field(f"{path}/resources", after))
        phrases = []
        for (what, value), names in alike.items():
            one = f"container{'' if len(names) == 1 else 's'} {list_names(names, len(names), conjunction='and')}"
            phrases.append(f"{what} of {one} to {value}")
        return patch, phrases

    def _containers(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Yield the path and the name of each container in the manifest, and the container."""
        for kind in ("initContainers", "containers"):
            for index, item in enumerate(list_at(self.manifest, "spec", kind)):
                if isinstance(item, Mapping):
                    yield f"/spec/{kind}/{index}", str(item.get("name")), item

    def _exceeded_quota_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        named = (quota for quota in quotas_of(self.snapshot) if quota.metadata.name == match["quota"])
        own = [quota for quota in named if quota.covers(self._namespace)]
        scopes = {scope.scope_name for quota in own for scope in quota.scopes}
        if "BestEffort" in scopes:
            first = next(iter(list_at(self.manifest, "spec", "containers")), {})
            resources = map_at(first, "resources") if isinstance(first, Mapping) else {}
            requests = {**map_at(resources, "requests"), "cpu": "100m", "memory": "128Mi"}
            patch = [set_field("/spec/containers/0/resources", {**resources, "requests": requests})]
            yield self._patch_fix("set requests: the quota counts only pods without any (BestEffort)", patch)
        chosen = self.pod.spec.priority_class_name if "PriorityClass" in scopes else ""
        title = f"remove priorityClassName {chosen}: the quota counts only pods of such classes"
        default = global_default(self.snapshot.priority_classes)  # which the pod then gets
        is_other = bool(chosen) and (default is None or default.metadata.name != chosen)
        without = self._patch_fix(title, [remove_field("/spec/priorityClassName")]) if is_other else None
        if finished := finished_pods(self.snapshot, self._namespace, match):
            commands = tuple(
                shell_command("kubectl delete pods -n {} --field-selector status.phase={}", self._namespace, phase)
                for phase in finished
            )
            what = count(finished.total(), "finished pod")
            yield Fix.untried(f"delete {what} of the namespace, which count/pods counts as well", *commands)
        if ended := finished_jobs(self.snapshot, self._namespace, match):
            gone = ended[:_MOST_DELETED]
            command = shell_command(f"kubectl delete job {'{} ' * len(gone)}-n {{}}", *gone, self._namespace)
            what = count(len(gone), "finished Job")
            yield Fix.untried(f"delete {what} of the namespace, which count/jobs.batch counts as well", command)
        leaving = wait_for_leaving(self.snapshot, self.setup.release, self._namespace, match, self.count)
        yield from map(Fix.untried, leaving)
        fixes = [without, self._raised_quotas(match)]
        yield from fixes if match["limited"].endswith("=0") else reversed(fixes)
        yield self._below_defaults(match)
        patch, phrases = self._resources(amounts_within([it[1:] for it in self._containers()], match, self.count))
        yield self._patch_fix(f"lower {', '.join(phrases)}", patch) if patch else None
        if (
            (rollout := self._rollout) is not None
            and rollout.is_surging
            and rollout.is_whole
            and rollout.suffices(match)
        ):
            rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
            data = (self._workload_name, self._namespace, {"spec": {"strategy": rolling}})
            command = shell_command("kubectl patch deployment/{} -n {} -p {}", *data)
            title = "set maxSurge: 0, maxUnavailable: 1, so that an old pod goes before a new one is created"
            yield Fix.untried(title, command, changes=(self._workload_change([set_field("/spec/strategy", rolling)]),))

    def _below_defaults(self, match: re.Match[str]) -> Fix | None:
        """Return the fix to request less than what a LimitRange sets by default."""
        ranges = self.snapshot.limit_ranges.get(self._namespace, ())
        wanted, names = below_defaults([it[1:] for it in self._containers()], ranges, match["requested"], _USUAL)
        patch, phrases = self._resources(wanted)
        default = "has a larger default" if len(names) == 1 else "have larger defaults"
        because = f"LimitRange {list_names(names, 2, conjunction='and')} {default}"
        return self._patch_fix(f"set {', '.join(phrases)}: {because}", patch) if patch else None

    def _raised_quotas(self, match: re.Match[str]) -> Fix | None:
        """Return the fix that raises a quota, and those that would refuse the pod after it. The API server names only
        the first of them."""
        last = raised_quota(self.snapshot, self._namespace, match, self.count)
        last = last if self._rollout is None else self._rollout.raised(last, match)
        raised = {match["quota"]: last}
        while last.changes and (after := EXCEEDED.search(self._refusal_in(last.snapshot))):
            if after["quota"] in raised:
                break
            last = raised[after["quota"]] = raised_quota(last.snapshot, self._namespace, after, self.count)
        title = f"raise {' and '.join(quota.title for quota in raised.values())}"
        commands = tuple(quota.command for quota in raised.values() if quota.command)
        changes = tuple(change for quota in raised.values() for change in quota.changes)
        fix = Fix.untried(title, *commands, changes=changes, of_group=FixGroup.CLUSTER)
        if last.changes:
            tried = self._try(title, changes, snapshot=last.snapshot, commands=commands)
            fix = tried or replace(fix, title=f"{title}; another rule may refuse the pod as well")
        others = [*also_refused(self.snapshot, self.pod, self.maker, match["quota"])]
        takes = f"unless {list_names(others, 2)}, refused as well, {'takes' if len(others) == 1 else 'take'} the room"
        return replace(fix, costs=(*fix.costs, takes)) if others else fix

    @property
    def _rollout(self) -> RolloutQuota | None:
        if self.maker is None or self.maker.get("kind") not in ("Deployment", "StatefulSet"):
            return None
        return RolloutQuota(snapshot=self.snapshot, release=self.setup.release, maker=self.maker, pod=self.pod)

    def _bound_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for a LimitRange's maximum or minimum."""
        is_most = match["rule"] == "maximum"
        if match["type"] == "PersistentVolumeClaim" and match["value"]:
            yield self._claim_size_fix(match)
        patch, phrases = self._resources(self._bound_amounts(match))
        if patch:
            verb = "set" if match["absent"] else "lower" if is_most else "raise"
            yield self._patch_fix(f"{verb} {', '.join(phrases)}", patch)
        if match["value"]:
            yield self._other_bound(match, "max" if is_most else "min")

    def _claim_size_fix(self, match: re.Match[str]) -> Fix | None:
        """Return the claim template with the size that a LimitRange permits."""
        named, owner = _CLAIM.search(match.string), template_owner(self.snapshot, self.pod)
        template = ClaimTemplate.of(named["name"], owner, self.pod) if named else None
        if template is None:
            return None
        title = f"set storage of {template.title} to {match['bound']}; the StatefulSet is deleted and created again"
        resources = {"requests": {match["resource"]: match["bound"]}}
        return Fix.untried(title, changes=template.changes({"resources": resources}, self._namespace))

    def _bound_amounts(self, match: re.Match[str]) -> _Resources:
        """Return the requests and limits that a maximum or minimum permits."""
        resource, bound = match["resource"], match["bound"]
        is_most = match["rule"] == "maximum"
        containers = [*self._containers()]
        limit = parse_quantity(bound).scaled_value(_MILLI)
        if match["type"] == "Pod" and is_most and len(containers) > 1:
            return self._shares(resource, limit)
        wanted: _Resources = {}
        for _, name, container in containers if match["type"] == "Container" or len(containers) == 1 else ():
            for side in ("requests", "limits"):
                quantity = _amount(container, side, resource)
                if quantity is None:
                    if match["absent"] and side.startswith(match["absent"]):
                        wanted.setdefault(name, {})[side] = {resource: bound}
                    continue
                amount = quantity.scaled_value(_MILLI)
                if (amount > limit) if is_most else (amount < limit):
                    wanted.setdefault(name, {})[side] = {resource: bound}
        return wanted

    def _shares(self, resource: str, most: int) -> _Resources:
        """Return the limits of containers, lowered by the same factor, with which the pod as a whole has at most `most`
        thousandths, and the requests above them."""
        counted = [
            (name, container)
            for path, name, container in self._containers()
            if path.startswith("/spec/containers/") or container.get("restartPolicy") == "Always"
        ]
        limited = [(*item, limit) for item in counted if (limit := _amount(item[1], "limits", resource)) is not None]
        total = sum(limit.scaled_value(_MILLI) for _, _, limit in limited)
        lower: _Resources = {}
        for name, container, limit in limited if total > most else ():
            share = limit.scaled_value(_MILLI) * most // total
            request = _amount(container, "requests", resource)
            is_above = request is not None and request.scaled_value(_MILLI) > share
            sides = ("limits", "requests") if is_above else ("limits",)
            lower[name] = {side: {resource: format_like(limit, share)} for side in sides}
        return lower

    def _other_bound(self, match: re.Match[str], side: str) -> Fix | None:
        resource, value, namespace = match["resource"], match["value"], self._namespace
        ranges = self.snapshot.limit_ranges.get(namespace, ())
        for bound in ranges:
            for index, item in enumerate(bound.spec.limits):
                bounds = getattr(item, side)
                if item.type != match["type"] or str(bounds.get(resource)) != match["bound"]:
                    continue
                changed = replace(item, **{side: {**bounds, resource: value}})
                limits = (*bound.spec.limits[:index], changed, *bound.spec.limits[index + 1 :])
                other: LimitRange = with_spec(bound, limits=limits)
                kept = tuple(other if this is bound else this for this in ranges)
                snapshot = replace(self.snapshot, limit_ranges={**self.snapshot.limit_ranges, namespace: kept})
                target = Target(api_version="v1", kind="LimitRange", namespace=namespace, name=bound.metadata.name)
                change = target.patched(set_field(f"/spec/limits/{index}/{side}/{pointer(resource)}", value))
                verb = "raise" if side == "max" else "lower"
                title = f"{verb} {side}.{resource} of LimitRange {bound.metadata.name} from {match['bound']} to {value}"
                return self._try(title, (change,), snapshot=snapshot)
        return None

    def _missing_class_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        name = match["name"]
        command = shell_command("kubectl create priorityclass {} --value=1000", name)
        create = self._create_fix("scheduling.k8s.io/v1", "PriorityClass", name, {"value": 1000}, command)
        yield from self._reference_fixes("priorityClassName", closest(name, self.snapshot.priority_classes), create)
        yield self._patch_fix(f"remove priorityClassName {name}", [remove_field("/spec/priorityClassName")])

    def _missing_runtime_class_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        name = match["name"]
        close = closest(self.pod.spec.runtime_class_name or "", self.snapshot.runtime_classes)
        create = Fix.untried(f"create RuntimeClass {name} where its runtime is installed")
        yield from self._reference_fixes("runtimeClassName", close, create)
        yield self._patch_fix(f"remove runtimeClassName {name}", [remove_field("/spec/runtimeClassName")])

    def _missing_account_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        name = match["name"]
        command = shell_command("kubectl create serviceaccount {} -n {}", name, self._namespace)
        close = nearest_name(name, service_accounts(self.snapshot, self._namespace))
        create = self._create_fix("v1", "ServiceAccount", name, {}, command, title=f"create service account {name}")
        yield from self._reference_fixes("serviceAccountName", close, create)

    def _reference_fixes(self, field: str, close: str, create: Fix | None) -> Iterator[Fix | None]:
        """Yield the pod with the object of a similar name in a field, and the creation of the missing object."""
        if close:
            yield self._patch_fix(f"set {field} to {close}", [set_field(f"/spec/{field}", close)])
        yield create

    def _missing_namespace_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        name = match["name"]
        if close := nearest_name(name, self.snapshot.namespaces):
            patch = [set_field("/metadata/namespace", close)]
            target = Target("v1", "Pod", self.pod.metadata.name, self._namespace)
            change = target.patched(*patch) if self.maker is None else self._workload_change(patch)
            manifest = apply_patch(dict(self.manifest), patch)
            yield self._try(f"set metadata.namespace to {close} in the manifest", (change,), manifest=manifest)
        command = shell_command("kubectl create namespace {}", name)
        yield self._create_fix("v1", "Namespace", name, {}, command, title=f"create namespace {name}")

    def _removed_version_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield the current API version of the kind. The removed ones set the selector of a workload by default."""
        if self.maker is None or self.maker.get("kind") != match["kind"]:
            return
        if match["kind"] not in MAKING_PODS:
            if version := served_version(minor(self.setup.release.version), match["kind"]):
                title = f"set its apiVersion to {version}"
                if has_other_fields(str(self.maker.get("apiVersion")), match["kind"]):
                    title = f"convert it to {version}, which has other fields"
                yield Fix.untried(title, of_group=FixGroup.WORKLOAD)
            return
        kind, spec = KINDS[match["kind"]], map_at(self.maker, "spec")
        current, patch = f"{kind.group}/v1", [set_field("/apiVersion", f"{kind.group}/v1")]
        labels = map_at(spec, "template", "metadata").get("labels")
        lacks_selector = kind.group == "apps" and not spec.get("selector") and bool(labels)
        if lacks_selector:
            patch.append(set_field("/spec/selector", {"matchLabels": labels}))
        selector = ", and its spec.selector to the labels of its template" if lacks_selector else ""
        yield self._try(f"set its apiVersion to {current}{selector}", (self._workload_change(patch),))

    def _dead_webhook_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield fixes for a webhook that the API server could not call."""
        name, pods = f"webhook {match['name']}", self.snapshot.pods
        namespace, known = match["namespace"] or "", self.snapshot.namespaces
        service = f": service {namespace}/{match['service']}" if namespace else ""
        if '" not found' in match.string or (namespace and known and namespace not in known):
            title = f"delete the configuration of {name}, if it is left over{service} does not exist"
            yield Fix.untried(title, by_default=FixGroup.CLUSTER)
        for key in unready_pods(self.snapshot, namespace):
            conditions = pods[pods.rows[key]].status.conditions
            if (state := condition_of(conditions, "PodScheduled", "False")) is not None:
                title = f"find a node for {key} first, which serves {name}: {state.message}"
                yield Fix.untried(title.rstrip(": ."), why_command(key), by_default=FixGroup.CLUSTER)
                break
        else:
            cause = backend_state(self.snapshot, namespace, match["service"]) if namespace else ""
            renew = f"renew the certificate of {name}, or its caBundle: the API server does not trust{service[1:]}"
            repair = f"repair what answers for {name}{service}{cause and f'; {cause}'}"
            yield Fix.untried(renew if "x509: " in match.string else repair, by_default=FixGroup.CLUSTER)
        yield Fix.untried(f"set failurePolicy Ignore of {name}, if pods may go without it", by_default=FixGroup.CLUSTER)

    def _webhook_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        """Yield the fix to change the pod template as the rule of a webhook requires, and the command that shows it."""
        why, title = match["why"] or "", f"webhook {match['name']}"
        commands: tuple[str, ...] = ()
        if rule := _CONSTRAINT.search(why):
            title = f"Gatekeeper's constraint {rule['name']} requires: {rule['rule']}"
            yield Fix.untried(f"change the pod template as {title}", "kubectl get constraints -o yaml")
            return
        if rule := _WARDEN.search(why):
            required = rule["rule"].rstrip(".\\")
            title = f"constraint {rule['name']} of GKE Autopilot requires: {required}"
            yield Fix.untried(f"change the pod template as {title}")
            return
        if "kyverno" in match["name"] and (rule := _KYVERNO.search(why)):
            template = "kubectl get clusterpolicies,policies -A --field-selector metadata.name={}"
            title, commands = f"Kyverno's policy {rule['name']}", (shell_command(template, rule["name"]),)
        yield Fix.untried(f"change the pod template as {title} requires", *commands)

    def _admission_policy_fixes(self, match: re.Match[str]) -> Iterator[Fix | None]:
        command = shell_command("kubectl get validatingadmissionpolicies {} -o yaml", match["name"])
        policy = f"ValidatingAdmissionPolicy {match['name']}"
        yield Fix.untried(f"change the pod template as {policy} requires", command)

    # --- trials

    def _create_fix(
        self, api_version: str, kind: str, name: str, body: Mapping[str, object], command: str = "", *, title: str = ""
    ) -> Fix | None:
        is_namespaced = kind not in ("Namespace", "PriorityClass")
        namespace = self._namespace if is_namespaced else ""
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
        target = Target(api_version=api_version, kind=kind, namespace=namespace, name=name)
        snapshot = with_applied(self.snapshot, [manifest])
        commands = (command,) if command else ()
        title, change = title or f"create {kind} {name}", Change(target=target, create=manifest)
        return self._try(title, (change,), snapshot=snapshot, commands=commands)

    def _admit(self, snapshot: Snapshot, manifest: Manifest) -> Subject:
        """Admit the next pod, which quotas count beside those of its controller. Raises `NotAdmittedError`."""
        subject = super()._admit(snapshot, manifest)
        refusal = over_quota(snapshot, subject.snapshot, subject.pod, self.setup.release)
        if EXCEEDED.search(refusal):  # other rules are checked above, with the template that the fix changes
            raise NotAdmittedError(refusal)
        return subject

    def _refusal_in(self, snapshot: Snapshot) -> str:
        """Return why the cluster refuses one of the missing pods; empty if it admits them."""
        try:
            subject = self._admit(snapshot, self.manifest)
        except (InputError, UndecidableError) as error:
            return str(error)
        number = min(self.count, _MOST_ADMITTED)
        return over_quota(snapshot, subject.snapshot, subject.pod, self.setup.release, number)


_FIXES = (
    (lazy_pattern(r"failed quota: (?P<quota>\S+): must specify (?P<missing>.+)"), Refusal._missing_amount_fixes),
    (EXCEEDED, Refusal._exceeded_quota_fixes),
    (_BOUND, Refusal._limit_range_fixes),
    (lazy_pattern(r"no PriorityClass with name (?P<name>\S+) was found"), Refusal._missing_class_fixes),
    (lazy_pattern("admin access to devices requires"), Refusal._admin_access_fixes),
    (lazy_pattern(r'serviceaccount "(?P<name>[^"]+)" not found'), Refusal._missing_account_fixes),
    (lazy_pattern(r'no matches for kind "(?P<kind>[^"]+)" in version'), Refusal._removed_version_fixes),
    (lazy_pattern(r'namespaces "(?P<name>[^"]+)" not found'), Refusal._missing_namespace_fixes),
    (lazy_pattern(r'RuntimeClass\S* "(?P<name>[^"]+)" not found'), Refusal._missing_runtime_class_fixes),
    (_RATIO, Refusal._limit_range_fixes),
    (
        lazy_pattern(r"must be less than or equal to (?P<resource>\S+) limit of (?P<limit>[^\s,\]]+)"),
        Refusal._above_limit_fixes,
    ),
    (
        lazy_pattern(
            r"insufficient quota to match these scopes: \[\{(?P<scope>\w+) (?P<operator>\w+) \[(?P<values>[^\]]*)\]"
        ),
        Refusal._scoped_quota_fixes,
    ),
    (lazy_pattern("violates PodSecurity"), Refusal._pod_security_fixes),
    (lazy_pattern("security context constraint|PodSecurityPolicy: unable"), Refusal._scc_fixes),
    (lazy_pattern(r"; pod\.spec\.nodeSelector\[(?P<key>[^\]]+)\] = "), Refusal._runtime_selector_fixes),
    (lazy_pattern("(?s)conflicts with its.*node label selector"), Refusal._selector_fixes),
    (lazy_pattern("conflict with its namespace whitelist"), Refusal._tolerations_fixes),
    (lazy_pattern("|".join(map(re.escape, _OF_CLASS))), Refusal._class_field_fixes),
    (
        lazy_pattern(
            r'failed calling webhook "(?P<name>[^"]+)"(?:.*?https://(?P<service>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc)?'
        ),
        Refusal._dead_webhook_fixes,
    ),
    (
        lazy_pattern(r'admission webhook "(?P<name>[^"]+)" denied the request(?:: (?P<why>.*))?', re.DOTALL),
        Refusal._webhook_fixes,
    ),
    (
        lazy_pattern(r"ValidatingAdmissionPolicy '(?P<name>[^']+)' .*?denied request: (?P<why>.*)", re.DOTALL),
        Refusal._admission_policy_fixes,
    ),
)
"""Patterns of refusals, in order, with their fixes. No snapshot contains the rules of the last three."""


_MILLI = -3  # the scale of milli-units: an int64 can hold petabytes of them


def _amount(container: Mapping[str, object], side: str, resource: str) -> Quantity | None:
    amount = map_at(container, "resources", side).get(resource)
    return None if amount is None else parse_quantity(str(amount))


def _milli(amount: str) -> int:
    return parse_quantity(amount).scaled_value(_MILLI)
