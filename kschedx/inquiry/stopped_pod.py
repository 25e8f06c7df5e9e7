"""A pod that is not created or does not run, and the trials of changes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct, structs
from msgspec.structs import replace

from kschedx.errors import InputError, NotAdmittedError, UndecidableError
from kschedx.explain.setup import Setup, Subject, admit
from kschedx.fixes import FixCertainty
from kschedx.fixes.changes import PatchError, apply_patch
from kschedx.fixes.owners import owner_change, template_owner
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix, FixedCluster
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.documents import Change, Target
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot

Patch = list[dict[str, object]]
_OfStoppedPod = TypeVar("_OfStoppedPod", bound="StoppedPod")


class StoppedPod(Struct, frozen=True, kw_only=True):
    """A pod that is not created or does not run. A change is tried before it is printed: the pod is admitted and goes
    through a scheduling cycle."""

    snapshot: Snapshot
    setup: Setup
    explain: Callable[[Subject, Setup], Explanation]
    pod: Pod
    manifest: Manifest
    maker: Manifest | None = None
    dependents: Sequence[Manifest] = ()
    count: int = 1  # the number of missing pods
    file: str = ""
    refusals: tuple[str, ...] = ()  # whose fixes may leave a refusal for another reason

    def to(self, kind: type[_OfStoppedPod]) -> _OfStoppedPod:
        """Return the same pod as another type, which has other fixes."""
        return kind(**structs.asdict(self))

    @property
    def _workload_name(self) -> str:
        return str(map_at(self.maker, "metadata").get("name") or "")

    @property
    def _namespace(self) -> str:
        return self.pod.metadata.namespace

    def _workload_change(self, patch: Patch) -> Change:
        assert self.maker is not None
        version, kind = str(self.maker.get("apiVersion") or ""), str(self.maker.get("kind"))
        return Target(version, kind, self._workload_name, self._namespace).patched(*patch)

    def _patch_fix(self, title: str, patch: Patch) -> Fix | None:
        """Try a change of the pod, or of the template from which it is created; None if it has no such field."""
        change = Target("v1", "Pod", self.pod.metadata.name, self._namespace).patched(*patch)
        owner = template_owner(self.snapshot, self.pod)
        try:
            apply = (change if owner is None else owner_change(change, owner, self.pod),)
            manifest = apply_patch(dict(self.manifest), change.patch)
        except PatchError:
            return None
        return self._try(title, (change,), manifest=manifest, apply=apply)

    def _try(
        self,
        title: str,
        changes: tuple[Change, ...],
        *,
        snapshot: Snapshot | None = None,
        manifest: Manifest | None = None,
        commands: tuple[str, ...] = (),
        apply: tuple[Change, ...] = (),
    ) -> Fix | None:
        """Return the fix with the pod's answer after it, or with the fix for the next refusal; None if the API server
        refuses the pod for the same reason."""
        fix = replace(Fix.untried(title, *commands, changes=changes), apply=apply or changes)
        changed = replace(self, snapshot=snapshot or self.snapshot, manifest=manifest or self.manifest)
        try:
            subject = self._admit(changed.snapshot, changed.manifest)
        except NotAdmittedError as error:
            following = next(changed._next_fixes(str(error)), None)
            if following is None:
                return None
            is_completed = following.is_completed or following.certainty is FixCertainty.VERIFIED
            title = f"{title}; then {following.title}"
            fix = replace(fix, title=title, then=following.then)
            return replace(fix, certainty=FixCertainty.PARTIAL, is_completed=is_completed)
        except (InputError, UndecidableError):
            return None
        return fix_with_outcome(fix, self._decide(subject))

    def _next_fixes(self, message: str) -> Iterator[Fix]:
        """Return the fixes for a refusal of the changed pod; none if it has the reason that the change is about."""
        return iter(())

    def _admit(self, snapshot: Snapshot, manifest: Manifest) -> Subject:
        return admit(snapshot, manifest, self.setup, dependents=self.dependents, maker=self.maker)

    def _decide(self, subject: Subject) -> Explanation | None:
        try:
            return self.explain(subject, self.setup)
        except (InputError, UndecidableError):
            return None


def fix_with_outcome(fix: Fix, then: Explanation | None, *, lost: str = "") -> Fix:
    """Return an untried fix with the pod's outcome after it, or what else it then needs without its lost node."""
    if then is None:  # nothing shows where the pod would go
        return fix
    if then.alone is Outcome.SCHEDULED:
        return replace(fix, certainty=FixCertainty.VERIFIED, feasible_nodes=then.chosen_nodes)
    title, is_completed = fix.title, False
    if further := [each for each in then.fixes if not lost or lost not in each.title]:
        title, is_completed = f"{title}; then {further[0].title}", further[0].certainty is FixCertainty.VERIFIED
    elif then.message:
        title = f"{title}; the pod is unschedulable then: {then.message}"
    elif then.alone is not Outcome.UNSCHEDULABLE:
        return fix  # what the dump lacks decides
    after = FixedCluster(then.scheduler, then.cycle.pod, then.cycle.profile)
    return replace(fix, title=title, certainty=FixCertainty.PARTIAL, is_completed=is_completed, then=after)
