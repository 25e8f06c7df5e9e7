"""A pod that Pod Security refuses: what it violates, what would make it pass, and where it would go then."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.admission import PodSecurity
from kschedx.apiserver.defaulting import default_pod
from kschedx.apiserver.pod_security import PREFIX, Level, LevelVersion, Violation
from kschedx.apiserver.security_context import KubeletFields, KubeletSpec, judged
from kschedx.errors import InputError, UndecidableError
from kschedx.explain.admission import enforced, has_siblings, warned
from kschedx.explain.setup import Setup
from kschedx.explain.subject import Subject, admitted
from kschedx.fixes.changes import Change, apply_patch
from kschedx.fixes.owners import owner_change, template_owner
from kschedx.fixes.pod_security import ENFORCE, Secured, Setting, relabelled, secured
from kschedx.fixes.ranking import FixCertainty
from kschedx.inquiry.explanation import Explanation
from kschedx.kube.decoding import decode, encoded
from kschedx.kube.escaping import shell_command
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot

Manifest: TypeAlias = Mapping[str, object]
_VIOLATED = re.compile(r'violates PodSecurity "(?P<level>[a-z]+):(?P<version>[^"]+)"')


class SaidByPod(Struct, frozen=True, kw_only=True):
    """The pod says what its namespace wants to hear."""

    settings: tuple[Setting, ...]


class TakenByNamespace(Struct, frozen=True, kw_only=True):
    """The namespace enforces a level that the pod keeps to."""

    namespace: str
    level: Level


class SecurityFix(Struct, frozen=True, kw_only=True):
    """What would let the pod in: tried."""

    step: SaidByPod | TakenByNamespace
    changes: tuple[Change, ...]
    """As a user would send them."""
    then: Explanation | None = None
    """What kube-scheduler makes of the pod afterwards."""
    obstacle: str = ""
    """Why that is not known: what refuses the pod next."""

    def to_dict(self) -> dict[str, object]:
        """As a fix of an Explanation, which has a title too."""
        nodes = [] if self.then is None else list(self.then.chosen_nodes)
        changes = [change.to_dict() for change in self.changes]
        return {"certainty": FixCertainty.VERIFIED.value, "changes": changes, "feasibleNodes": nodes}

    @property
    def title(self) -> str:
        if isinstance(self.step, TakenByNamespace):
            return f"enforce {self.step.level} in namespace {self.step.namespace}, for all its pods"
        told = (f"{one.field} {json.dumps(one.value)}{_of(one)}" for one in self.step.settings)
        return f"set {', '.join(told).replace(chr(34), '')} in securityContext"

    @property
    def commands(self) -> tuple[str, ...]:
        if isinstance(self.step, SaidByPod):
            return ()
        return (
            shell_command(f"kubectl label namespace {{}} {ENFORCE}={self.step.level} --overwrite", self.step.namespace),
        )


def _of(setting: Setting) -> str:
    return f" of container {setting.container}" if setting.container else ""


class PodSecurityAnswer(Struct, frozen=True, kw_only=True, dict=True):
    """A pod that is not made."""

    pod: Pod
    manifest: Manifest
    maker: Manifest | None
    """What would make it."""
    made: Sequence[Manifest]
    """What its controller makes before it."""
    standard: PodSecurity
    snapshot: Snapshot
    setup: Setup
    explain: Callable[[Subject, Setup], Explanation]
    message: str
    """In the words of the API server, or of the pod's controller."""

    @property
    def wanted(self) -> LevelVersion:
        return self.standard.wanted

    @property
    def warns_only(self) -> bool:
        """`kubectl apply` succeeds with a warning, and its controller fails."""
        kubelet = _kubelet(self.manifest)
        told = self.maker and warned(self.snapshot, self.pod, kubelet, self.setup.release, self.maker)
        return bool(told)

    @property
    def has_pods(self) -> bool:
        """Others of the same workload are there."""
        return has_siblings(self.snapshot, self.pod.metadata)

    @cached_property
    def insists_on(self) -> tuple[Violation, ...]:
        """What the pod violates in so many words, and not by what it leaves unsaid."""
        said = self._secured
        manifest = self.manifest if said is None else apply_patch(dict(self.manifest), said.change.patch)
        return self.standard.violations(self.pod, _kubelet(manifest))

    @cached_property
    def _secured(self) -> Secured | None:
        return secured(self.manifest)

    @property
    def without_user(self) -> tuple[str, ...]:
        """Containers of which the manifest does not say that they run as another user than root."""
        found = judged(self.pod, _kubelet(self.manifest))
        return tuple(one.name for one in found.containers if not (one.context.run_as_user or found.context.run_as_user))

    @cached_property
    def fixes(self) -> tuple[SecurityFix, ...]:
        """The pod's first, where that is enough."""
        found = [self._of_pod(), self._of_namespace()]
        return tuple(fix for fix in found if fix is not None)

    def _of_pod(self) -> SecurityFix | None:
        said = self._secured
        if said is None or self.insists_on:
            return None
        manifest = apply_patch(dict(self.manifest), said.change.patch)
        owner = template_owner(self.snapshot, self.pod)
        change = said.change if owner is None else owner_change(said.change, owner, self.pod)
        fix = SecurityFix(step=SaidByPod(settings=said.settings), changes=(change,))
        return self._tried(fix, manifest, self.snapshot)

    def _of_namespace(self) -> SecurityFix | None:
        """The strictest level that lets the pod in."""
        namespace, kubelet = self.pod.metadata.namespace, _kubelet(self.manifest)
        for level in sorted(Level, reverse=True):
            standard = replace(self.standard, wanted=LevelVersion(level, self.wanted.minor))
            if level < self.wanted.level and standard.refusal(self.pod, kubelet) is None:
                labels = {**self.snapshot.namespaces.get(namespace, {}), ENFORCE: str(level)}
                snapshot = replace(self.snapshot, namespaces={**self.snapshot.namespaces, namespace: labels})
                step = TakenByNamespace(namespace=namespace, level=level)
                fix = SecurityFix(step=step, changes=(relabelled(namespace, level),))
                return self._tried(fix, self.manifest, snapshot)
        return None

    def _tried(self, fix: SecurityFix, manifest: Manifest, snapshot: Snapshot) -> SecurityFix:
        try:
            subject = admitted(snapshot, manifest, self.setup, made=self.made, maker=self.maker)
            return replace(fix, then=self.explain(subject, self.setup))
        except (InputError, UndecidableError) as error:
            return replace(fix, obstacle=str(error))


def pod_security_answer(
    snapshot: Snapshot,
    manifest: Manifest,
    setup: Setup,
    message: str,
    *,
    explain: Callable[[Subject, Setup], Explanation],
    maker: Manifest | None,
    made: Sequence[Manifest],
) -> PodSecurityAnswer | None:
    """None where `message` says that something else refuses the pod."""
    level = _VIOLATED.search(message)
    if level is None:
        return None
    pod = default_pod(decode(encoded(manifest, "pod"), Pod))
    namespace = pod.metadata.namespace
    if not any(label.startswith(PREFIX) for label in snapshot.namespaces.get(namespace, {})):
        # the event outlives what a dump has: what was enforced then
        labels = {ENFORCE: level["level"], f"{ENFORCE}-version": level["version"]}
        snapshot = replace(snapshot, namespaces={**snapshot.namespaces, namespace: labels})
    standard = enforced(snapshot, namespace, setup.release, maker)
    if not isinstance(standard, PodSecurity) or standard.refusal(pod, _kubelet(manifest)) is None:
        return None
    return PodSecurityAnswer(
        pod=pod,
        manifest=manifest,
        maker=maker,
        made=made,
        standard=standard,
        snapshot=snapshot,
        setup=setup,
        explain=explain,
        message=message,
    )


def _kubelet(manifest: Manifest) -> KubeletSpec:
    return decode(msgspec.json.encode(manifest), KubeletFields).spec
