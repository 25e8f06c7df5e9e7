"""The screen of `kschedx why` for a pod that Pod Security lets nobody make."""

from __future__ import annotations

import json
from itertools import groupby
from shlex import quote
from typing import assert_never

from rich.text import Text

from kschedx.answer.pod_security import PodSecurityAnswer, SaidByPod, SecurityFix, TakenByNamespace
from kschedx.api.pod_security.policy import PREFIX
from kschedx.framework.cycle import Outcome
from kschedx.render import terminal
from kschedx.render.fixes import command_lines
from kschedx.render.layout import BAD, BLANK, DIM, LABEL, joined, paragraph, text
from kschedx.render.units import listed

_INDENT = LABEL + 2
_SHOWN_NODES = 2
_SHOWN_NAMES = 3


def print_pod_security(answer: PodSecurityAnswer) -> None:
    out = terminal.console()
    terminal.write(pod_security(answer, width=out.width), out)


def pod_security(answer: PodSecurityAnswer, *, width: int) -> list[Text]:
    pod, maker = answer.pod, answer.maker
    namespace = pod.metadata.namespace
    about = f"{namespace}/{pod.metadata.name} is not let in: Pod Security of its namespace refuses it"
    if maker is not None:
        others = "no other pod" if answer.has_pods else "no pod"
        about = f"{maker.get('kind')} {namespace}/{_name(answer)} gets {others}: Pod Security refuses its pods"
    lines = paragraph(about, width, first="✗ ", style=BAD)
    for number, fix in enumerate(answer.fixes, start=1):
        label = ("fix 1" if len(answer.fixes) > 1 else "fix") if number == 1 else f"    {number}"
        lines += _fix(answer, fix, label, width)
    if answer.fixes:
        lines.append(text(f"{' ' * _INDENT}to apply: --fix {'N' if len(answer.fixes) > 1 else '1'} -o patch", DIM))
    lines += [BLANK, *paragraph(answer.message, width, first="  ", style=DIM)]
    if answer.insists_on:
        lines += [BLANK, *_insists(answer, width)]
    if answer.warns_only and maker is not None:
        note = f"kubectl apply only warns of it: the {maker.get('kind')} is there then, and its pods are not"
        lines += [BLANK, *paragraph(note, width, first="  note      ", style=DIM)]
    return lines


def _fix(answer: PodSecurityAnswer, fix: SecurityFix, label: str, width: int) -> list[Text]:
    level = answer.wanted.level
    details: list[str] = []
    commands: tuple[str, ...] = ()
    match fix.step:
        case SaidByPod(settings=settings):
            where = "pod" if answer.maker is None else "template"
            title = f"let the {where} say what {level} asks for"
            for container, of_one in groupby(settings, key=lambda one: one.container):
                told = [f"{one.field}: {_flow(one.value)}" for one in of_one]
                rows = joined(told, width - _INDENT - 2)
                named = f"container {container}" if container else "the pod"
                details += [f"securityContext of {named}", *(f"  {row}" for row in rows)]
            if any(one.field == "runAsNonRoot" for one in settings) and answer.without_user:
                names = listed(answer.without_user, _SHOWN_NAMES)
                image = f"the image{'s' if len(answer.without_user) > 1 else ''} of {names}"
                details.append(f"{image} must name a user that is not root, or runAsUser has to")
        case TakenByNamespace(namespace=namespace, level=level):
            title = f"let namespace {namespace} enforce {level}, for all its pods"
            commands = (f"kubectl label namespace {quote(namespace)} {PREFIX}enforce={level} --overwrite",)
        case _:
            assert_never(fix.step)
    lines = paragraph(f"{title} ({_seen(fix)})", width, first=f"  {label.ljust(LABEL)}", indent=_INDENT + 2)
    for one in details:
        inside = _INDENT + len(one) - len(one.lstrip())
        lines += paragraph(one.lstrip(), width, first=" " * inside, indent=inside + 2)
    return [*lines, *command_lines(commands, width)]


def _seen(fix: SecurityFix) -> str:
    """What becomes of the pod then."""
    if fix.then is None:
        return f"verified for Pod Security; then: {fix.obstacle}"
    if fix.then.becomes is Outcome.SCHEDULED:
        return f"verified: then fits {listed(fix.then.chosen_nodes, _SHOWN_NODES)}"
    return f"verified for Pod Security; kube-scheduler then: {fix.then.message}"


def _insists(answer: PodSecurityAnswer, width: int) -> list[Text]:
    """What nobody takes from a pod who does not know why it asks for it."""
    text = f"namespace {answer.pod.metadata.namespace} enforces {answer.wanted}; the pod insists on what that forbids"
    lines = paragraph(text, width)
    for one in answer.insists_on:
        lines += paragraph(f"{one.reason} · {one.detail}", width, first="  ✗ ", indent=6)
    return lines


def _name(answer: PodSecurityAnswer) -> str:
    metadata = {} if answer.maker is None else answer.maker.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _flow(value: object) -> str:
    """As YAML writes it in a line."""
    return json.dumps(value).replace('"', "")
