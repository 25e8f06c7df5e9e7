"""What the API server changes on a manifest, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import assert_never

from kschedx.apiserver.admission import AdmissionChange
from kschedx.errors import nearest
from kschedx.explain import notes
from kschedx.framework.cycle import Stake, Unevaluated, open_stake
from kschedx.kube.kinds import KINDS
from kschedx.render.wording import count, listed


def admission_note_text(note: notes.AdmissionNote) -> str:
    match note:
        case notes.RuntimeClassUnknown(runtime_class=name):
            return (
                f"RuntimeClass {name} is not in the snapshot: its overhead, node selector, and tolerations do not count"
            )
        case notes.AdmissionPluginOff(plugin=plugin):
            return (
                f"namespace {note.namespace} has the annotation {note.annotation}: it applies only if the API server "
                f"runs {plugin}, which is off by default"
            )
        case notes.PodSecurityUnread(namespace=namespace, level=level, is_cut=is_cut):
            why = "and the snapshot lacks parts of the template"
            if not is_cut:
                why = "and SecurityContextConstraints, not evaluated here, change the pod first"
            return (
                f"namespace {namespace} enforces Pod Security {level}, {why}: the API server may refuse the pod "
                "(--dry-run=server asks it)"
            )
        case notes.PodSecurityRefusesMore(namespace=namespace, refusal=refusal):
            return (
                f"namespace {namespace} refuses new pods of this template ({refusal}): the running pods are older "
                "than its label, or a webhook changes them"
            )
        case notes.PodSecurityWarning(warning=warning):
            if note.workload:
                return f"kubectl apply only warns: it creates the {note.workload}, but its pods are refused"
            return f"kubectl apply warns but admits the pod: {warning}"
        case notes.DefaultPriority(source=source, priority=priority):
            return f"{source}, the global default, set priority {priority}"
        case notes.NamedPriority(source=source, priority=priority):
            return f"{source} set priority {priority}"
        case notes.AdmittedAsEveryPod() | notes.Admitted():
            return f"{note.source or note.plugin} {'; '.join(_clauses(note.changes))}"
        case _:
            assert_never(note)


def _clauses(changes: Sequence[AdmissionChange]) -> Iterator[str]:
    """`set requests.cpu 100m, limits.cpu 500m on container web`, `added toleration kata:NoSchedule op=Exists`."""
    containers_of: dict[str, list[str]] = {}
    for container, group in groupby(changes, key=lambda change: change.container):
        values = ", ".join(f"{change.item} {change.after}" for change in group if change.item != "toleration")
        if values:
            containers_of.setdefault(values, []).append(container)
    for values, containers in containers_of.items():
        names = ", ".join(filter(None, containers))
        where = f" on container{'s' if len(containers) > 1 else ''} {names}" if names else ""
        yield f"set {values}{where}"
    tolerations = [change for change in changes if change.item == "toleration"]
    for verb, texts in (
        ("added", [change.after for change in tolerations if change.after]),
        ("dropped", [change.before for change in tolerations if change.before]),
    ):
        if texts:
            yield f"{verb} toleration{'s' if len(texts) > 1 else ''} {', '.join(texts)}"


# Claims that controllers make for a new pod, in words.


def claim_note_text(note: notes.ClaimNote) -> str:
    if isinstance(note, notes.DeviceClaimNotMade):
        return f"claim {note.claim} is not created from its template: {note.refusal}"
    if isinstance(note, notes.ClaimNotMade):
        return f"claim {note.claim} is not created for the pod's ephemeral volume: {note.refusal}"
    claims = ", ".join(note.claims)
    match note:
        case notes.ClaimsOfController():
            return f"evaluated with the claims that its controller creates: {claims}"
        case notes.ClaimsOfVolumes():
            return f"evaluated with the claims that kube-controller-manager creates for its ephemeral volumes: {claims}"
        case notes.ClaimsOfTemplates(templates=templates):
            return (
                f"evaluated with the claims that kube-controller-manager creates: {claims} from {', '.join(templates)}"
            )
        case _:
            assert_never(note)


# What of the cluster's objects counts otherwise than one would think, in words.

_SHOWN_NAMES = 3


def cluster_note_text(note: notes.ClusterNote) -> str:
    match note:
        case notes.OrphanedPods(pods=pods, nodes=nodes):
            run, are = ("runs", "is") if len(pods) == 1 else ("run", "are")
            these = count(len(pods), "pod")
            return f"{these} {run} on nodes that do not exist and {are} ignored: {listed(nodes, _SHOWN_NAMES)}"
        case notes.FilesLeftOut(files=files):
            return f"ignored, no Kubernetes objects in it: {listed(files, _SHOWN_NAMES)}"
        case notes.FinishedPods(pods=number):
            return f"{number:,} finished pods count on their nodes: remove them from the input, as the API server does"
        case notes.ReleaseEmulated():
            return _release(note)
        case _:
            assert_never(note)


def _release(note: notes.ReleaseEmulated) -> str:
    emulated = f"kschedx emulates kube-scheduler {note.emulated}"
    told = f"{_teller(note.teller)} {note.version}"
    if note.is_known:
        return f"{told}: {emulated}"
    return f"{told}, which kschedx does not support: {emulated} (--kube-version selects another)"


def _teller(teller: notes.Teller) -> str:
    match teller:
        case notes.Teller.SERVER:
            return "the API server is"
        case notes.Teller.KUBELETS:
            return "the kubelets are"
        case notes.Teller.MOST_KUBELETS:
            return "most kubelets are"
        case _:
            assert_never(teller)


# How the cycle went, in words.


def cycle_note_text(note: notes.CycleNote) -> str:
    match note:
        case notes.UnknownPlugins():
            return _unknown_plugins(note)
        case notes.KeepsAccount(plugin=plugin, setting=setting):
            return (
                f"{plugin} also reserves resources in its own cache ({setting}) until a node reports again; "
                "no snapshot holds that"
            )
        case notes.NotMeasured(version=version):
            return (
                f"published, not measured: kschedx uses what is published about kube-scheduler {version}, and "
                "otherwise the rules of 1.36"
            )
        case notes.Gated(gates=gates):
            return f"gated by {', '.join(gates)}: the rest is evaluated as if the gates were removed"
        case notes.BoundByHand():
            return bound_by_hand_text(note)
        case notes.NominatedNodeFirst(node=node):
            return f"kube-scheduler tries the nominated node {node} first, and it fits"
        case notes.Sampling():
            return (
                f"kube-scheduler samples {note.nodes_to_find:,} of {note.feasible:,} feasible nodes; "
                "kschedx evaluated all of them"
            )
        case notes.SingleFeasibleNode():
            return "one node is feasible: kube-scheduler selects it without scoring"
        case notes.Tie():
            how = (
                "kube-scheduler alternates between them" if note.takes_turns else "kube-scheduler selects one at random"
            )
            return f"{len(note.nodes):,} nodes have the highest score: kube-scheduler {how}"
        case notes.NotReadyNodes(nodes=nodes):
            named = f"{nodes[0]} is" if len(nodes) == 1 else f"{listed(nodes, 2)} are"
            return f"{named} not ready but not tainted: kube-scheduler checks only taints"
        case notes.OtherOperatingSystem():
            runs = f"{note.node} runs {note.actual}, and spec.os names {note.wanted}"
            return f"{runs}: its kubelet rejects the pod; kube-scheduler reads node labels only"
        case notes.MixedArchitectures(architectures=found):
            return (
                f"the nodes that fit are {listed(found, 4)}: an image built for one of them alone fails on the others"
            )
        case notes.AutoscalerUnreadable(error=error):
            return f"cluster-autoscaler is not evaluated: {error}"
        case notes.KarpenterUnreadable(error=error):
            return f"Karpenter is not evaluated: {error}"
        case _:
            assert_never(note)


def _unknown_plugins(note: notes.UnknownPlugins) -> str:
    """The plugins by what they could do, with what the answer is worth without them."""
    left_out, stands = note.left_out, note.stands
    if stands:
        worth = "; the answer does not depend on them"
    elif all(one.is_waived for one in left_out):
        worth = ", as you asked"
    elif open_stake(left_out) is Stake.FIT:
        worth = " (--without-unknown-plugins assumes that none of them rejects it)"
    else:
        worth = ""
    told = []
    for does, stake in (("could reject the pod", Stake.FIT), ("could prefer another node", Stake.NODE)):
        mattering = [one for one in left_out if one.stake is stake and not (stands or one.is_waived)]
        if mattering:
            told.append(f"{_placed(mattering)} {does}")
    if others := [one for one in left_out if stands or one.is_waived or one.stake is Stake.NOTHING]:
        told.append(_placed(others))
    return f"plugins not available to kschedx were skipped{worth}: {'; '.join(told)}"


def _placed(plugins: Iterable[Unevaluated]) -> str:
    """`LicenseSeats (filter), CarbonAware (score)`."""
    return ", ".join(f"{one.name} ({', '.join(one.where)})" for one in plugins)


def bound_by_hand_text(note: notes.BoundByHand) -> str:
    """`spec.nodeName binds it to n1: kube-scheduler never sees it, and the kubelet would refuse it (OutOfcpu)`."""
    bound = f"spec.nodeName binds it to {note.node}, without kube-scheduler"
    if not note.exists:
        return f"{bound}; the node does not exist"
    if note.refusals:
        return f"{bound}; its kubelet rejects the pod ({', '.join(note.refusals)})"
    return f"{bound}; resources, ports, node affinity, and NoExecute taints permit it"


# What became of the calls to HTTP extenders, in words.


def extender_note_text(note: notes.ExtenderNote) -> str:
    match note:
        case notes.ExtendersNotAsked(extenders=extenders):
            names = ", ".join(extenders)
            if not note.stands:
                how = "--extenders call calls it from this machine; --extenders FILE reads its answers"
                return f"the extender at {names} was not called: {how}"
            told = f"the extender at {names} was not called: the answer does not depend on it"
            choosing = ", ".join(note.choosing_victims)
            return f"{told}; {choosing} may select other pods to evict" if choosing else told
        case notes.ExtenderFailed():
            return f"the extender at {note.url} failed {_consequence(note.consequence)}: {note.error}"
        case notes.NodesDroppedSilently(nodes=nodes):
            omitted = count(len(nodes), "node")
            return f"extenders omitted {omitted} without a reason: kube-scheduler counts such nodes under no reason"
        case notes.WholeNodesAnswered(extender=extender):
            return (
                f"{extender} returns whole nodes: score plugins then see them without pods and images "
                "(kubernetes/kubernetes issue 141781)"
            )
        case _:
            assert_never(note)


def _consequence(found: notes.Consequence) -> str:
    match found:
        case notes.Consequence.AS_IF_ABSENT:
            return "and kube-scheduler ignores it (ignorable)"
        case notes.Consequence.ENDS_FILTER:
            return "and the attempt ends"
        case notes.Consequence.NO_SCORES:
            return "and gives no scores"
        case notes.Consequence.CANDIDATES_STAY:
            return "and kube-scheduler keeps the candidates (ignorable)"
        case notes.Consequence.NO_EVICTION:
            return "and no pod is evicted"
        case _:
            assert_never(found)


# Kinds that were not read, in words.


def missing_note_text(note: notes.MissingNote) -> str:
    match note:
        case notes.NamespacesOnly(namespaces=namespaces):
            listed = ", ".join(namespaces)
            return f"only namespace {listed} is in this snapshot: requests of pods in other namespaces do not count"
        case notes.PodsLacking(lacking=lacking):
            held = f"{_dumps(note.formats)} does not hold {lacking or 'any pod'}"
            return f"{held}: nodes may be fuller than shown (details: kschedx doctor)"
        case notes.KindsLacking():
            return f"missing or incomplete in {_dumps(note.formats)}: {_with_worth(note.kinds)}"
        case notes.KindsForbidden(depends=False):
            return f"listing is forbidden for {_with_worth(note.kinds)}; this answer does not depend on it"
        case notes.KindsForbidden():
            return f"listing is forbidden for {_names(note.kinds)}: pods that use them are undecided"
        case notes.KindsNotServed():
            return f"the API server serves no {_names(note.kinds)}, so there are none"
        case _:
            assert_never(note)


def _names(kinds: Iterable[str]) -> str:
    return ", ".join(KINDS[kind].resource for kind in kinds)


def _with_worth(kinds: Iterable[str]) -> str:
    """With what is not known without them."""
    return ", ".join(f"{KINDS[kind].resource} ({KINDS[kind].leaves})" for kind in kinds)


def _dumps(formats: Iterable[str]) -> str:
    return " and ".join(map(with_article, formats)) or "the dump"


def with_article(dump: str) -> str:
    """`a must-gather`, `an oc adm inspect`."""
    return f"{'an' if dump[:1].lower() in ('a', 'e', 'i', 'o') else 'a'} {dump}"


# How the question was understood, in words.

_SHOWN_CHANGES = 4


def since_text(note: notes.RunsAlready) -> str:
    """Why a pod is on a node that it would not be assigned to now; empty where it would."""
    if note.rejected_by:
        from kschedx.render.words import headline  # most pods run where they fit

        told = f"{note.node} would reject it now: {headline(note.rejected_by[0])}"
        return f"{told}; the cluster has changed since, or spec.nodeName was written by hand"
    if note.behind is None:
        return ""
    if note.joined_later:
        cause = f"{listed(note.joined_later, 3)} joined after the pod was assigned"
    elif note.ready_later:
        cause = f"{listed(note.ready_later, 3)} became ready after the pod was assigned"
    else:
        cause = f"{note.node} is {count(note.behind, 'point')} behind"
    return f"{cause}; kube-scheduler does not move pods that have a node"


def question_note_text(note: notes.QuestionNote) -> str:
    match note:
        case notes.ForeignWorkload():
            kind = f"{note.kind} ({note.group})"
            if note.count is None:
                told = f"one pod of its template at {note.path} is explained; replicas are not counted"
            elif note.is_exact:
                told = f"{count(note.count, 'pod')} of its template at {note.path}"
            else:
                told = f"{count(note.count, 'pod')} as {note.path} describes them; its operator may add containers"
            return f"{kind} is a custom resource: {told}"
        case notes.RunsAlready(replicas=replicas, unready=unready) if replicas:
            which = "its only replica has a node" if replicas == 1 else f"all of its {replicas:,} replicas have nodes"
            one = ", but is not ready" if replicas == 1 else f", {unready:,} of them not ready"
            not_ready = one if unready else ""
            return f"{which}{not_ready}; this shows where one more would go"
        case notes.RunsAlready(node=node, not_ready=why):
            not_ready = f" and is not ready: {why}" if why else ""
            return f"it runs on {node}{not_ready}; this shows what scheduling it now would give"
        case notes.ManifestLeftOut(source=source, why=why):
            return f"ignored: {source}, {why}"
        case notes.OldVersion():
            served = f"is not served as {note.api_version} since Kubernetes {note.since}"
            return f"{note.kind} {served}: read as its current version"
        case notes.AppliedTogether(objects=objects):
            return f"evaluated as applied together with {listed(objects, _SHOWN_CHANGES)}"
        case notes.DeadlineExceeded(workload=workload, message=message):
            return f"{workload} exceeded its progress deadline: {message}"
        case notes.NotApplied():
            return f"{note.what} is ignored, the API server refuses it: {note.refusal}"
        case notes.UnlikelyAmount():
            written = f"{note.amount} of {note.resource} is {_really(note)}"
            return f"container {note.container}: {written}: did you mean {note.meant}?"
        case notes.DryRun(error=error) if error:
            return f"the API server's dry run admits the pod; kschedx could not: {error}"
        case notes.DryRun(differences=()):
            return "the API server's dry run returns the same pod as kschedx"
        case notes.DryRun(differences=differences):
            return (
                f"the API server's dry run returns a different pod than kschedx: {'; '.join(map(_told, differences))}"
            )
        case notes.AfterChanges():
            return "; ".join((f"after {'; '.join(note.changes)}{_displaced(note)}", *note.undone))
        case notes.Tried():
            return f"tried with {', '.join(note.changes)}; without it: {note.before.value}"
        case _:
            assert_never(note)


def dry_run_facts(note: notes.DryRun) -> dict[str, object]:
    return {"changes": list(map(_told, note.differences))}


def _told(one: notes.FieldDifference) -> str:
    return f"{one.path} is {one.theirs}, not {one.ours}"


def _really(note: notes.UnlikelyAmount) -> str:
    if note.resource == "cpu":
        return f"{note.is_really:,} processors"
    return f"{note.is_really:,} bytes" if note.is_really else "less than a byte"


def _displaced(note: notes.AfterChanges) -> str:
    """`: 3 pods move, shop/web-0 loses its node and finds no other`."""
    parts = [f"{count(len(note.moved), 'pod')} {'moves' if len(note.moved) == 1 else 'move'}"] if note.moved else []
    if note.waiting:
        lost = "loses its node and stays" if len(note.waiting) == 1 else "lose their nodes and stay"
        parts.append(f"{listed(note.waiting, 2)} {lost} pending")
    if note.gone:
        parts.append(f"{listed(note.gone, 2)} will not be recreated")
    return f": {', '.join(parts)}" if parts else ""


# The cluster's own event beside kschedx's message, in words.

_ELSEWHERE = "recorded at another time"
"""The usual reason: the pod waits, and the cluster goes on."""
_MOST_TEXTS = 3
_MOST_LETTERS = 100
"""Of one text: other schedulers and extenders write what they like."""


def recorded_event_note_text(note: notes.RecordedEvent) -> str:
    times = f", {note.count:,} times" if note.count > 1 else ""
    whole, _, fraction = note.last_seen.partition(".")
    seen = f" (last seen {whole}{'Z' if fraction else ''}{times})" if note.last_seen else ""
    differs = "; ".join(map(contrast_text, note.contrasts))
    return f"the recorded event{seen} {f'differs: {differs}' if differs else 'is the same'}"


def recorded_event_facts(note: notes.RecordedEvent) -> dict[str, object]:
    seen: dict[str, object] = {"count": note.count, "lastSeen": note.last_seen} if note.last_seen else {}
    return {"message": note.message, "differences": list(map(contrast_text, note.contrasts))} | seen


def contrast_text(contrast: notes.Contrast) -> str:
    """What is different, and what that comes from."""
    match contrast:
        case notes.FitsHere():
            return "kschedx finds a node: recorded at another time, or with another configuration"
        case notes.FailedAfterwards(message=message):
            return f"kube-scheduler had selected a node and failed there: {message}"
        case notes.OtherNodeCount(there=there, here=here):
            return f"it counts {there:,} nodes, the snapshot has {here:,}: {_ELSEWHERE}, or an incomplete snapshot"
        case notes.OtherCounts(moved=moved):
            told = (f"{one.there:,} × {_quoted(one.text)} there, {one.here:,} here" for one in moved)
            return f"{listed(told, _MOST_TEXTS)}: {_ELSEWHERE}"
        case notes.OtherWords(texts=texts):
            return f"{_listed(texts)} is the text of another Kubernetes version"
        case notes.OfUnknownPlugin(texts=texts):
            return f"{_listed(texts)} is not of a known plugin: it comes from an extender or another scheduler"
        case notes.NotFoundHere(texts=texts):
            return f"{_listed(texts)} does not apply now: {_ELSEWHERE}, or with another configuration"
        case notes.FoundHereOnly(texts=texts):
            return f"{_listed(texts)} is new"
        case notes.NoPreemptionThere():
            return "it has no preemption part: another Kubernetes version, or preemption is off"
        case notes.OtherPreemption():
            return f"its preemption result differs: {_ELSEWHERE}, or by another Kubernetes version"
        case notes.OtherRelease():
            return "its text is that of another Kubernetes version"
        case _:
            assert_never(contrast)


def _listed(texts: Iterable[str]) -> str:
    return listed(dict.fromkeys(map(_quoted, texts)), _MOST_TEXTS)


def _quoted(text: str) -> str:
    return f'"{text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"}"'


# What does not fit together about a pod's storage and devices, and what kube-scheduler makes of it, in words.

_SHOWN_OBJECTS = 3


def storage_note_text(note: notes.StorageNote) -> str:
    match note:
        case notes.EmptyKind(kind=kind):
            return _empty(kind)
        case notes.MissingKind(kind=kind):
            return _missing(kind)
        case notes.ClaimVolumeMissing(claim=claim, volume=volume):
            return f'claim {claim} names volume "{volume}", which does not exist: pods that use it stay pending'
        case notes.VolumeBoundElsewhere(claim=claim, other=other):
            whose = f"claim {other}" if other != claim else "an earlier claim of that name (with another uid)"
            return (
                f"claim {claim} names volume {note.volume}, but the volume names {whose}: kube-scheduler trusts the "
                "claim; the volume controller will set the claim to Lost"
            )
        case notes.ClaimResizing(claim=claim, size=size, condition=condition, message=message):
            mounts = (
                "its file system grows when a pod mounts it again" if condition == "FileSystemResizePending" else ""
            )
            why = f": {message or mounts}" if message or mounts else ""
            return f"claim {claim} is being expanded to {size}, {condition}{why}"
        case notes.ClaimClassMissing(claim=claim, storage_class=storage_class):
            hint = nearest(storage_class, note.known)
            return (
                f'claim {claim} names storage class "{storage_class}", which does not exist'
                f"{f' ({hint})' if hint else ''}: kube-scheduler waits until the claim is bound"
            )
        case notes.SelectedNodeMissing(claim=claim, node=node):
            return (
                f'the volume of claim {claim} is to be provisioned for node "{node}", which does not exist: '
                "kube-scheduler selects no other node until the provisioner gives up"
            )
        case notes.EqualVolumes(claim=claim, volumes=volumes):
            return (
                f"{len(volumes):,} volumes of equal size fit claim {claim} ({listed(volumes, _SHOWN_OBJECTS)}): "
                "kube-scheduler may bind any of them"
            )
        case notes.CSINodesWithoutNode(csi_nodes=gone):
            named = f"{count(len(gone), 'CSINode')} without a node ({listed(gone, _SHOWN_OBJECTS)})"
            return f"{named}: ignored by kube-scheduler"
        case notes.NodesWithoutCSINode(nodes=bare):
            named = f"{count(len(bare), 'node')} without a CSINode ({listed(bare, _SHOWN_OBJECTS)})"
            return f"{named}: kube-scheduler applies no volume limit there"
        case notes.CapacitySelectorInvalid(capacity=capacity, error=error):
            return (
                f"CSIStorageCapacity {capacity} has an invalid nodeTopology ({error}): kube-scheduler treats "
                "it as accessible from no node"
            )
        case notes.SelectorsRefused(refusals=refusals):
            told = "; ".join(map(_refusal, refusals[:_SHOWN_OBJECTS]))
            others = f"; and {len(refusals) - _SHOWN_OBJECTS} more" if len(refusals) > _SHOWN_OBJECTS else ""
            return f"the API server refuses {told}{others}"
        case _:
            assert_never(note)


def _empty(kind: notes.StorageKind) -> str:
    match kind:
        case "PersistentVolumeClaim":
            return "the cluster has no PersistentVolumeClaims, so those of the pod do not exist"
        case "CSINode":
            return "the cluster has no CSINodes: kube-scheduler applies no volume limit"
        case _:
            assert_never(kind)


def _missing(kind: notes.StorageKind) -> str:
    match kind:
        case "PersistentVolumeClaim":
            return "the snapshot has no PersistentVolumeClaims: the dump may lack them"
        case "CSINode":
            return "the snapshot has no CSINodes: no volume limit is applied"
        case _:
            assert_never(kind)


def _refusal(one: notes.SelectorRefusal) -> str:
    return f"{one.object}: {one.field}: {one.error.splitlines()[0]}"


# Notes in words; a module per subject, as in `explain/notes`.
#
# Text is data still: whatever prints it makes it harmless first (`safe.visible`).


def note_text(note: notes.Note) -> str:
    """A line: lower case, no full stop."""
    if isinstance(note, notes.CycleNote):
        return cycle_note_text(note)
    if isinstance(note, notes.RecordedEvent):
        return recorded_event_note_text(note)
    if isinstance(note, notes.ExtenderNote):
        return extender_note_text(note)
    if isinstance(note, notes.MissingNote):
        return missing_note_text(note)
    if isinstance(note, notes.ClusterNote):
        return cluster_note_text(note)
    if isinstance(note, notes.StorageNote):
        return storage_note_text(note)
    if isinstance(note, notes.AdmissionNote):
        return admission_note_text(note)
    if isinstance(note, notes.ClaimNote):
        return claim_note_text(note)
    if isinstance(note, notes.QuestionNote):
        return question_note_text(note)
    assert_never(note)


def note_facts(note: notes.Note) -> dict[str, object]:
    """What the document carries beside id and text; in some notes that is words too."""
    if isinstance(note, notes.RecordedEvent):
        return recorded_event_facts(note)
    if isinstance(note, notes.DryRun):
        return dry_run_facts(note)
    return note.facts
