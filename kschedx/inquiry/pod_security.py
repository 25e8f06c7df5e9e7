"""A pod that Pod Security refuses: changes after which it is admitted, and the decision about it then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.admission import PodSecurity
from kschedx.apiserver.defaulting import default_pod
from kschedx.apiserver.pod_security import PREFIX, Level, LevelVersion
from kschedx.apiserver.security_context import KubeletFields, KubeletSpec, judged
from kschedx.errors import InputError, UndecidableError
from kschedx.explain.admission import enforced
from kschedx.explain.setup import Setup
from kschedx.explain.subject import Subject, admitted
from kschedx.fixes.changes import Change, apply_patch
from kschedx.fixes.owners import owner_change, template_owner
from kschedx.fixes.pod_security import ENFORCE, relabelled, secured
from kschedx.inquiry.explanation import Explanation
from kschedx.kube.decoding import decode, encoded
from kschedx.kube.escaping import shell_command
from kschedx.kube.types import Pod
from kschedx.render.wording import listed
from kschedx.snapshot.snapshot import Snapshot

Manifest: TypeAlias = Mapping[str, object]
_SHOWN_NAMES = 3
_VIOLATED = re.compile(r'violates PodSecurity "(?P<level>[a-z]+):(?P<version>[^"]+)"')


class SecurityFix(Struct, frozen=True, kw_only=True):
    """A tried change after which the pod is admitted."""

    title: str
    changes: tuple[Change, ...]
    """The changes that a user would send."""
    commands: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    then: Explanation | None = None
    """kube-scheduler's decision about the pod afterwards; None if something else refuses the pod."""


class _Refused(Struct, frozen=True, kw_only=True):
    """A pod that is not created."""

    pod: Pod
    manifest: Manifest
    maker: Manifest | None
    """The workload that would create it."""
    made: Sequence[Manifest]
    """The objects that its controller creates before the pod."""
    standard: PodSecurity
    snapshot: Snapshot
    setup: Setup
    explain: Callable[[Subject, Setup], Explanation]

    def of_pod(self) -> SecurityFix | None:
        """Return the fix that sets in the pod what the namespace requires; None if the pod sets what the namespace
        forbids."""
        said = secured(self.manifest)
        if said is None:
            return None
        manifest = apply_patch(dict(self.manifest), said.change.patch)
        if self.standard.violations(self.pod, _kubelet(manifest)):
            return None
        owner = template_owner(self.snapshot, self.pod)
        change = said.change if owner is None else owner_change(said.change, owner, self.pod)
        costs = self._without_user if any(setting.field == "runAsNonRoot" for setting in said.settings) else ()
        where = "pod" if self.maker is None else "pod template"
        title = f"set the securityContext that {self.standard.wanted.level} requires in the {where}"
        fix = SecurityFix(title=title, changes=(change,), costs=costs)
        return self._tried(fix, manifest, self.snapshot)

    @property
    def _without_user(self) -> tuple[str, ...]:
        """What the images of containers that may run as root must do."""
        found = judged(self.pod, _kubelet(self.manifest))
        names = [
            container.name
            for container in found.containers
            if not (container.context.run_as_user or found.context.run_as_user)
        ]
        image = f"the image{'s' if len(names) > 1 else ''} of {listed(names, _SHOWN_NAMES)}"
        return (f"{image} must set a non-root user, or set runAsUser",) if names else ()

    def of_namespace(self) -> SecurityFix | None:
        """Return the fix to enforce in the namespace the strictest level that admits the pod."""
        namespace, kubelet = self.pod.metadata.namespace, _kubelet(self.manifest)
        for level in sorted(Level, reverse=True):
            standard = replace(self.standard, wanted=LevelVersion(level, self.standard.wanted.minor))
            if level < self.standard.wanted.level and standard.refusal(self.pod, kubelet) is None:
                labels = {**self.snapshot.namespaces.get(namespace, {}), ENFORCE: str(level)}
                snapshot = replace(self.snapshot, namespaces={**self.snapshot.namespaces, namespace: labels})
                fix = SecurityFix(
                    title=f"enforce {level} in namespace {namespace}, for all its pods",
                    changes=(relabelled(namespace, level),),
                    commands=(shell_command(f"kubectl label namespace {{}} {ENFORCE}={level} --overwrite", namespace),),
                )
                return self._tried(fix, self.manifest, snapshot)
        return None

    def _tried(self, fix: SecurityFix, manifest: Manifest, snapshot: Snapshot) -> SecurityFix:
        try:
            subject = admitted(snapshot, manifest, self.setup, made=self.made, maker=self.maker)
            return replace(fix, then=self.explain(subject, self.setup))
        except (InputError, UndecidableError) as error:
            return replace(fix, title=f"{fix.title}; what refuses the pod then: {error}")


def pod_security_fixes(
    snapshot: Snapshot,
    manifest: Manifest,
    setup: Setup,
    message: str,
    *,
    explain: Callable[[Subject, Setup], Explanation],
    maker: Manifest | None,
    made: Sequence[Manifest],
) -> tuple[SecurityFix, ...] | None:
    """Return the fixes: first the change of the pod, if that is enough. Return None if `message` shows that something
    else refuses the pod."""
    level = _VIOLATED.search(message)
    if level is None:
        return None
    pod = default_pod(decode(encoded(manifest, "pod"), Pod))
    namespace = pod.metadata.namespace
    if not any(label.startswith(PREFIX) for label in snapshot.namespaces.get(namespace, {})):
        # the event shows the enforced level, which the dump lacks
        labels = {ENFORCE: level["level"], f"{ENFORCE}-version": level["version"]}
        snapshot = replace(snapshot, namespaces={**snapshot.namespaces, namespace: labels})
    standard = enforced(snapshot, namespace, setup.release, maker)
    if not isinstance(standard, PodSecurity) or standard.refusal(pod, _kubelet(manifest)) is None:
        return None
    refused = _Refused(
        pod=pod,
        manifest=manifest,
        maker=maker,
        made=made,
        standard=standard,
        snapshot=snapshot,
        setup=setup,
        explain=explain,
    )
    return tuple(fix for fix in (refused.of_pod(), refused.of_namespace()) if fix is not None)


def _kubelet(manifest: Manifest) -> KubeletSpec:
    return decode(msgspec.json.encode(manifest), KubeletFields).spec
