"""Device selectors and attributes of an anonymized cluster have no private names and match as before."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable

import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.export.anonymous import anonymize
from tests.builders import at, node, pod
from tests.command import ROOT
from tests.device_builders import claim, device, device_class, request, resource_slice

OWN = 'device.attributes["gpu.acme.internal"]'


@pytest.mark.parametrize(
    ("expression", "stays"),
    [
        (f"{OWN}.productName == 'Acme Falcon 9'", False),
        (f"{OWN}.productName in ['Acme Falcon 9', 'other'] && {OWN}.slot == 3", False),
        (f"device.driver == 'gpu.acme.internal' && {OWN}.revision.isGreaterThan(semver('1.2.0'))", False),
        ('device.capacity["gpu.acme.internal"].memory.compareTo(quantity("40Gi")) >= 0', False),
        (f"cel.bind(own, {OWN}, own.slot == 3 && has(own.productName))", False),
        (f"{OWN}.productName /* Falcon */ == 'Acme Falcon 9'".replace("/* Falcon */", "// Falcon\n"), False),
        (f'{OWN}.productName == r\'Acme Falcon 9\' && {OWN}.productName != """Falcon"""', False),
        (f"[{OWN}.productName].exists(falcon, falcon == 'Acme Falcon 9') && [3].sum() == {OWN}.slot", False),
        (f"{OWN}.?productName.orValue('none') == 'Acme Falcon 9'", False),
        (f"{OWN}.productName.startsWith('Acme Fal')", True),
        (f"{OWN}.productName.matches('Falcon [0-9]$')", True),
        (f"{OWN}.productName + '!' == 'Acme Falcon 9!'", True),
        (f"size({OWN}.productName) == 13", True),
        ("'Falcon'.size() == 6", True),
        ("b'Falcon' == b'Falcon'", True),
        ("isIP('10.6.5.4') && 'Falcon' == 'Falcon'", True),
    ],
)
def test_a_selector_matches_the_same_devices(expression: str, stays: bool) -> None:
    gpu = device("falcon-0", memory="80Gi", productName="Acme Falcon 9", slot=3, revision={"version": "1.3.0"})
    objects = [
        node("falcon-host"),
        pod(
            "me", containers=[{"name": "main", "image": "x"}], resourceClaims=[{"name": "g", "resourceClaimName": "c"}]
        ),
        claim("c", request(select=[expression])),
        device_class(),
        resource_slice("falcon-host", gpu, driver="gpu.acme.internal"),
    ]
    if stays:
        with pytest.raises(
            InputError, match=r"device selectors that cannot be anonymized: ResourceClaim c: .*--keep-selectors"
        ):
            anonymize(objects)
    new = anonymize(objects, keep_selectors=stays)
    pods = [item for item in new if item["kind"] == "Pod"]
    name = at(pods[0], "metadata.name")
    assert kschedx.explain(kschedx.Snapshot.from_objects(new), f"default/{name}").outcome == "Scheduled"
    assert ("Falcon" in json.dumps(new)) == stays
    assert "falcon-host" not in json.dumps(new)


def test_an_invalid_pattern_may_become_valid() -> None:
    objects = [claim("c", request(select=["'Falcon'.matches('[b-a]')"])), device_class()]
    with pytest.raises(InputError, match=r"ResourceClaim c: it has a string that its function refuses"):
        anonymize(objects)


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1).falcon()",
        "format.falcon().value().validate('Falcon').hasValue()",
        "base64.encode(b'Falcon') == 'x'",
        "device.falcon == b'''Falcon''' // Falcon",
        "isQuantity('Falcon') && falcon()",
        "true ? 1 : (quantity('1Falcon') == quantity('1'))",
        "falcon(timestamp('Falcon') == duration('Falcon'))",
        "semver('Falcon').falcon(r'Falcon', \"\"\"Falcon\"\"\", '\\x46alcon')",
        "device.attributes['falcon'].falcon == 1u && cel.bind(falcon, 'Falcon', falcon.falcon())",
    ],
)
def test_an_invalid_selector_keeps_no_name(expression: str) -> None:
    objects = [claim("c", request(select=[expression])), device_class()]
    written = json.dumps(anonymize(objects)).lower()
    assert "falcon" not in written
    assert "46alcon" not in written


_CALLED = "device|attributes|capacity|driver|true|false|null|in|[a-z]+(?=[(])|[A-Z]?[a-z]+(?=[(])"
MARKS: dict[str, Callable[[str], str]] = {
    "names": lambda text: re.sub(rf"\b(?!(?:{_CALLED})\b)([A-Za-z_]\w*)", r"canary\1", text),
    "strings": lambda text: re.sub(r"""(["'])((?:(?!\1)[^\\\n])+)\1""", r"\1\2-canary\1", text),
    "an end": lambda text: f"{text} || canary == 'canary' // canary",
    "a version": lambda text: re.sub(r"(\d)([\"'])", r"\1-canary+canary\2", text),
    "no expression": lambda text: text.replace("(", "(canary ", 1),
}


def recorded_expressions() -> list[str]:
    """Return the device selectors of the recorded decisions."""
    result: set[str] = set()
    for name in ("cel", "dra"):
        text = gzip.decompress((ROOT / "tests" / "conformance" / f"{name}.jsonl.gz").read_bytes()).decode()
        result.update(json.loads(f'"{item}"') for item in re.findall(r'"expression":\s*"((?:[^"\\]|\\.)*)"', text))
    return sorted(result)


@pytest.mark.sample(3)
@pytest.mark.parametrize("mark", MARKS)
def test_a_marked_selector_keeps_no_mark(mark: str) -> None:
    """A selector is written without the mark, or refused. Each mark tests half of the expressions."""
    written = set(map(MARKS[mark], recorded_expressions()[list(MARKS).index(mark) % 2 :: 2]))
    refused, kept = 0, []
    for recorded_expression in sorted(written):
        try:
            new = json.dumps(anonymize([claim("c", request(select=[recorded_expression])), device_class()]))
        except InputError:
            refused += 1
        else:
            kept += [recorded_expression] if "canary" in new else []
    assert not kept
    assert refused < len(written)
