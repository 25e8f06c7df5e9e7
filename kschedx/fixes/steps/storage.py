"""Steps that change claims, volumes, and devices."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kschedx.explain.advice import FixGroup
from kschedx.fixes import pod_edits as edit
from kschedx.fixes.phrases import join_phrases
from kschedx.fixes.proposal import CONTROLLER_MANAGER, SCHEDULER, ClusterObject, Cost, FixStep, Proposal
from kschedx.kube.devices import ResourceClaim, ResourceClaimTemplate
from kschedx.kube.documents import Change, Target
from kschedx.kube.escaping import shell_command
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, bound_claim
from kschedx.kube.types import PodResourceClaimStatus, Volume
from kschedx.snapshot.snapshot import Snapshot

# --- claims and volumes


class ObjectStep(FixStep, frozen=True, kw_only=True):
    """Objects that are created or changed; an object whose spec is immutable is deleted and recreated."""

    title: str
    cost: Cost = Cost.AROUND
    costs: tuple[str, ...] = ()
    group: FixGroup = FixGroup.WORKLOAD
    objects: tuple[ClusterObject, ...]
    made: tuple[tuple[ClusterObject, str], ...] = ()  # those that a component creates by itself, with the component
    others: tuple[Change, ...] = ()  # changes of objects that no `Proposal` holds
    kubectl: tuple[str, ...] = ()  # the commands that do everything; empty if it needs a patch or a manifest

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return proposal.with_objects(*self.objects)

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        yield from self.made

    def commands(self) -> tuple[str, ...]:
        return self.kubectl

    def changes(self, namespace: str) -> Iterator[Change]:
        yield from self.others


class ClassedClaim(FixStep, frozen=True, kw_only=True):
    """A claim, and the volume that the provisioner of its class creates at once."""

    _cost = Cost.AROUND
    claim: PersistentVolumeClaim
    volume: PersistentVolume | None = None
    """The volume to which the claim is bound in the trial; None if the class waits for the first consumer."""
    provisioner: str = ""

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        if self.volume is None:
            return proposal.with_objects(self.claim)
        return proposal.with_objects(bound_claim(self.claim, self.volume.name), self.volume)

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        if self.volume is not None:
            yield self.volume, self.provisioner


class RecreateClaim(ClassedClaim, frozen=True, kw_only=True):
    """A claim is deleted and recreated, bound to nothing."""

    title: str
    cost: Cost = Cost.AROUND
    costs: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """Pods, `namespace/name`, that use a claim that is being deleted: it stays until they are gone."""
    bound_to: str = ""  # the volume to which the claim is bound before the pod is scheduled

    def deletions(self) -> Iterator[tuple[str, str]]:
        yield from ((pod, "") for pod in self.users)

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        proposal = super().apply(replace(proposal, deleted=proposal.deleted | {*self.users}), snapshot)
        return proposal.with_objects(bound_claim(self.claim, self.bound_to)) if self.bound_to else proposal

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        yield from super().created_objects()
        if (owner := self.claim.metadata.controller) is not None and owner.kind == "Pod":
            yield self.claim, CONTROLLER_MANAGER


class SetEphemeralClass(ClassedClaim, frozen=True, kw_only=True):
    """Another class in the template of a generic ephemeral volume, from which the pod gets its claim."""

    name: str  # the volume
    wrong_class: str
    is_typo: bool = False

    @property
    def cost(self) -> Cost:
        return Cost.TYPO if self.is_typo else Cost.AROUND

    @property
    def title(self) -> str:
        instead = f" instead of {self.wrong_class}" if self.wrong_class else ""
        return f"set storage class {self.claim.storage_class}{instead} in ephemeral volume {self.name}"

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        def changed(volume: Volume) -> Volume:
            source = volume.ephemeral
            template = None if volume.name != self.name or source is None else source.volume_claim_template
            if source is None or template is None:
                return volume
            spec = replace(template.spec, storage_class_name=self.claim.storage_class)
            return replace(volume, ephemeral=replace(source, volume_claim_template=replace(template, spec=spec)))

        proposal = super().apply(proposal, snapshot)
        return replace(proposal, pod=edit.with_volumes(proposal.pod, changed))

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        yield from super().created_objects()
        yield self.claim, CONTROLLER_MANAGER


class SetClass(ClassedClaim, frozen=True, kw_only=True):
    """A class for a claim that names none; the API server allows setting it once."""

    _title = "set storageClassName {s.claim.storage_class} on claim {s.claim.key}"
    _cost = Cost.POD


class SetDefaultClass(FixStep, frozen=True, kw_only=True):
    """A class becomes the default: the volume controller sets it on every unbound claim that names none."""

    _title = "make storage class {s.storage_class.name} the default"
    _group = FixGroup.CLUSTER
    storage_class: StorageClass  # the class after the change
    claims: tuple[SetClass, ...]

    @property
    def cost(self) -> Cost:
        return Cost.REPAIR if len(self.claims) > 1 else Cost.AROUND

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        for claim in self.claims:
            proposal = claim.apply(proposal, snapshot)
        return proposal.with_objects(self.storage_class)

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        for claim in self.claims:
            yield claim.claim, CONTROLLER_MANAGER
            yield from claim.created_objects()


class ReleaseVolume(FixStep, frozen=True, kw_only=True):
    """A volume that is reserved for a deleted claim becomes available again; its data stays."""

    _group = FixGroup.CLUSTER
    volume: PersistentVolume  # the volume after the change
    holder: str  # the claim that it was bound to
    has_same_name: bool = False  # whether that claim had the same name: it was recreated
    is_failed: bool = False  # whether the volume's deletion has failed, so that its data may be gone
    reserved_for: str = ""  # the claim for which it is reserved instead, which is in another namespace than `holder`
    is_awaited: bool = False  # whether the namespace of `holder` exists, so that its claim may follow
    claim: PersistentVolumeClaim | None = None
    """The claim bound to the volume, if the volume controller binds it before the pod is scheduled."""

    @property
    def cost(self) -> Cost:
        if self.is_awaited:
            return Cost.OTHER_PODS  # another workload loses it
        return Cost.REPAIR if self.has_same_name or self.reserved_for else Cost.AROUND

    @property
    def title(self) -> str:
        if self.reserved_for:
            instead = f"instead of {self.holder}, which does not exist{' yet' if self.is_awaited else ''}"
            return f"reserve volume {self.volume.name} for claim {self.reserved_for} {instead}"
        earlier = "earlier " if self.has_same_name else ""
        title = f"release volume {self.volume.name}, whose {earlier}claim {self.holder} is deleted"
        return f"{title}, if its data still exists" if self.is_failed else f"{title}; its data stays"

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return proposal.with_objects(self.volume, *([] if self.claim is None else [self.claim]))

    def commands(self) -> tuple[str, ...]:
        reference = {"namespace": self.reserved_for.partition("/")[0]} if self.reserved_for else None
        return (shell_command("kubectl patch pv {} -p {}", self.volume.name, {"spec": {"claimRef": reference}}),)


# --- devices


class CreateDeviceClaim(FixStep, frozen=True, kw_only=True):
    """A ResourceClaim that the pod needs and that does not exist."""

    claim: ResourceClaim
    source: str = ""  # a remark on what the claim is like; follows the claim's name in the title
    template: str = ""  # the template from which kube-controller-manager creates the claim
    new_template: ResourceClaimTemplate | None = None
    """The template, if it does not exist and you only have to create it."""
    wrong_template: str = ""
    status: PodResourceClaimStatus | None = None  # the entry that kube-controller-manager writes to the pod's status

    @property
    def cost(self) -> Cost:
        return Cost.TYPO if self.wrong_template else Cost.AROUND

    @property
    def title(self) -> str:
        if self.wrong_template:
            return f"use ResourceClaimTemplate {self._name} instead of {self.wrong_template}"
        if self.new_template is not None:
            return f"create ResourceClaimTemplate {self.new_template.key}"
        if self.template:
            return f"wait until {CONTROLLER_MANAGER} creates a claim from template {self.template}"
        return f"create resource claim {self.claim.key}{self.source}"

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        changed = proposal if self.new_template is None else proposal.with_objects(self.new_template)
        changed = changed.with_objects(self.claim)
        pod = (
            edit.with_device_claim(proposal.pod, self.wrong_template, self._name)
            if self.wrong_template
            else proposal.pod
        )
        return replace(changed, pod=edit.with_claim_status(pod, self.status))

    @property
    def _name(self) -> str:
        return self.template.partition("/")[2]

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        if self.template:
            yield self.claim, CONTROLLER_MANAGER


class DeleteTaintRules(FixStep, frozen=True, kw_only=True):
    """DeviceTaintRules are deleted, so that devices that only they taint may be allocated."""

    _cost = Cost.REPAIR
    _group = FixGroup.CLUSTER
    names: tuple[str, ...]
    api_version: str

    @property
    def title(self) -> str:
        rules = f"DeviceTaintRule{'' if len(self.names) == 1 else 's'} {join_phrases(self.names)}"
        return f"delete {rules}, if the devices may be used again"

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return replace(proposal, untainted=proposal.untainted | {*self.names})

    def commands(self) -> tuple[str, ...]:
        return tuple(shell_command("kubectl delete devicetaintrule {}", name) for name in self.names)

    def changes(self, namespace: str) -> Iterator[Change]:
        for name in self.names:
            yield Target(self.api_version, "DeviceTaintRule", name).deletion


class NextAttempt(FixStep, frozen=True, kw_only=True):
    """kube-scheduler deallocates or deletes device claims when the pod fits no node, and tries again."""

    _cost = Cost.WAITING
    released: tuple[tuple[str, ResourceClaim | None], ...]
    """Claim as `namespace/name`, and its state afterwards; None if it is deleted."""

    @property
    def title(self) -> str:
        did = (f"{'deletes' if left is None else 'deallocates'} resource claim {key}" for key, left in self.released)
        return f"wait: {SCHEDULER} {' and '.join(did)} and retries"

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return replace(proposal, deallocated_claims=dict(self.released))
