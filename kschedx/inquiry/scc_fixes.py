"""Fixes for pods that no SecurityContextConstraints of OpenShift, or no PodSecurityPolicy, allows."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.inquiry.fix import Fix
from kschedx.kube.escaping import shell_command
from kschedx.patterns import lazy_pattern
from kschedx.wording import list_names

_CONSTRAINED = lazy_pattern(r"[ ,\[](?:\.|(?=spec\.))(?P<field>[\w.\[\]]+): Invalid value")
_SET_BY_SCC = ("runAsUser", "fsGroup")
_GRANTING = (
    ("anyuid", lazy_pattern(r"(?:runAsUser|fsGroup)$")),
    ("hostmount-anyuid", lazy_pattern(r"(?:runAsUser|fsGroup|volumes\[\d+\])$")),
    ("hostnetwork-v2", lazy_pattern(r"host(?:Network|Port)$")),
    ("privileged", lazy_pattern(".")),
)
"""SecurityContextConstraints and the fields that they allow, the narrowest first; `volumes` is a hostPath volume."""
_ADMITTING = lazy_pattern(r"would validate successfully against the `(?P<name>[^`]+)`")


def scc_fixes(message: str, account: str, namespace: str) -> Iterator[Fix]:
    """Yield fixes for a refusal of a pod of a service account; most constraints set user and group themselves."""
    fields = list(dict.fromkeys(each["field"] for each in _CONSTRAINED.finditer(message)))
    is_of_user = bool(fields) and all(field.endswith(_SET_BY_SCC) for field in fields)
    named = list_names(fields, 3, conjunction="and")
    if "PodSecurityPolicy" in message:
        policy = f"a PodSecurityPolicy that allows {named}" if fields else "a PodSecurityPolicy"
        title = f"let service account {account} use {policy}, if the pod needs it"
        yield Fix.untried(title, "kubectl get podsecuritypolicies")
        if fields:
            yield Fix.untried(f"remove {named} from the pod template")
        return
    if is_of_user:
        yield Fix.untried(f"remove {named} from the pod template: OpenShift sets them")
    elif fields and all(field.endswith(".allowPrivilegeEscalation") for field in fields):
        yield Fix.untried(f"set {named} in the pod template to false")
    allowing = (name for name, allowed in _GRANTING if all(map(allowed.search, fields)))
    granted = next(allowing, "") if fields else "restricted-v2"
    if (admitting := _ADMITTING.search(message)) is not None:
        granted = admitting["name"]
    command = shell_command("oc adm policy add-scc-to-user {} -z {} -n {}", granted, account, namespace)
    title = f"let service account {account} use SecurityContextConstraints {granted}, if the pod needs it"
    yield Fix.untried(title, command)
