"""Notes on how far to trust an answer. Each is worded where it is found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from kschedx.findings import Finding, TopologySpreadSkew
from kschedx.framework.cycle import Stake, Unevaluated, open_stake
from kschedx.kube.documents import camel

ROUTINE = "admission-routine"  # the id of notes about what happens to every pod, or what the manifest itself requests
CLAIMS_MADE = "claims-from-templates"  # the id of notes about claims that controllers create for a new pod
CLAIM_WITHOUT_POD = "claim-without-pod"
"""The id of the note that the pod in question is made up, for a claim that no pod uses."""
AFTER_CHANGES, TRIED = "after-changes", "tried"
"""The ids of notes about hypothetical changes of the cluster and of the pod."""


class Note(Struct, frozen=True, kw_only=True):
    id: str  # stable; notes about the same matter share it
    text: str  # one line, in lower case, without a full stop. The renderer escapes it
    facts: Mapping[str, object] = {}  # the content of the text for programs: JSON types, keys in camelCase

    @property
    def document(self) -> dict[str, object]:
        return {"id": self.id, "text": self.text, **self.facts}


def _plain(value: object) -> object:
    """Convert a value to JSON types."""
    return msgspec.json.decode(msgspec.json.encode(value))


def note(name: str, text: str, /, **facts: object) -> Note:
    """Build a note with this id. The document has the facts beside the id and the text."""
    return Note(id=name, text=text, facts={camel(key): _plain(value) for key, value in facts.items()})


def drained_nodes(notes: Iterable[Note]) -> frozenset[str]:
    """Return the nodes that the changes before a question drain or cordon."""
    changes = (note.facts.get("changes") for note in notes if note.id == AFTER_CHANGES)
    parts = (str(change).partition(" ") for each in changes if isinstance(each, list) for change in each)
    return frozenset(node for verb, _, node in parts if verb in ("drain", "cordon"))


def recreated_pods(notes: Iterable[Note]) -> list[str]:
    """Return the pods, `namespace/name`, that the changes before a question evict and that come last in the queue."""
    waiting = (note.facts.get("waiting") for note in notes if note.id == AFTER_CHANGES)
    return [str(key) for keys in waiting if isinstance(keys, Sequence) for key in keys]


class RunsAlready(Note, frozen=True, kw_only=True):
    """The pod has a node and was evaluated as if it had none; or all replicas have nodes, and another one was
    evaluated."""

    id: str = "runs-already"
    node: str = ""
    not_ready: str = ""  # why the pod is not ready, according to its kubelet; empty if it is
    rejected_by: tuple[Finding, ...] = ()  # why its node would reject it now
    behind: int | None = None
    """The points by which its node is behind the best one; None if it is the best or rejects the pod."""
    joined_later: tuple[str, ...] = ()  # the best nodes that joined the cluster after the pod was assigned
    ready_later: tuple[str, ...] = ()  # the best nodes that became ready after that
    recreated_by: str = ""  # the controller, such as `ReplicaSet web-1`, if deleting the pod moves it to the best node
    assigned: str = ""  # when the last of a workload's replicas was assigned; empty for a note about one pod
    eviction: str = ""  # which NoExecute taint of its node evicts it, and when
    restarts: str = ""  # which of its containers restarts often, and why
    is_deleted: bool = False  # whether its DaemonSet's controller deletes it, because it does not select the node
    is_static: bool = False  # whether the kubelet of `node` runs it as a static pod
    uneven: TopologySpreadSkew | None = None
    """A spread constraint that the workload's pods exceed now, even without one more."""

    @property
    def document(self) -> dict[str, object]:
        names = ("node", "not_ready", "behind", "joined_later", "ready_later")
        restarts = {"restarts": self.restarts} if self.restarts else {}
        return super().document | {camel(name): _plain(getattr(self, name)) for name in names} | restarts


def unknown_plugins(left_out: Sequence[Unevaluated], *, stands: bool) -> Note:
    """Note the plugins that kschedx does not have, by their possible effect. `stands`: the answer does not depend on
    them."""
    if stands:
        worth = "; the answer does not depend on them"
    elif all(unevaluated.is_waived for unevaluated in left_out):
        worth = ", as you asked"
    elif open_stake(left_out) is Stake.FIT:
        worth = " (--without-unknown-plugins assumes that none of them rejects it)"
    else:
        worth = ""
    phrases = []
    for does, stake in (("could reject the pod", Stake.FIT), ("could prefer another node", Stake.NODE)):
        mattering = [it for it in left_out if it.stake is stake and not (stands or it.is_waived)]
        if mattering:
            phrases.append(f"{_with_points(mattering)} {does}")
    if others := [it for it in left_out if stands or it.is_waived or it.stake is Stake.NOTHING]:
        phrases.append(_with_points(others))
    text = f"plugins not available to kschedx were skipped{worth}: {'; '.join(phrases)}"
    return note("unknown-plugin", text, plugins=[unevaluated.name for unevaluated in left_out])


def _with_points(plugins: Iterable[Unevaluated]) -> str:
    """Format as `LicenseSeats (filter), CarbonAware (score)`."""
    return ", ".join(f"{plugin.name} ({', '.join(plugin.where)})" for plugin in plugins)
