"""The manifests in question: their pods and workloads, and the objects that a cluster's controllers create for them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kschedx.apiserver.resource_quota import ChargedObject, New
from kschedx.apiserver.unknown_fields import unknown_fields
from kschedx.apiserver.workload_validation import (
    changed_fields_of_pod,
    fixed_kind,
    require_same_workload,
    validate_claims,
    validate_workload,
)
from kschedx.controllers.adoption import only_lends_template, with_adopted_pods, with_referenced_template
from kschedx.controllers.pod_autoscaling import autoscaled
from kschedx.controllers.suspended_work import resumed_by_kueue, suspended_by_kueue, without_workloads
from kschedx.controllers.workloads import Workload, replica_sets, stored_manifest
from kschedx.errors import InputError, KschedxError, NotAdmittedError, NotChangedError, Place, UndecidableError
from kschedx.explain.admission import (
    charged_object,
    recorded_refusal,
    require_owner_quota,
    require_served,
    with_allowed,
)
from kschedx.explain.cycle_notes import device_claim_refusals
from kschedx.explain.missing_kinds import refuse
from kschedx.explain.notes import Note, note
from kschedx.explain.setup import Setup, Subject, admit, stored_subject
from kschedx.kube import decoding
from kschedx.kube.custom_resources import TemplatePodCount, custom_kind, operator_may_add
from kschedx.kube.decoding import is_stored, map_at, maps_at
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.documents import Json
from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import api_version_of, kind_of, refuse_unknown
from kschedx.kube.kueue import ResourceFlavor
from kschedx.kube.names import generated_name
from kschedx.kube.types import ObjectMeta, Pod
from kschedx.kube.workloads import (
    LOOKS_LIKE_A_PATCH,
    MAKING_PODS,
    SHORT_NAMES,
    CreatedPod,
    ForeignPod,
    created_pod,
    current_replica_set,
    foreign_pods,
    is_foreign,
    kind_and_group,
    qualified_kind,
)
from kschedx.patterns import lazy_pattern
from kschedx.releases.release import Release
from kschedx.snapshot.edits import with_applied, with_object
from kschedx.snapshot.snapshot import MissingCause, Snapshot
from kschedx.sources.dumps import LeftOut
from kschedx.sources.line_numbers import ManifestDocument, read_manifest_documents
from kschedx.wording import count, list_names

NOT_APPLIED = "not-applied"  # the note about an object of the files that the API server refuses


def read_as(manifest: Mapping[str, object]) -> tuple[str, str]:
    """Return a manifest's kind and the group that this kind has today."""
    kind, group = kind_and_group(manifest)
    row = kind_of(kind, group)
    return kind, group if row is None else row.group


def workload_as_applied(snapshot: Snapshot, workload: Json) -> CreatedPod:
    """Return the next pod of a workload with the objects created for it. A Deployment's pod comes from the ReplicaSet
    with its template.

    Raises `UndecidableError` if it depends on ReplicaSets that may not be listed, and the errors of `created_pod`.
    """
    kind, group = read_as(workload)
    workload = {**workload, "apiVersion": f"{group}/v1"} if group == "apps" else workload
    if kind != "Deployment":
        return created_pod(workload)
    if snapshot.source.missing.get("ReplicaSet") is MissingCause.FORBIDDEN:
        refuse(snapshot, "ReplicaSet", f"which ReplicaSet creates the pods of {title(workload)}")
    stored = replica_sets(snapshot, Workload(*key_of(workload)))
    return created_pod(workload, replica_set=current_replica_set(workload, stored))


def knows_claims(snapshot: Snapshot) -> bool:
    """Return whether the snapshot shows which claims exist. If no claim was listed, the cluster may have any."""
    source = snapshot.source
    return source.is_complete("PersistentVolumeClaim") or bool(source.kinds.get("PersistentVolumeClaim"))


def key_of(manifest: Mapping[str, object]) -> tuple[str, str, str]:
    """Return kind, namespace, and name."""
    named = map_at(manifest, "metadata")
    return str(manifest.get("kind")), str(named.get("namespace") or "default"), str(named.get("name") or "")


def title(manifest: Mapping[str, object]) -> str:
    """Return kind and name: `Deployment web`; the kind alone if it has none."""
    named = map_at(manifest, "metadata")
    return f"{qualified_kind(manifest)} {named.get('name') or named.get('generateName') or ''}".rstrip()


def pod_manifest(pod: Pod) -> Json:
    """Return a pod of the cluster in the form of a manifest."""
    return decoding.manifest("v1", "Pod", pod)


def decode_pod(pod: Json) -> Pod:
    """Decode a manifest. Raises `InputError` for a field that cannot be decoded."""
    return decoding.decode(msgspec.json.encode(pod), Pod)


_KUSTOMIZE = "kustomize.config.k8s.io"


class PodInQuestion(Struct, frozen=True, kw_only=True):
    """A pod that a question is about: one of the cluster, one in a manifest, or the next one of a workload."""

    manifest: Json
    stored: Pod | None = None  # the pod of the cluster that `manifest` describes; None for a pod to be created
    title: str = ""  # the name in errors, if it is not the pod's: that of the file's workload
    workload: Json | None = None
    dependents: tuple[Json, ...] = ()  # the objects that its controller creates before the pod
    document: ManifestDocument | None = None  # None if it comes from no file
    template: str = ""  # the path of the pod template in the document
    is_one_of_several: bool = False
    """Whether the workload has other templates as well, so that its pods are not identical."""
    count: TemplatePodCount | None = None
    """The number of pods that a custom resource creates from the template; None for Kubernetes' own workloads."""
    notes: tuple[Note, ...] = ()
    documents: tuple[ManifestDocument, ...] = ()  # all documents of its files
    refused: InputError | None = None  # why the API server refuses the object in the file

    @classmethod
    def of_cluster(cls, pod: Pod) -> PodInQuestion:
        return cls(manifest=pod_manifest(pod), stored=pod)

    @property
    def place(self) -> Place:
        """The place in a file; empty for an object of the cluster."""
        return Place() if self.document is None else self.document.place

    @property
    def is_daemon(self) -> bool:
        return self.workload is not None and read_as(self.workload) == ("DaemonSet", "apps")

    @property
    def workload_name(self) -> str:
        return "" if self.workload is None else title(self.workload).partition(" ")[2]

    def admit(self, snapshot: Snapshot, setup: Setup, manifest: Json | None = None) -> Subject:
        """Return the pod of the cluster as it is, or a manifest as the API server would store it. `manifest` is the
        pod's own, with changes. Raises `InputError` with the place."""
        if self.stored is not None:
            return stored_subject(snapshot, self.stored if manifest is None else decode_pod(manifest))
        if self.refused is not None:
            raise self.refused
        if self.document is not None:
            try:
                require_served(self.workload or self.manifest, setup.release)
            except NotAdmittedError as error:
                raise self.document.fault(error) from None
        try:
            for maker in self._intermediate_objects():
                require_owner_quota(snapshot, maker, setup.release)
            subject = admit(
                snapshot,
                manifest or self.manifest,
                setup,
                title=self.title,
                dependents=self.dependents,
                maker=self.workload,
            )
            if manifest is None and self.document is None:
                _refuse_as_recorded(snapshot, subject.pod)
        except UndecidableError:
            if manifest is None and self.document is None:
                _refuse_as_recorded(snapshot, decode_pod(self.manifest))  # which may name what the dump lacks
            raise
        except InputError as error:
            if self.document is None and self.workload is not None and not isinstance(error, NotAdmittedError):
                raise _refusal_error(self.manifest, error) from None
            raise (error if self.document is None else self.document.fault(error, below=self.template)) from None
        return msgspec.structs.replace(subject, notes=(*self.notes, *subject.notes))

    def _intermediate_objects(self) -> Iterator[ChargedObject]:
        """Yield the new objects between the workload and the pod."""
        yield from (charged_object(*key_of(item)) for item in self.dependents if item.get("kind") == "ReplicaSet")
        if self.workload is not None and self.workload.get("kind") == "CronJob":
            _, namespace, name = key_of(self.workload)
            yield charged_object("Job", namespace, f"{name}-new")


def _refusal_error(pod: Mapping[str, object], error: InputError) -> NotAdmittedError:
    """Return the error about the pods of a stored workload, as its controller gets it."""
    _, _, name = key_of(pod)
    where = f"{error.place.field}: " if error.place.field else ""
    return NotAdmittedError(f'Pod "{name}" is invalid: {where}{error.message}', place=error.place, hint=error.hint)


def _refuse_as_recorded(snapshot: Snapshot, pod: Pod) -> None:
    """Raise `NotAdmittedError` if the pod's controller reports that it cannot create a pod. Its event is the only
    source about webhooks, policies, and ServiceAccounts."""
    event = recorded_refusal(snapshot, pod)
    if event is not None and (owner := pod.metadata.controller) is not None:
        seen = [f"{event.count:,} times"] if event.count > 1 else []
        seen += [f"last at {event.last_seen}"] if event.last_seen else []
        hint = ", ".join(["the cluster's own event", *seen, f"and {_existing_text(snapshot, pod, event.message)}"])
        raise NotAdmittedError(event.message, place=Place(object=f"{owner.kind} {owner.name}"), hint=hint)


_EXISTS = lazy_pattern(r'pods "([^"]+)" already exists')


def _existing_text(snapshot: Snapshot, pod: Pod, refusal: str) -> str:
    """Return what is known of the pod that a controller could not create: an earlier one may have its name."""
    named = _EXISTS.search(refusal)
    row = None if named is None else snapshot.pods.rows.get(f"{pod.metadata.namespace}/{named[1]}")
    if row is None:
        return "that pod does not exist"
    does = "is being deleted" if snapshot.pods.deletion_timestamps[row] else "exists"
    return f"an earlier pod of that name {does}: kschedx why pod/{snapshot.pods.names[row]}"


class Manifests:
    """All objects of the files, in their order."""

    def __init__(
        self, documents: Sequence[ManifestDocument], paths: Sequence[str], left_out: Sequence[LeftOut] = ()
    ) -> None:
        self._documents = documents
        self._paths = paths
        self._left_out = left_out  # files of a folder without Kubernetes objects
        self._refused: dict[tuple[str, str, str], InputError] = {}
        """Claims and workloads that the API server refuses, by kind, namespace, and name."""
        self._unserved: set[tuple[str, str, str]] = set()
        """Objects without pods whose API version the API server does not serve."""
        self._rescaled: list[str] = []  # what HorizontalPodAutoscalers and Kueue change in the files

    @classmethod
    def read(cls, paths: Sequence[str], *, has_target: bool = False) -> Manifests:
        """Read the files. If the question has its own target, they need no pods.

        Raises `InputError` for files that cannot be read, and for fields that every API server would refuse.
        """
        try:
            documents, left_out = read_manifest_documents(paths)
        except InputError as error:
            error.hint = error.hint or _patch_hint(error.place.source)
            raise
        _refuse_faults(documents)
        _give_names(documents)
        documents, tests = _without_tests(documents)
        manifests = cls(_once(documents), paths, [*left_out, *tests])
        has_pods = any(_makes_pods(it.value) or has_unknown_pods(it.value) for it in manifests._documents)
        if not (has_pods or has_target):
            raise manifests._nothing()
        return manifests

    def set_namespaces(self, namespace: str | None, default_namespace: str, *, is_only: bool = True) -> None:
        """Set the namespace of every object without one. With `is_only`, raises `InputError` for an object in another
        namespace than -n names. Without it, `namespace` is only that of an object asked about by name."""
        for document in self._documents:
            kind = kind_of(*read_as(document.value))
            if kind is not None and not kind.is_namespaced:
                continue
            metadata = document.value.setdefault("metadata", {})
            if not isinstance(metadata, dict):
                raise InputError("expected an object", place=document.place).at(Place(field="metadata"))
            own = metadata.get("namespace")
            if is_only and namespace and own and own != namespace:
                text = f'the namespace "{own}" does not match the namespace of the request: "{namespace}"'
                raise document.fault(InputError(text, place=Place(object=title(document.value))))
            if not own:
                metadata["namespace"] = namespace or default_namespace

    def queue_in_kueue(self, snapshot: Snapshot) -> Snapshot:
        """Suspend new Jobs that Kueue does not admit now, and resume those that it does. Returns the cluster with the
        Workloads of the suspended ones."""
        for document in self._documents:
            of_kueue = suspended_by_kueue(snapshot, document.value)
            if of_kueue is None:
                continue
            from kschedx.kueue.verdict import decision_of  # few files have such a Job

            suspended, workload = of_kueue
            queued = with_applied(without_workloads(snapshot, Workload(*key_of(document.value))), [workload])
            verdict = decision_of(queued, "/".join(key_of(workload)[1:]))
            if verdict is None:
                continue
            if not verdict.has_quota_now or verdict.head is None:
                document.value["spec"], snapshot = suspended["spec"], queued
                continue
            used = {*verdict.head.pod_sets[0].flavors.values()} if verdict.head.pod_sets else ()
            flavors = [flavor for flavor in snapshot.of(ResourceFlavor) if flavor.metadata.name in used]
            spec = document.value["spec"] = dict(resumed_by_kueue(suspended, flavors))
            if names := [it.metadata.name for it in flavors if it.spec.node_labels or it.spec.tolerations]:
                added = f"ResourceFlavor {list_names(names, 2)} to the template of {title(document.value)}"
                self._rescaled.append(f"Kueue adds node labels and tolerations of {added}")
            if verdict.partial:
                spec["parallelism"] = verdict.head.pod_sets[0].count
                self._rescaled.append(f"Kueue admits {verdict.partial[0]} of {title(document.value)}")
        return snapshot

    def apply_to(self, snapshot: Snapshot) -> Snapshot:
        """Return the cluster with all objects in the files that affect scheduling, except for pods and nodes. Raises
        `InputError`."""
        objects = []
        for document in self._documents:
            if kind_of(*read_as(document.value)) is None or document.value.get("kind") in ("Pod", "Node"):
                continue
            if key_of(document.value) in self._unserved:
                continue
            try:
                with_applied(snapshot, [document.value])
            except InputError as error:
                raise document.fault(error) from None
            objects.append(document.value)
        if not objects:
            return snapshot
        applied = with_applied(snapshot, objects)
        applied = with_applied(applied, [*self._autoscaled(snapshot, applied)])
        for manifest in objects:
            if key_of(manifest) not in snapshot.workloads:
                applied = with_adopted_pods(applied, Workload(*key_of(manifest)), manifest)
        return applied

    def _autoscaled(self, before: Snapshot, applied: Snapshot) -> Iterator[Json]:
        """Set the replicas of workloads outside the bounds of their HorizontalPodAutoscalers, and yield them."""
        for document in self._documents:
            kind, namespace, name = key_of(document.value)
            stored = stored_manifest(before, Workload(kind, namespace, name))
            scaled, text = autoscaled(applied, document.value, stored)
            if text:
                document.value["spec"] = scaled["spec"]
                self._rescaled.append(text)
                yield document.value

    def apply_admitted(self, cluster: Snapshot, applied: Snapshot, release: Release) -> Snapshot:
        """Return the cluster with all objects applied that the API server admits."""
        if self._refuse_unserved(release):
            applied = self.apply_to(cluster)
        applied = self._without_refused_updates(cluster, applied)
        new: list[tuple[ManifestDocument, New]] = []
        for document in self._documents:
            kind, namespace, name = key = key_of(document.value)
            if kind_of(*read_as(document.value)) is None or key in self._unserved:
                continue
            if kind == "PersistentVolumeClaim" and f"{namespace}/{name}" not in cluster.storage.claims:
                new.append((document, applied.storage.claims[f"{namespace}/{name}"]))
            elif kind in MAKING_PODS and key not in cluster.workloads:
                new.append((document, charged_object(*key)))
        allowed, refusals = with_allowed(cluster, applied, [item for _, item in new], release)
        refused = [(document, refusal) for (document, _), refusal in zip(new, refusals, strict=True) if refusal]
        for document, refusal in (*refused, *self._refused_device_claims(cluster, applied, release)):
            error = NotAdmittedError(refusal, place=Place(object=title(document.value)))
            self._refused[key_of(document.value)] = document.fault(error)
        return allowed

    def _refuse_unserved(self, release: Release) -> bool:
        """Refuse the objects without pods whose API version the API server does not serve. Returns whether there are
        any; workloads are refused when they are admitted."""
        for document in self._documents:
            if _makes_pods(document.value) or is_foreign(document.value):
                continue
            try:
                require_served(document.value, release)
            except NotAdmittedError as error:
                self._unserved.add(key_of(document.value))
                self._refused[key_of(document.value)] = document.fault(error.at(Place(object=title(document.value))))
        return bool(self._unserved)

    def _refused_device_claims(
        self, cluster: Snapshot, applied: Snapshot, release: Release
    ) -> Iterator[tuple[ManifestDocument, str]]:
        for document in self._documents:
            kind, namespace, name = key_of(document.value)
            key, before, claim = f"{namespace}/{name}", "", None
            if kind == "ResourceClaim" and key not in cluster.devices.claims:
                claim = applied.devices.claims[key]
            elif kind == "ResourceClaimTemplate" and key not in cluster.devices.templates:
                metadata = ObjectMeta(name=name, namespace=namespace)
                before, claim = "spec.", ResourceClaim(metadata=metadata, spec=applied.devices.templates[key])
            if claim is None or claim.metadata.creation_timestamp:
                continue
            if (text := next(device_claim_refusals(applied, claim, release), None)) is not None:
                yield document, f'{kind}.resource.k8s.io "{name}" is invalid: {before}{text}'

    def _without_refused_updates(self, cluster: Snapshot, applied: Snapshot) -> Snapshot:
        """Return `applied` with the cluster's objects instead of those in which the files change an immutable field."""
        for document in self._documents:
            key, kept = key_of(document.value), applied
            try:
                if (stored := cluster.workloads.get(key)) is not None:
                    kept = msgspec.structs.replace(applied, workloads={**applied.workloads, key: stored})
                    require_same_workload(msgspec.json.decode(stored), document.value)
                elif fixed_kind(document.value) is not None:
                    from kschedx.simulate.object_changes import require_updatable, stored_object  # few files have one

                    known = stored_object(cluster, document.value)
                    kept = applied if known is None else with_object(applied, known)
                    require_updatable(cluster, document.value)
            except NotChangedError as error:
                self._refused[key] = document.fault(error.at(Place(object=title(document.value))))
                applied = kept
        return applied

    def pods(self, cluster: Snapshot, applied: Snapshot) -> list[PodInQuestion]:
        """Return the pod of each manifest, workload, or template; `cluster` is the state before anything is applied."""
        notes = tuple(self.notes())
        groups = {kind_and_group(document.value)[1] for document in self._documents if _makes_pods(document.value)}
        every = [document.value for document in self._documents]
        making = [document for document in self._documents if not only_lends_template(document.value, every)]
        written_pods = [pod for document in making for pod in _written_pods(document, cluster, applied)]
        written_pods += [
            unknown_pods(document.value, document)
            for document in self._documents
            if has_unknown_pods(with_referenced_template(applied, document.value))
            and kind_and_group(document.value)[1] not in groups  # that kind creates its pods
        ]
        return [
            msgspec.structs.replace(
                written_pod,
                notes=(*written_pod.notes, *notes),
                refused=self._refusal(written_pod),
                documents=tuple(self._documents),
            )
            for written_pod in written_pods
        ]

    def _refusal(self, written_pod: PodInQuestion) -> InputError | None:
        """Return why the API server refuses the pod's workload, or a claim that the pod names."""
        workload = written_pod.workload
        if workload is not None and (refused := self._refused.get(key_of(workload))) is not None:
            return refused
        namespace = key_of(written_pod.manifest)[1]
        named = _claim_names(written_pod.manifest)
        claims = (self._refused.get((kind, namespace, name)) for kind, name in named)
        return next((claim for claim in claims if claim is not None and not isinstance(claim, NotChangedError)), None)

    def notes(self) -> Iterator[Note]:
        """Yield notes about ignored files, objects that count as applied, and refused objects."""
        for out in self._left_out:
            yield note("left-out", f"ignored: {out.source}, {out.why}", source=out.source)
        names = [
            title(document.value)
            for document in self._documents
            if kind_of(*read_as(document.value)) is not None
            and not _makes_pods(document.value)
            and not has_unknown_pods(document.value)
            and key_of(document.value) not in self._refused
        ]
        if names:
            text = f"evaluated as applied together with {list_names(names, 4)}"
            yield note("applied-together", text, objects=tuple(names))
        for text in self._rescaled:
            yield note("rescaled", text)
        for error in self._refused.values():
            if error.place.object.partition(" ")[0] not in MAKING_PODS:
                hint = f" ({error.hint})" if error.hint.startswith("use ") else ""
                text = f"{error.place.object} is ignored, the API server refuses it: {error.message}{hint}"
                yield note(NOT_APPLIED, text, object=error.place.object, refusal=error.message)

    def _nothing(self) -> KschedxError:
        """Return the error that the files contain no pod and no object that creates one."""
        read = [(*kind_and_group(document.value), is_foreign(document.value)) for document in self._documents]
        counts = Counter(f"{kind} ({group})" if is_other else kind for kind, group, is_other in read)
        kinds = ", ".join(f"{number} × {name}" if number > 1 else name for name, number in sorted(counts.items()))
        foreign = next((document.value for document in self._documents if is_foreign(document.value)), None)
        hint = ""
        if foreign is not None and kind_and_group(foreign)[1] == _KUSTOMIZE:
            folder = next((Path(path).parent for path in self._paths if path != "-"), Path("FOLDER"))
            hint = f"this is a kustomization; render it: {_render_command(folder)}"
        elif foreign is not None:
            is_object = bool({"name", "generateName"} & map_at(foreign, "metadata").keys())
            other = (
                "ask about the pods that its controller creates" if is_object else "it is not an object of a cluster"
            )
            hint = _RENDERED.get(kind_and_group(foreign), other)
        place = Place(source=", ".join(self._paths))
        if not counts:
            return InputError("holds no objects", place=place)
        return InputError(f"no pods or workloads in this file: {kinds}", place=place, hint=hint)


def named_pods(target: str, written: Sequence[PodInQuestion], namespace: str | None) -> list[PodInQuestion]:
    """Return the pods of the object `KIND/NAME`, which names a pod or its workload; empty if there is none. With
    `namespace`, only objects in this namespace match."""
    kind, _, name = target.partition("/")
    kinds = {kind.lower(), SHORT_NAMES.get(kind.lower(), kind).lower()}

    def is_meant(written_pod: PodInQuestion) -> bool:
        meant = written_pod.manifest if kinds & {"pod"} else written_pod.workload or written_pod.manifest
        its_kind, space, its_name = key_of(meant)
        return its_kind.lower() in kinds and its_name == name and namespace in (None, space)

    return [written_pod for written_pod in written if is_meant(written_pod)]


def _patch_hint(source: str) -> str:
    """The command to run if the file is part of a kustomization in its folder or above; otherwise, an empty string."""
    for folder in (*Path(source).parents,)[:3] if source and Path(source).is_file() else ():
        if any((folder / name).is_file() for name in _KUSTOMIZATIONS):
            return f"it is a part of a kustomization: {_render_command(folder)}"
    return ""


def _render_command(folder: Path) -> str:
    return shell_command("kubectl kustomize {} | kschedx why -", folder)


_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_RENDERED = {
    ("Template", "template.openshift.io"): (
        "render its objects first: oc process --local -f FILE -o yaml | kschedx why -"
    ),
    ("Kustomization", "kustomize.toolkit.fluxcd.io"): (
        "render its manifests first: flux build kustomization NAME --path FOLDER | kschedx why -"
    ),
    ("HelmRelease", "helm.toolkit.fluxcd.io"): "render its chart with its values first: helm template | kschedx why -",
    ("Application", "argoproj.io"): "render its manifests first: argocd app manifests NAME | kschedx why -",
}
"""The commands that render objects of other projects as manifests."""


def _claim_names(pod: Json) -> Iterator[tuple[str, str]]:
    for volume in maps_at(pod, "spec", "volumes"):
        claim = volume.get("persistentVolumeClaim")
        if isinstance(claim, dict):
            yield "PersistentVolumeClaim", str(claim.get("claimName"))
    for item in maps_at(pod, "spec", "resourceClaims"):
        for kind, field in (
            ("ResourceClaim", "resourceClaimName"),
            ("ResourceClaimTemplate", "resourceClaimTemplateName"),
        ):
            if item.get(field):
                yield kind, str(item[field])


def objects_of(path: str) -> list[tuple[Json, Place]]:
    """Return the objects of a file or folder with their places. Raises `InputError`, also for fields that every API
    server would refuse."""
    documents, _ = read_manifest_documents([path])
    _refuse_faults(documents)
    _give_names(documents)
    documents, _ = _without_tests(documents)
    return [(document.value, document.place) for document in documents]


def _without_tests(documents: list[ManifestDocument]) -> tuple[list[ManifestDocument], list[LeftOut]]:
    """Leave out the pods that only `helm test` creates, unless the files have nothing else."""
    kept = [document for document in documents if not _is_helm_test(document.value)]
    tests = [title(document.value) for document in documents if _is_helm_test(document.value)]
    left_out = [LeftOut(source=test, why="which only `helm test` creates") for test in tests]
    return (kept, left_out) if kept else (documents, [])


def _is_helm_test(manifest: Json) -> bool:
    hooks = str(map_at(manifest, "metadata", "annotations").get("helm.sh/hook", "")).split(",")
    return all(hook.strip() in ("test", "test-success", "test-failure") for hook in hooks)


def _give_names(documents: Sequence[ManifestDocument]) -> None:
    """Name the pods and workloads that only have generateName, as the API server does."""
    names = {key_of(document.value) for document in documents}
    for manifest in (document.value for document in documents):
        metadata = manifest.get("metadata")
        if manifest.get("kind") not in (*MAKING_PODS, "Pod") or not isinstance(metadata, dict) or "name" in metadata:
            continue
        for number in itertools.count() if generated_name(metadata) else ():
            metadata["name"] = generated_name(metadata, number)
            if key_of(manifest) not in names:
                names.add(key_of(manifest))
                break


def _once(documents: Sequence[ManifestDocument]) -> list[ManifestDocument]:
    """Return the documents without exact duplicates, which manifests of several components contain. Raises `InputError`
    if two different objects have the same name."""
    first: dict[tuple[object, ...], ManifestDocument] = {}
    kept = []
    for document in documents:
        key = (*kind_and_group(document.value), *key_of(document.value))
        other = first.setdefault(key, document) if key[-1] else document
        if other is document or (other.value != document.value and is_foreign(document.value)):
            kept.append(document)
        elif other.value != document.value:
            message = f"an object of this name already exists in {other.place}"
            raise document.fault(InputError(message, place=Place(object=title(document.value))))
    return kept


def _refuse_faults(documents: Sequence[ManifestDocument]) -> None:
    wrong = [fault for document in documents for fault in _faults(document)]
    if wrong:
        first, *others = sorted(wrong, key=lambda fault: (fault.place.source, fault.place.line or 0))
        first.others = tuple(others)
        raise first


def written_from(snapshot: Snapshot, workload: Json) -> PodInQuestion:
    """Return the pod of a workload of the cluster. Raises `InputError` if it has no template."""
    if is_foreign(workload):
        return unknown_pods(workload)
    applied = workload_as_applied(snapshot, workload)
    is_known = workload.get("kind") != "StatefulSet" or knows_claims(snapshot) or not is_stored(workload)
    return PodInQuestion(
        manifest=applied.pod,
        workload=workload,
        dependents=applied.others if is_known else (),
        notes=tuple(_deadline_notes(workload)),
    )


def unknown_pods(workload: Json, document: ManifestDocument | None = None) -> PodInQuestion:
    """Return a custom resource whose pods only its controller knows."""
    _, namespace, name = key_of(workload)
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
    return PodInQuestion(manifest=pod, title=title(workload), workload=workload, document=document)


def has_unknown_pods(manifest: Mapping[str, object]) -> bool:
    """Return whether it is a known custom resource that creates pods its manifest does not describe."""
    return custom_kind(*kind_and_group(manifest)) is not None and not foreign_pods(manifest)


def _faults(document: ManifestDocument) -> Iterator[InputError]:
    manifest = document.value
    kind = str(manifest.get("kind") or "")
    try:
        if kind and not manifest.get("apiVersion"):
            hint = f"{kind} is in {known}" if (known := api_version_of(kind)) else ""
            raise InputError("apiVersion not set", place=Place(field="apiVersion"), hint=hint)
        refuse_unknown(*read_as(manifest), str(manifest.get("message") or ""))
        errors = unknown_fields(manifest) or [*validate_workload(manifest), *validate_claims(manifest)]
    except InputError as error:
        errors = [error]
    for input_error in errors:
        fault = document.fault(input_error.at(Place(object=title(manifest))))
        if fault.message == "Required value" or "$patch" in fault.place.field:
            looks = LOOKS_LIKE_A_PATCH if "$patch" in fault.place.field else ""
            fault.hint = _patch_hint(document.place.source) or fault.hint or looks
        yield fault


def _makes_pods(manifest: Mapping[str, object]) -> bool:
    kind = kind_of(*read_as(manifest))
    if kind is not None:
        return bool(kind.template) or kind.name == "Pod"
    return is_foreign(manifest) and bool(foreign_pods(manifest))


def _written_pods(document: ManifestDocument, cluster: Snapshot, applied: Snapshot) -> Iterator[PodInQuestion]:
    manifest = with_referenced_template(applied, document.value)
    if not _makes_pods(manifest):
        return
    kind = kind_of(*read_as(manifest))
    named = title(manifest)
    if kind is None:
        yield from written_from_custom_resource(manifest, document)
        return
    if kind.name not in MAKING_PODS:
        notes = tuple(_update_notes(manifest, cluster)) if kind.name == "Pod" else ()
        yield PodInQuestion(manifest=manifest, document=document, notes=notes)
        return
    try:
        as_applied = workload_as_applied(applied, manifest)
    except InputError as error:
        fault = document.fault(error.at(Place(object=named)))
        fault.hint = fault.hint or _patch_hint(document.place.source)
        raise fault from None
    is_known = kind.name != "StatefulSet" or key_of(manifest) not in cluster.workloads or knows_claims(cluster)
    yield PodInQuestion(
        manifest=as_applied.pod,
        title=named,
        workload=manifest,
        dependents=as_applied.others if is_known else (),
        document=document,
        template=".".join(kind.template),
        notes=tuple(_deadline_notes(manifest)),
    )


def _update_notes(manifest: Json, cluster: Snapshot) -> Iterator[Note]:
    """Yield the note that an existing pod has to be deleted before the manifest can be applied."""
    _, namespace, name = key_of(manifest)
    row = cluster.pods.rows.get(f"{namespace}/{name}")
    if row is None or cluster.has_only_event_of(cluster.pods[row]):
        return
    if fields := tuple(changed_fields_of_pod(cluster.pods[row], manifest)):
        changed = f"pod {namespace}/{name} exists, and the API server refuses to change {list_names(fields, 2)}"
        yield note("pod-not-updatable", f"{changed}: delete the pod first", fields=fields)


def written_from_custom_resource(manifest: Json, document: ManifestDocument | None = None) -> Iterator[PodInQuestion]:
    """Yield a pod for each template of a custom resource, or the resource if only its controller knows its pods."""
    pods = foreign_pods(manifest)
    for pod in pods:
        yield PodInQuestion(
            manifest=pod.manifest,
            title=title(manifest),
            workload=manifest,
            document=document,
            template=pod.path,
            count=pod.count,
            is_one_of_several=len(pods) > 1,
            notes=(_foreign_note(manifest, pod),),
        )
    if not pods:
        yield unknown_pods(manifest, document)


def _foreign_note(manifest: Json, pod: ForeignPod) -> Note:
    """Return the note about a pod template in an object that is not one of Kubernetes' own kinds."""
    number = pod.count.number
    kind, group = kind_and_group(manifest)
    if number is None:
        phrase = f"one pod of its template at {pod.path} is explained; replicas are not counted"
    elif not number:
        phrase = f"it has no pods now, and the pod of its template at {pod.path} is explained"
    elif pod.count.undecided == operator_may_add(kind):
        them = "it" if number == 1 else "them"
        phrase = f"{count(number, 'pod')} as {pod.path} describes {them}; its operator may add containers"
    else:
        phrase = f"{count(number, 'pod')} of its template at {pod.path}"
    pods = {} if number is None else {"pods": number}
    text = f"{kind} ({group}) is a custom resource: {phrase}"
    return note("foreign-workload", text, api_version=manifest.get("apiVersion"), path=pod.path, **pods)


_CRON_JOB_SYNC = 10  # seconds between two looks of the CronJob controller at its CronJobs


def _deadline_notes(workload: Json) -> Iterator[Note]:
    deadline = map_at(workload, "spec").get("startingDeadlineSeconds")
    if workload.get("kind") == "CronJob" and isinstance(deadline, int) and 0 <= deadline < _CRON_JOB_SYNC:
        checked = f"the CronJob controller may look only every {_CRON_JOB_SYNC} s"
        text = f"startingDeadlineSeconds {deadline} is too short: {checked}, and then starts no Job"
        yield note("short-starting-deadline", text, seconds=deadline)
