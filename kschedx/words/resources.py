"""What other pods use, in words: resources, pod slots, and host ports."""

from __future__ import annotations

from kschedx.explain.diagnosis import NodeDetail, OfferedNowhere
from kschedx.explain.hardware import HardwareHint
from kschedx.findings import HostPortConflict, InsufficientResource, TooManyPods
from kschedx.kube.names import CPU, is_native_resource
from kschedx.wording import Brief, Fact, ResourceBalance, Words, balance, count, in_words, list_names


@in_words.register
def _host_port_conflict(finding: HostPortConflict) -> Words:
    port = f"{finding.port}/{finding.protocol}"
    requested, held = _endpoint(finding.host_ip, finding.port), _endpoint(finding.holder_host_ip, finding.port)
    rule = f"this pod requests {requested}, {held} is in use; 0.0.0.0 means every address"
    return Words(
        headline=f"host port {port} is in use by {finding.holder}",
        shared=f"host port {port} is in use",
        facts=(Fact.of("rule", rule),) if requested != held else (),
        brief=Brief(detail=port, tail=f" by {finding.holder}"),
    )


def _endpoint(host_ip: str, port: int) -> str:
    return f"{host_ip or '0.0.0.0'}:{port}"


def offered_nowhere(nowhere: OfferedNowhere) -> str:
    """Return `no node has nvidia.com/gpu in its allocatable, but gpu-1 has the hardware
    (nvidia.com/gpu.present=true)`."""
    text = f"no node has {nowhere.resource} in its allocatable"
    if nowhere.hardware is None:
        return text
    (first, label), *others = nowhere.hardware.nodes
    who = f"{first} and {len(others)} more have" if others else f"{first} has"
    return f"{text}, but {who} the hardware ({label})"


def hardware_text(hint: HardwareHint) -> str:
    """Return `gpu-1 (nvidia.com/gpu.present=true) has the hardware but reports no nvidia.com/gpu: its device plugin
    ...`."""
    nodes = list_names([f"{node} ({label})" for node, label in hint.nodes], 2)
    has, reports, its = ("has", "reports", "its") if len(hint.nodes) == 1 else ("have", "report", "their")
    cause = f"{its} device plugin does not run or registers none"
    return f"{nodes} {has} the hardware but {reports} no {hint.resource}: {cause}"


def insufficient_resource(finding: InsufficientResource, detail: NodeDetail | None) -> Words:
    sums = balance(finding.resource, requested=finding.requested, allocatable=finding.allocatable, used=finding.used)
    size = max(len(sums.requested), len(sums.free))
    parts = detail.parts.get(finding.resource, ()) if detail else ()
    asks = sums.requested.rjust(size)
    if len(parts) == 1:
        asks += f" = {parts[0].label}"
    elif parts:
        texts = sums.in_same_unit(finding.resource, tuple(part.amount for part in parts))
        asks += " = " + " + ".join(f"{part.label} {text}" for part, text in zip(parts, texts, strict=True))
    facts = [Fact.of("requests", asks, whole=True), Fact.of("free", *_offers(finding, sums, size, detail), whole=True)]
    held = detail.holders.get(finding.resource, ()) if detail else ()
    if held:
        texts = sums.in_same_unit(finding.resource, tuple(holder.amount for holder in held))
        facts.append(
            Fact.of(
                "used by",
                *(f"{text} {holder.pod} ({holder.priority_text})" for text, holder in zip(texts, held, strict=True)),
                rest=tuple(
                    sums.in_same_unit(finding.resource, (sum(holder.amount for holder in held[shown:]),))[0]
                    + f" by {count(len(held) - shown, 'other pod')}"
                    for shown in range(len(held))
                ),
            )
        )
    of_nominated = finding.used - sum(holder.amount for holder in held)
    if held and detail and _counts_nominated(detail) and of_nominated > 0:
        (amount,) = sums.in_same_unit(finding.resource, (of_nominated,))
        facts.append(Fact.of("nominated", f"{amount} for pods nominated for the node"))
    if finding.offered_nowhere:
        text = f"no node has {finding.resource}"
        return Words(headline=text, shared=text, facts=(Fact.of("requests", asks, whole=True),))
    never = ", more than the node's allocatable" if finding.never_fits else ""
    unit = " CPU" if finding.resource == CPU and sums.short_by.isdigit() else ""  # a whole number has no suffix
    return Words(
        headline=f"insufficient {finding.resource}, short by {sums.short_by}{unit}{never}",
        shared=f"insufficient {finding.resource}{never}",
        facts=tuple(facts),
        brief=Brief(lead="short by ", detail=f"{sums.short_by} {finding.resource}"),
    )


def _counts_nominated(detail: NodeDetail) -> bool:
    return any(blocker.with_nominated for blocker in detail.account.blockers)


def _offers(
    finding: InsufficientResource, sums: ResourceBalance, size: int, detail: NodeDetail | None
) -> tuple[str, ...]:
    if not finding.allocatable:
        return (f"{'0'.rjust(size)}: the node has no {finding.resource}",)
    nominated = " and the nominated pods" if detail and _counts_nominated(detail) else ""
    by = f" by {count(detail.pods, 'pod')}{nominated}" if detail else ""
    whole = detail.capacity.get(finding.resource) if detail else None
    rest = "reserved" if is_native_resource(finding.resource) else "not healthy"
    of = f" (capacity {sums.in_same_unit(finding.resource, (whole,))[0]}, the rest is {rest})" if whole else ""
    sums_text = f"{sums.free.rjust(size)} = {sums.allocatable} allocatable{of} - {sums.used} requested{by}"
    return (sums_text, f"rounded to {sums.rounded}") if sums.rounded else (sums_text,)


@in_words.register
def _too_many_pods(finding: TooManyPods) -> Words:
    number = f"{finding.pods:,} of {finding.allowed:,}"
    return Words(
        headline=f"too many pods, {number} run there", shared="too many pods", brief=Brief(detail=f"{number} pods")
    )
