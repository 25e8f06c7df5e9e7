"""Steps that delete, move, or add other pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from kschedx.explain.advice import FixGroup
from kschedx.fixes.changes import add_operation
from kschedx.fixes.phrases import amount_text, join_names, join_phrases
from kschedx.fixes.pod_edits import ContainerRequest, with_requests
from kschedx.fixes.proposal import CONTROLLER_MANAGER, KUBELET, SCHEDULER, Cost, FixStep, Proposal
from kschedx.grouping import group_pairs
from kschedx.kube.documents import Change, Json, Target
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import delete_pod, scale_workload
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count

_SHOWN_VICTIMS = 3


class Victim(Struct, frozen=True, kw_only=True):
    pod: str  # `namespace/name`
    priority: int
    controller: str = ""  # `ReplicaSet web-5d7b9`; empty for a pod that no controller recreates


class VictimStep(FixStep, frozen=True, kw_only=True):
    _group = FixGroup.CAPACITY
    victims: tuple[Victim, ...]
    node: str = ""  # the node on which room is made; empty if the pods' nodes do not matter

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset((self.node,)) - {""}

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return replace(proposal, deleted=proposal.deleted | {victim.pod for victim in self.victims})

    def deletions(self) -> Iterator[tuple[str, str]]:
        yield from ((victim.pod, CONTROLLER_MANAGER) for victim in self.victims)


class TakeOldFirst(VictimStep, frozen=True, kw_only=True):
    """A Deployment or DaemonSet deletes an old pod before it creates a new one: `maxSurge: 0`, or `Recreate` for a
    Deployment's only replica."""

    _cost = Cost.ROLLOUT
    _group = FixGroup.WORKLOAD
    owner: str
    kind: str = "Deployment"
    is_single: bool = False  # whether the Deployment has a single replica

    @property
    def title(self) -> str:
        old = " and ".join(victim.pod for victim in self.victims)
        if self.is_single:
            return f"set strategy Recreate on {self.kind} {self.owner}, so that {old} goes first"
        return f"set maxSurge: 0, maxUnavailable: 1 on {self.kind} {self.owner}: an old pod such as {old} goes first"

    @property
    def costs(self) -> tuple[str, ...]:
        return ("one replica fewer during a rollout",)

    def changes(self, namespace: str) -> Iterator[Change]:
        rolling: Json = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        strategy = {"type": "Recreate"} if self.is_single else rolling
        field = "updateStrategy" if self.kind == "DaemonSet" else "strategy"
        target = Target("apps/v1", self.kind, self.owner, namespace)
        yield target.patched(add_operation(f"/spec/{field}", strategy))


class DeletePods(VictimStep, frozen=True, kw_only=True):
    by_preemption: bool = False  # whether kube-scheduler is about to do it by itself
    or_elsewhere: int = 0  # the number of other nodes among which preemption picks by chance
    protected: int = 0  # the number of these pods that preemption evicts in violation of a PodDisruptionBudget
    are_lesser: bool = False
    """Whether they repel the pod and have a lower priority: preemption would evict them if they were on its node."""

    @property
    def cost(self) -> Cost:
        if self.by_preemption:
            return Cost.WAITING
        return Cost.REQUEST if self.are_lesser else Cost.OTHER_PODS

    @property
    def title(self) -> str:
        """The title: `delete ml/train-5d7b9 (priority 0) on node-4`, with at most three names."""
        controllers = {victim.controller for victim in self.victims}
        is_of_job = len(controllers) == 1 and min(controllers).startswith("Job ")
        ends = f"wait until {min(controllers)} ends, or " if is_of_job else ""
        if not self.node:
            pods = (f"{it.pod} (priority {it.priority})" if it.priority else it.pod for it in self.victims)
            return f"{ends}delete {' and '.join(pods)}"
        named = [f"{victim.pod} (priority {victim.priority})" for victim in self.victims]
        joined = join_names(named, _SHOWN_VICTIMS)
        if not self.by_preemption:
            return f"{ends}delete {joined} on {self.node}"
        elsewhere = f", or pods on {count(self.or_elsewhere, 'other node')}" if self.or_elsewhere else ""
        return f"wait for preemption to evict {joined} from {self.node}{self._budget_text}{elsewhere}"

    @property
    def costs(self) -> tuple[str, ...]:
        if self.by_preemption:
            return ()
        lost = [victim.pod.partition("/")[2] for victim in self.victims if not victim.controller]
        return (f"no controller recreates {join_phrases(lost)}",) if lost else ()

    @property
    def _budget_text(self) -> str:
        if not self.protected:
            return ""
        if len(self.victims) == 1:
            return " despite its PodDisruptionBudget"
        return f" despite PodDisruptionBudgets of {self.protected} of them"

    def commands(self) -> tuple[str, ...]:
        return () if self.by_preemption else tuple(delete_pod(victim.pod) for victim in self.victims)

    def deletions(self) -> Iterator[tuple[str, str]]:
        yield from ((victim.pod, SCHEDULER if self.by_preemption else "") for victim in self.victims)


def awaits_preemption(steps: Iterable[FixStep]) -> bool:
    """Return whether a fix consists in the evictions that kube-scheduler is about to do, or brings them about."""
    return any(isinstance(step, DeletePods) and step.by_preemption for step in steps)


class VictimMove(Struct, frozen=True, kw_only=True):
    victim: Victim
    source: str
    to: str  # the node for the pod that the controller creates instead
    architecture: str = ""  # that of the new node, if the old one has another


class MovePods(FixStep, frozen=True, kw_only=True):
    """Pods are evicted from nodes, one node after the other, and their replacements run elsewhere. The nodes are
    cordoned meanwhile, so that no replacement returns. Each is uncordoned once its own pods are gone."""

    _cost = Cost.MOVE
    _group = FixGroup.CAPACITY
    moves: tuple[VictimMove, ...]
    """Grouped by node. The last group makes the room; those before it make room for the moved pods."""

    def moves_by_node(self) -> dict[str, list[VictimMove]]:
        return group_pairs((move.source, move) for move in self.moves)

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset((self.moves[-1].source,))

    @property
    def title(self) -> str:
        moves = [f"{move.victim.pod} from {move.source} to {move.to}" for move in self.moves]
        return "move " + join_names(moves, _SHOWN_VICTIMS)

    @property
    def costs(self) -> tuple[str, ...]:
        others = {move.architecture: move.victim.pod for move in self.moves if move.architecture}
        return tuple(f"check that the image of {pod} runs on {other}" for other, pod in others.items())

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return replace(proposal, moved={**proposal.moved, **{move.victim.pod: move.to for move in self.moves}})

    def commands(self) -> tuple[str, ...]:
        return (*(shell_command("kubectl cordon {}", node) for node in self.moves_by_node()), *self._evictions())

    def _evictions(self) -> Iterator[str]:
        for node, moves in self.moves_by_node().items():
            yield from (delete_pod(move.victim.pod) for move in moves)
            # a StatefulSet's new pod has the same name, and is created only once the old pod is gone
            awaited = (it.victim.pod.split("/") for it in moves if it.victim.controller.startswith("StatefulSet "))
            template = "kubectl wait pod {} -n {} --for=condition=PodScheduled"
            yield from (shell_command(template, name, namespace) for namespace, name in awaited)
            yield shell_command("kubectl uncordon {}", node)

    def changes(self, namespace: str) -> Iterator[Change]:
        nodes = {node: Target("v1", "Node", node) for node in self.moves_by_node()}
        yield from (target.patched(add_operation("/spec/unschedulable", True)) for target in nodes.values())
        for node, moves in self.moves_by_node().items():
            yield from (Target.pod(move.victim.pod).deletion for move in moves)
            yield nodes[node].patched(add_operation("/spec/unschedulable", False))


class AwaitTermination(VictimStep, frozen=True, kw_only=True):
    """Pods that are being deleted terminate."""

    lost_node: str = ""  # the unreachable node, whose kubelet cannot confirm that the pods are gone
    finalizers: tuple[str, ...] = ()  # finalizers that their controllers have to remove from the pods
    overdue: tuple[str, ...] = ()  # those whose deletion the kubelet should have confirmed long ago

    @property
    def cost(self) -> Cost:
        return Cost.REPAIR if self.lost_node else Cost.WAITING

    @property
    def title(self) -> str:
        pods = join_names([victim.pod for victim in self.victims], _SHOWN_VICTIMS)
        if self.lost_node:
            return (
                f"force-delete {pods}: the kubelet of {self.lost_node} does not answer "
                "(or taint the node out-of-service once its machine is off)"
            )
        where = f" on {self.node}" if self.node else ""
        if self.finalizers:
            which = f"finalizer{'s' if len(self.finalizers) > 1 else ''} {join_phrases(self.finalizers)}"
            return f"repair the controller of {which}, which holds {pods}{where}, or remove the finalizer"
        if self.overdue:
            overdue = join_names(list(self.overdue), _SHOWN_VICTIMS)
            return f"find out why the kubelet has not ended {overdue}{where}, or force the deletion"
        return f"wait until {pods}{where} {'has' if len(self.victims) == 1 else 'have'} terminated"

    def commands(self) -> tuple[str, ...]:
        if not self.lost_node:
            return ()
        return tuple(delete_pod(victim.pod, force=True) for victim in self.victims)

    def deletions(self) -> Iterator[tuple[str, str]]:
        yield from ((victim.pod, "" if self.lost_node else KUBELET) for victim in self.victims)


class StopWorkload(VictimStep, frozen=True, kw_only=True):
    """A Job is deleted, or a workload is scaled to 0: if only the pod is deleted, the controller recreates it."""

    _cost = Cost.OTHER_PODS
    workload: Target
    costs: tuple[str, ...] = ()

    @property
    def is_deleted(self) -> bool:
        return self.workload.kind == "Job"

    @property
    def title(self) -> str:
        named = f"{self.workload.kind} {self.workload.key}"
        pods = join_names([victim.pod for victim in self.victims], _SHOWN_VICTIMS)
        if self.is_deleted:
            return f"wait until {named} ends, or delete it with its pod {pods}"
        return f"scale {named} to 0, which removes {pods}"

    def commands(self) -> tuple[str, ...]:
        workload, group = self.workload, self.workload.api_version.rpartition("/")[0]
        named = "{}.{} {} -n {}" if group else "{} {} -n {}"
        template = f"kubectl delete {named}" if self.is_deleted else f"kubectl scale {named} --replicas=0"
        return (
            shell_command(template, workload.kind.lower(), *filter(None, (group,)), workload.name, workload.namespace),
        )

    def changes(self, namespace: str) -> Iterator[Change]:
        workload = self.workload
        yield workload.deletion if self.is_deleted else workload.patched(add_operation("/spec/replicas", 0))


class AddReplica(FixStep, frozen=True, kw_only=True):
    """Another replica of a Deployment beside whose pods the pod has to run."""

    _group = FixGroup.CAPACITY
    workload: Target
    replicas: int
    replica: Pod  # on the node on which it lets the pod run

    @property
    def title(self) -> str:
        named = f"{self.workload.kind} {self.workload.key}"
        return f"scale {named} to {count(self.replicas, 'replica')}, so that one runs beside the pod"

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset((self.replica.spec.node_name,))

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return replace(proposal, replicas=(*proposal.replicas, self.replica))

    def commands(self) -> tuple[str, ...]:
        workload = self.workload
        return (scale_workload(workload.kind, workload.namespace, workload.name, self.replicas),)

    def changes(self, namespace: str) -> Iterator[Change]:
        yield self.workload.patched(add_operation("/spec/replicas", self.replicas))


class WithdrawResize(FixStep, frozen=True, kw_only=True):
    """A running pod again requests what its node has allocated to it: until then, the larger of the two counts."""

    _cost = Cost.REPAIR
    _group = FixGroup.CAPACITY
    pod: str  # `namespace/name`
    node: str
    requests: tuple[ContainerRequest, ...]

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset((self.node,))

    @property
    def title(self) -> str:
        amounts = (f"{it.container} to {amount_text(it.resource, it.after)}" for it in self.requests)
        return f"withdraw the resize of {self.pod}: set {join_phrases(amounts)} again"

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        pods = snapshot.pods
        pod = with_requests(pods[pods.rows[self.pod]], self.requests)
        return replace(proposal, resized={**proposal.resized, self.pod: pod})

    def commands(self) -> tuple[str, ...]:
        namespace, _, name = self.pod.partition("/")
        containers: dict[str, dict[str, str]] = {}
        for request in self.requests:
            text = format_quantity(request.after, Unit.of(request.resource))
            containers.setdefault(request.container, {})[request.resource] = text
        containers_patch = [{"name": its, "resources": {"requests": amounts}} for its, amounts in containers.items()]
        patch: Json = {"spec": {"containers": containers_patch}}
        return (shell_command("kubectl patch pod {} -n {} --subresource resize -p {}", name, namespace, patch),)
