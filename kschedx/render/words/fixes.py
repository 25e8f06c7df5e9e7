"""Fixes in words: a title says every step once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from kschedx.findings import RequirementMatch
from kschedx.findings.topology import HOSTNAME
from kschedx.fixes import Fix
from kschedx.fixes import steps as s
from kschedx.fixes.dead_end import (
    Contradiction,
    DeadEnd,
    GateOfController,
    GroupIncomplete,
    HeldByOther,
    HeldByPlugin,
    NotSearched,
    OfController,
    RefusedByExtender,
    Untold,
)
from kschedx.kube.escaping import shell_command
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.selectors import NodeSelectorRequirement
from kschedx.kube.types import Node
from kschedx.render.wording import count, listed
from kschedx.render.words import describe

SHOWN_VICTIMS = 3
SHOWN_LABELS = 4


def fix_title(fix: Fix) -> str:
    """`tolerate dedicated=gpu:NoSchedule, uncordon node-4`; of a partial fix with what it leaves."""
    own = [one for one in fix.steps if not isinstance(one, s.NextAttempt)]
    steps = sorted(own or fix.steps, key=lambda one: isinstance(one, s.AwaitController))
    text = ", ".join(map(step_text, steps))
    deciding = (*fix.deciding, *(("the extender",) if fix.extender_decides else ()))
    if deciding:
        return f"{text}, then {' and '.join(deciding)} {'decides' if len(deciding) == 1 else 'decide'}"
    if not fix.remaining:
        return text
    left = ", ".join(f"{name} on {count(number, 'node')}" for name, number in fix.remaining.items())
    return f"{text} (then still {left})"


def with_nodes(steps: Iterable[s.Step], number: int) -> str:
    """What is told of a fix that adds so many nodes."""
    return ", ".join(_add_node(one, number) if isinstance(one, s.AddNode) else step_text(one) for one in steps)


def step_text(step: s.Step) -> str:
    match step:
        case s.RemoveGates():
            return f"remove scheduling gate {', '.join(step.gates)}"
        case s.AwaitController():
            return f"then wait for {step.controller} to admit the pod"
        case s.Tolerate():
            return f"tolerate {' and '.join(map(str, step.taints))}"
        case s.SelectInstead():
            return f"select {_requirement(step.meant)} instead of {_requirement(step.wrong)}"
        case s.DropRequirements():
            return "stop requiring " + " and ".join(map(_requirement, step.requirements))
        case s.DropNodeNames():
            return "remove the node names from the node affinity"
        case s.DropNodeName():
            return f"remove spec.nodeName {step.wanted}"
        case s.UseHostPort():
            if not step.instead:
                return f"remove host port {step.port}"
            return f"use host port {step.instead} instead of {step.port}"
        case s.HonorInSpread():
            policy = "nodeTaintsPolicy" if step.taints else "nodeAffinityPolicy"
            return f"set {policy}: Honor in the spread constraint over {step.topology_key}"
        case s.RaiseMaxSkew():
            return f"raise maxSkew over {step.topology_key} from {step.before} to {step.after}"
        case s.SpreadAnyway():
            return f"set whenUnsatisfiable: ScheduleAnyway in the spread constraint over {step.topology_key}"
        case s.PreferTerm():
            kind = "podAntiAffinity" if step.anti else "podAffinity"
            return f"make {kind} term {step.number} ({step.selector or 'every pod'}) preferred instead of required"
        case s.SelectPodsInstead():
            return _select_pods_instead(step)
        case s.RaisePriority():
            return f"set priorityClassName: {step.name}"
        case s.UseClaim():
            return f"use claim {step.meant} instead of {step.claim}"
        case s.RequestAtMost():
            return f"lower the request to {' and '.join(map(_amount, step.amounts))}"
        case s.RequestAsMeant():
            return f"request {' and '.join(f'{a.meant} {a.resource} instead of {a.written}' for a in step.amounts)}"
        case s.RequestInstead():
            return f"request {step.meant} instead of {step.resource}"
        case s.CreateClaim():
            return _create_claim(step)
        case s.ShrinkClaim():
            return f"lower the request of claim {step.claim.key} to {step.size}"
        case s.RecreateClaim():
            return _recreate_claim(step)
        case s.GiveUpVolume():
            return f"delete and recreate claim {step.claim.key}; the data on volume {step.volume} is lost"
        case s.CreateStorageClass():
            return f"create storage class {step.storage_class.name}"
        case s.BindClaim():
            return f"bind claim {step.claim.key} to volume {step.volume}"
        case s.ReleaseVolume():
            return f"release volume {step.volume.name}, whose claim {step.holder} is deleted; its data stays"
        case s.CreateVolume():
            return _create_volume(step)
        case s.CreateDeviceClaim():
            made = f" from template {step.template}" if step.template else ""
            return f"create resource claim {step.claim.key}{made}"
        case s.AskForFewerDevices():
            return f"request {count(step.count, 'device')} in request {step.request} of claim {step.claim.key}"
        case s.WidenDeviceClaim():
            of_request = "capacity" if step.capacity else "selectors"
            what = f"{of_request} of request {step.request}" if step.request else "constraints"
            return f"remove the {what} from claim {step.claim.key}"
        case s.NextAttempt():
            return _next_attempt(step)
        case s.RecreateDeviceClaim():
            return _recreate_device_claim(step)
        case s.CreateDeviceClass():
            return f"create device class {step.name}"
        case s.TakeOldFirst():
            if step.is_single:
                return f"set strategy Recreate on Deployment {step.deployment}, so that {step.old.pod} goes first"
            return (
                f"set maxSurge: 0 on Deployment {step.deployment}, so that an old pod such as {step.old.pod} goes first"
            )
        case s.DeletePods():
            return _delete_pods(step)
        case s.AwaitTermination():
            pods, where = (
                listed([one.pod for one in step.victims], SHOWN_VICTIMS),
                f" on {step.node}" if step.node else "",
            )
            return f"wait until {pods}{where} {'has' if len(step.victims) == 1 else 'have'} terminated"
        case s.StopWorkload():
            named, pods = f"{step.kind} {step.namespace}/{step.name}", " and ".join(one.pod for one in step.victims)
            return (
                f"delete {named} with its pod {pods}"
                if step.is_deleted
                else f"scale {named} to 0, which removes {pods}"
            )
        case s.Uncordon():
            return f"uncordon {step.node}"
        case s.RemoveTaints():
            return f"remove taint {' and '.join(map(str, step.taints))} from {step.node}"
        case s.LabelNode():
            return f"label {step.node} {', '.join(f'{key}={value}' for key, value in step.labels)}"
        case s.RepairNode():
            return " and ".join(dict.fromkeys(_repair(one, step.node) for one in step.faults))
        case s.OfferResource():
            return _offer(step)
        case s.EnlargeNode():
            return f"enlarge {step.node} to {' and '.join(map(_more, step.amounts))}"
        case s.AddNode():
            return _add_node(step)
        case _:
            assert_never(step)


def no_fix_text(found: DeadEnd) -> str:
    """Why nothing that was tried helps."""
    match found:
        case GateOfController():
            return f"{found.controller} removes the gate {found.gate} once it admits the pod"
        case Contradiction():
            return f"no node can have both {_asked(found.first)} and {_asked(found.second)}"
        case OfController():
            return f"kube-controller-manager has to create the claim {found.claim} for this pod"
        case HeldByOther():
            return f"one pod at a time may use the claim {found.claim}, and {found.holder} uses it"
        case HeldByPlugin():
            waits = "; ".join(describe(one).headline for one in found.findings) or "its condition is not met"
            return f"{found.plugin} keeps the pod pending: {waits}"
        case GroupIncomplete():
            return f"pod group {found.group} needs {count(found.missing, 'more pod', 'more pods')}"
        case RefusedByExtender():
            return f"an extender rejects {count(found.nodes, 'node')} that every plugin accepts"
        case NotSearched():
            return (
                f"the pod has {found.conditions:,} placement conditions; kschedx tries fixes for at most {found.most:,}"
            )
        case Untold():
            return "the pod stays unschedulable after every change tried"
        case _:
            assert_never(found)


def _asked(one: NodeSelectorRequirement) -> str:
    return _requirement(
        RequirementMatch(key=one.key, operator=one.operator, values=one.values, actual=None, matched=False)
    )


def fix_commands(fix: Fix) -> tuple[str, ...]:
    """kubectl's commands that do all of it; none where a step takes a patch."""
    found = [step_commands(step) for step in fix.steps]
    return tuple(command for of_step in found for command in of_step) if all(found) else ()


def step_commands(step: s.Step) -> list[str]:
    """kubectl's commands that do a step; none for one that takes a patch."""
    match step:
        case s.Uncordon():
            return [shell_command("kubectl uncordon {}", step.node)]
        case s.RemoveTaints():
            taints = [" {}={}:{}-" if one.value else " {}:{}-" for one in step.taints]
            parts = [part for one in step.taints for part in (one.key, one.value, one.effect) if part]
            return [shell_command(f"kubectl taint node {{}}{''.join(taints)}", step.node, *parts)]
        case s.LabelNode():
            pairs = [word for label in step.labels for word in label]
            template = "kubectl label node {}" + " {}={}" * len(step.labels) + " --overwrite"
            return [shell_command(template, step.node, *pairs)]
        case s.ReleaseVolume():
            return [shell_command("kubectl patch pv {} -p {}", step.volume.name, {"spec": {"claimRef": None}})]
        case s.StopWorkload():
            group = step.api_version.rpartition("/")[0]
            named = "{}.{} {} -n {}" if group else "{} {} -n {}"
            template = f"kubectl delete {named}" if step.is_deleted else f"kubectl scale {named} --replicas=0"
            return [shell_command(template, step.kind.lower(), *filter(None, (group,)), step.name, step.namespace)]
        case s.DeletePods() if not step.by_preemption:
            keys = [one.pod.partition("/") for one in step.victims]
            return [shell_command("kubectl delete pod {} -n {}", name, namespace) for namespace, _, name in keys]
        case _:
            return []


def _requirement(one: RequirementMatch) -> str:
    """`disk=ssd`, `zone in (a, b)`, `gpu exists`."""
    values = ", ".join(one.values)
    match one.operator:
        case "=" | "==":
            return f"{one.key}={values}"
        case "In":
            return f"{one.key}={values}" if len(one.values) == 1 else f"{one.key} in ({values})"
        case "NotIn":
            return f"{one.key} not in ({values})"
        case "Exists":
            return f"{one.key} exists"
        case "DoesNotExist":
            return f"{one.key} does not exist"
        case operator:
            return f"{one.key} {'>' if operator == 'Gt' else '<'} {values}"


def _select_pods_instead(step: s.SelectPodsInstead) -> str:
    if not step.label:
        where = ", ".join(step.meant.namespaces)
        return f"add namespaces: [{where}] to podAffinity term {step.number} ({step.selector})"
    before = step.rule.label_selector.match_labels if step.rule.label_selector else None
    after = step.meant.label_selector.match_labels if step.meant.label_selector else None
    labels = ",".join(f"{key}={value}" for key, value in (after or {}).items() if (before or {}).get(key) != value)
    return f"select {labels} instead of {step.label} in podAffinity term {step.number}"


def _amount(one: s.ResourceAmount) -> str:
    return f"{format_quantity(one.amount, Unit.of(one.resource))} {one.resource}"


def _more(one: s.NodeAmount) -> str:
    """`4 cpu instead of 2`, `room for 11 pods instead of 10`."""
    if one.resource == "pods":
        return f"{count(one.after, 'pod')} instead of {one.before}"
    before, after = (format_quantity(amount, Unit.of(one.resource)) for amount in (one.before, one.after))
    return f"{after} {one.resource} instead of {before}"


def _create_claim(step: s.CreateClaim) -> str:
    claim = step.claim
    if step.template_of:
        return f"create claim {claim.key} from the template of StatefulSet {step.template_of}"
    by = " (kube-controller-manager does this)" if step.is_ephemeral else ""
    of_class = f" of class {claim.storage_class}" if claim.storage_class else " without a class"
    return f"create claim {claim.key}{of_class}{by}"


def _recreate_claim(step: s.RecreateClaim) -> str:
    named = f" with class {step.storage_class}" if step.storage_class else ""
    return f"delete and recreate claim {step.claim.key}{named}"


def _create_volume(step: s.CreateVolume) -> str:
    spec = step.volume.spec
    if step.is_restored:
        return f"restore volume {step.volume.name}"
    of_class = f" of class {spec.storage_class_name}" if spec.storage_class_name else ""
    by = f" (by {step.provisioner})" if step.provisioner else ""
    what = f"{spec.capacity['storage']} {'+'.join(spec.access_modes)}{of_class}"
    if step.provisioner and step.claim is not None:
        return f"repair {step.provisioner}, so that it provisions the volume for claim {step.claim_key}: {what}"
    return f"create a volume of {what} for claim {step.claim_key}{by}"


def _next_attempt(step: s.NextAttempt) -> str:
    did = [f"{'deletes' if left is None else 'deallocates'} resource claim {key}" for key, left in step.released]
    return f"wait: kube-scheduler {' and '.join(did)} and retries"


def _recreate_device_claim(step: s.RecreateDeviceClaim) -> str:
    named = f" with class {step.device_class}" if step.device_class else ""
    return f"delete and recreate resource claim {step.claim.key}{named}"


def _delete_pods(step: s.DeletePods) -> str:
    """`delete ml/train-5d7b9 (priority 0) on node-4`, three at most by name."""
    if not step.node:
        pods = [f"{one.pod} (priority {one.priority})" if one.priority else one.pod for one in step.victims]
        return f"delete {' and '.join(pods)}"
    named = [f"{one.pod} (priority {one.priority})" for one in step.victims[:SHOWN_VICTIMS]]
    more = len(step.victims) - len(named)
    names = [*named, *([f"{more} more"] if more else [])]
    joined = " and ".join(names) if len(names) == 2 else ", ".join(names)
    if step.by_preemption:
        elsewhere = f", or pods on {count(step.or_elsewhere, 'other node')}" if step.or_elsewhere else ""
        return f"wait for preemption: it evicts {joined} from {step.node}{_protected(step)}{elsewhere}"
    return f"delete {joined} on {step.node}"


def _protected(step: s.DeletePods) -> str:
    if not step.protected:
        return ""
    if len(step.victims) == 1:
        return " despite its PodDisruptionBudget"
    return f" despite PodDisruptionBudgets of {step.protected} of them"


def _repair(fault: s.NodeFault, node: str) -> str:
    """`get node-4 ready`, `get Karpenter to finish setting up node-4`."""
    match fault.taint.key:
        case "node.kubernetes.io/not-ready":
            return f"repair {node}: it is NotReady"
        case "node.kubernetes.io/unreachable":
            return f"repair {node}: it is unreachable"
        case "node.kubernetes.io/disk-pressure":
            return f"free disk space on {node}"
        case "node.kubernetes.io/memory-pressure":
            return f"free memory on {node}"
        case "node.kubernetes.io/pid-pressure":
            return f"free process ids on {node}"
        case "node.kubernetes.io/network-unavailable":
            return f"repair the network of {node}"
        case "node.cloudprovider.kubernetes.io/shutdown":
            return f"start {node}: it is shut down"
        case "node.cloudprovider.kubernetes.io/uninitialized" | "karpenter.sh/unregistered":
            return f"repair {fault.by}, so that it initializes {node}"
        case _:
            return f"repair the agent of {fault.by} on {node}, which then removes its taint"


def _offer(step: s.OfferResource) -> str:
    if not step.label:
        size = format_quantity(step.amounts[0].after, Unit.of(step.resource))
        return f"reserve {size} of the memory of {step.node} as {step.resource}"
    return f"run the device plugin for {step.resource} on {step.node} ({step.label})"


def _add_node(step: s.AddNode, nodes: int = 1) -> str:
    added = "add a node" if nodes == 1 else f"add {nodes:,} nodes"
    host = step.node.metadata.labels.get(HOSTNAME, step.node.name)
    if host != step.node.name and not step.like:
        added = f"restore node {host}, or add a node with that host name"
    if step.like and not step.slices:
        return f"{added} like {step.like}"
    node = step.node
    number = sum(len(one.spec.devices) for one in step.slices)
    drivers = listed(sorted({one.spec.driver for one in step.slices}), SHOWN_LABELS)
    devices = f" and {count(number, 'device')} of {drivers}" if number else ""
    each = "" if nodes == 1 else ", each"
    return f"{added}{each} with {_offers(node)}{devices}{_of_daemons(step.taken)}"


def _of_daemons(taken: tuple[s.ResourceAmount, ...]) -> str:
    """` (3 DaemonSets take 150m cpu and 200Mi memory of it)`."""
    amounts = [_amount(one) for one in taken if one.resource != "pods"]
    number = next((one.amount for one in taken if one.resource == "pods"), 0)
    request = "requests" if number == 1 else "request"
    return f" ({count(number, 'DaemonSet')} {request} {' and '.join(amounts)} of it)" if amounts else ""


def _offers(node: Node) -> str:
    amounts = [
        f"{name} {amount}" for name, amount in node.status.allocatable.items() if name != "pods" and amount != "0"
    ]
    own = [key for key, value in node.metadata.labels.items() if key != HOSTNAME and value == s.DOMAIN_OF_ITS_OWN]
    labels = [f"{key}={value}" for key, value in node.metadata.labels.items() if key not in own and key != HOSTNAME]
    told = [
        *amounts,
        *([f"label {listed(labels, SHOWN_LABELS)}"] if labels else []),
        *(f"a {key} of its own" for key in own),
    ]
    return ", ".join(told) or "room for one pod"
