"""Phrases of which the titles of fixes are made."""

from __future__ import annotations

from collections.abc import Iterable

from kschedx.findings import RequirementMatch
from kschedx.kube.escaping import shell_command
from kschedx.kube.quantity import Unit, format_quantity


def requirement_text(one: RequirementMatch) -> str:
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


def resource_name(resource: str) -> str:
    return "CPU" if resource == "cpu" else resource


def amount_text(resource: str, amount: int) -> str:
    """`500m CPU`, `2Gi memory`."""
    return f"{format_quantity(amount, Unit.of(resource))} {resource_name(resource)}"


def delete_pod(key: str) -> str:
    namespace, _, name = key.partition("/")
    return shell_command("kubectl delete pod {} -n {}", name, namespace)


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def joined(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b, and c`."""
    *first, last = parts
    return last if not first else f"{first[0]} and {last}" if len(first) == 1 else f"{', '.join(first)}, and {last}"


def listed(names: list[str], most: int) -> str:
    """All names, or the first `most` and how many more there are."""
    more = len(names) - most
    return joined([*names[:most], f"{more:,} more"] if more > 0 else names)
