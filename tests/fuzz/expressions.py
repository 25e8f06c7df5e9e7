"""The languages in strings: CEL selectors, also anonymized, label queries, quantities, and times."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import kschedx
from kschedx.cel import refusal
from kschedx.cel.devices import DeviceProgram
from kschedx.errors import InputError, KschedxError, UndecidableError
from kschedx.explain import events
from kschedx.export.anonymous import anonymize
from kschedx.kube import quantity, types
from kschedx.kube import scalars as timestamps
from kschedx.kube import selectors as label_query
from kschedx.kube.decoding import decode
from kschedx.kube.devices import CompileError, Device, EvaluationError, Features
from kschedx.kube.scalars import Duration
from kschedx.sources import yaml as yaml_scalars
from tests.builders import Manifest, at, node, pod
from tests.device_builders import claim, device, device_class, request, resource_slice
from tests.fuzz import hostile

FEATURES = [
    Features(multiple_allocations=is_new, reads_multiple_allocations=is_new, includes=is_new, list_attributes=is_new)
    for is_new in (False, True)
]
DEVICE = decode(
    b"""{"name": "d", "attributes": {"a": {"string": "x"}, "b": {"int": 4}, "v": {"version": "1.2.3"}},
    "capacity": {"m": {"value": "40Gi"}}}""",
    Device,
)

TOKENS = (
    *'.()[]{}!?:,<>=-+*%/&|"\'\\ \n', "==", "!=", ">=", "&&", "||", " in ", "r'", "b'", "x", "device", ".attributes",
    ".capacity", ".driver", '["gpu.example.com"]', '["e"]', ".a", ".b", ".v", ".m", ".?a", "[?0]", "1", "0", "2u",
    "-9223372036854775808", "9u", "1e400", "1.5", "'a'", "'x'", "'\\ud800'", "null", "true", "false", "has(",
    "cel.bind(x, ", ".map(x, ", ".filter(x, ", ".all(x, ", ".exists(x, ", ".exists_one(x, ", ".matches('(a*)*b')",
    ".find('[0-9]+')", ".findAll('a|b', 2)", ".sum()", ".min()", ".max()", ".sorted()", ".isSorted()", ".indexOf('a')",
    ".lastIndexOf('a')", ".format([", "'%s'", "'%d'", "'%.3f'", "'%e'", "'%x'", "'%b'", "'%o'", ".split(',')",
    ".join('-')", ".replace('a', 'b')", ".substring(1, 2)", ".charAt(0)", ".trim()", ".upperAscii()", ".lowerAscii()",
    ".reverse()", ".size()", "size(", "string(", "int(", "uint(", "double(", "bytes(", "dyn(", "type(",
    ".contains('a')", ".startsWith('a')", ".endsWith('a')", "semver('1.0.0')", "isSemver(", ".major()",
    ".isGreaterThan(", ".compareTo(", ".add(", ".sub(", ".sign()", ".asInteger()", ".asApproximateFloat()",
    "quantity('1Ki')", "isQuantity(", "cidr('10.0.0.0/8')", "isCIDR(", ".containsIP('10.0.0.1')", ".containsCIDR(",
    ".prefixLength()", ".masked()", "ip('::1')", "ip('10.0.0.1')", "isIP(", "ip.isCanonical(", ".family()",
    ".isLoopback()", ".isGlobalUnicast()", "url('http://a')", "isURL(", ".getHost()", ".getQuery()", ".getPort()",
    "duration('1h')", "timestamp('2024-01-01T00:00:00Z')", ".getFullYear()", ".getHours('Europe/Paris')",
    "optional.of(", "optional.none()", "optional.ofNonZeroValue(", ".hasValue()", ".orValue(", ".or(", ".value()",
    ".optMap(x, ", ".optFlatMap(x, ", "sets.contains(", "sets.equivalent(", "sets.intersects(", "lists.range(3)",
    ".slice(0, 1)", ".flatten()", ".distinct()", ".first()", ".last()", "math.greatest(", "base64.encode(",
    "[1, 2, 3]", "['a', 'b']", "{'a': 1}", "format.dns1123Label()", "format.named('uuid')", ".validate('a')",
    ".includes(", ".transformList(k, v, ", "device.allowMultipleAllocations", "'1.2.3'", "'40Gi'", " ? ", " : ",
)  # fmt: skip
"""Parts of expressions."""

PREFIX = 'device.attributes["gpu.example.com"]'
SEEDS = (
    "true", f"{PREFIX}.a == 'x'", f"{PREFIX}.b in [1, 2, 4]", f"{PREFIX}.v.isGreaterThan(semver('1.0.0'))",
    'device.capacity["gpu.example.com"].m.compareTo(quantity("40Gi")) >= 0', "device.driver.endsWith('example.com')",
    f"cel.bind(x, {PREFIX}, has(x.a) && x.a.matches('^[a-z]+$'))",
    "[1, 2, 3].all(x, x > 0) && lists.range(9).sum() == 36",
    "'%s %d %.2f %x'.format(['a', 3, 1.5, 255]) == 'a 3 1.50 ff'", "{'a': [1, 2]}.map(k, k).exists(k, k == 'a')",
    "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))",
    "url('https://a.b:80/p?q=1').getPort() == '80'", "duration('1h').getHours() == 1",
    "timestamp('2024-02-29T00:00:00Z').getFullYear('UTC') == 2024", "optional.of(1).orValue(2) == 1",
    "sets.contains([1, 2], [1]) || math.greatest(1, 2) == 2", "format.dns1123Label().value().validate('a').hasValue()",
    f"{PREFIX}.?a.optMap(x, x + 'y').orValue('z') == 'xy'", "b'abc'.size() == 3 && r'\\d' != '''a'''",
    f"{PREFIX}.a.split(',').join('-').replace('x', 'y') == 'y'", "-(-1) < 2 ? dyn(1u) == 1.0 : !false",
)  # fmt: skip


def selectors(data: bytes) -> None:
    """Evaluate a device's CEL expression as the API server and kube-scheduler do."""
    text = data.decode(errors="replace")
    for features in FEATURES:
        with contextlib.suppress(CompileError, EvaluationError, UndecidableError):
            refusal(text, features)
            DeviceProgram(text, features).matches(DEVICE, "gpu.example.com")


def selector_seeds() -> Iterator[bytes]:
    yield from (text.encode() for text in SEEDS)


UNDECIDED = UndecidableError.__name__


def anonymous_selectors(data: bytes) -> None:
    """An anonymized selector has the outcome of the original, or is refused."""
    objects = _cluster_with(data.decode(errors="replace"))
    try:
        anonymized = anonymize(objects)
    except InputError:
        return
    name = next(at(item, "metadata.name") for item in anonymized if item["kind"] == "Pod")
    before, after = _outcome(objects, "default/me"), _outcome(anonymized, f"default/{name}")
    # one side may be undecided where the other is certain, for example if an error names nothing
    assert before == after or UNDECIDED in (before, after), (before, after, anonymized)


def _cluster_with(selector: str) -> list[Manifest]:
    gpu = device("d", memory="40Gi", a="x", b=4, v={"version": "1.2.3"})
    container = {"name": "main", "image": "x"}
    return [
        node("host"),
        pod("me", containers=[container], resourceClaims=[{"name": "g", "resourceClaimName": "c"}]),
        claim("c", request(select=[selector])),
        device_class(),
        resource_slice("host", gpu, driver="gpu.example.com"),
    ]


def _outcome(objects: list[Manifest], pod: str) -> str:
    try:
        return kschedx.explain(kschedx.Snapshot.from_objects(objects), pod).outcome
    except KschedxError as error:
        return type(error).__name__


def scalars(data: bytes) -> None:
    """Parse the other languages in strings."""
    text = data.decode(errors="surrogateescape")
    for parse_text in (quantity.parse_quantity, timestamps.nanoseconds, label_query.parse_label_query):
        with contextlib.suppress(InputError):
            parse_text(text)
    with contextlib.suppress(InputError):
        parsed = quantity.parse_quantity(text)
        reparsed = quantity.parse_quantity(str(parsed))
        assert reparsed == parsed or abs(parsed.exponent) > 100, (parsed, reparsed)
    for parse in (Duration.parse, yaml_scalars.resolve):
        with contextlib.suppress(ValueError):
            parse(text)
    events.parse(text)
    for kind in (types.PodSpec, types.Node):
        with contextlib.suppress(InputError):
            decode(data, kind)


def scalar_seeds() -> Iterator[bytes]:
    yield from (json.dumps(leaf).encode() for leaf in (*hostile.LEAVES, *hostile.WORDS))
    yield from (b"app in (web, db),!old,tier!=x", b"12.5Gi", b"1h2m3.5s", b"2026-01-01T00:00:00.5+02:00")
