"""CEL selectors: their results for a device, and kube-scheduler's messages for invalid expressions."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from kschedx.cel.devices import LANGUAGE, DeviceProgram
from kschedx.errors import UndecidableError
from kschedx.kube.devices import EVERY_FEATURE, CompileError, Device, DeviceAttribute, EvaluationError, Features
from tests.device_builders import DRIVER, device

FEATURES = Features(multiple_allocations=True, reads_multiple_allocations=True, includes=False, list_attributes=False)
LISTS = EVERY_FEATURE
ATTRIBUTES = f'device.attributes["{DRIVER}"]'
SIZE = f'device.capacity["{DRIVER}"]'
VALUE = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
RESULT_TYPE, NOT_CONVERTED = "CEL result of type", "could not be converted to bool:"
QUANTITY_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

GPU = device(
    "gpu-0",
    memory="40Gi",
    model="a100",
    numa=0,
    healthy=True,
    version={"version": "1.10.0+build"},
    Attributes={
        "model": {"string": "a100"},
        "numa": {"int": 0},
        "healthy": {"bool": True},
        "version": {"version": "1.10.0+build"},
        "other.com/slot": {"int": 7},
    },
)


def matches(expression: str, manifest: object = GPU, features: Features = FEATURES) -> bool:
    typed: Any = msgspec.convert(manifest, Device)
    return DeviceProgram(expression, features).matches(typed, DRIVER)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"device.driver == '{DRIVER}'", True),
        (f"{ATTRIBUTES}.model == 'a100'", True),
        (f"{ATTRIBUTES}['model'] in ['h100', 'a100']", True),
        (f"{ATTRIBUTES}.numa == 0 && {ATTRIBUTES}.healthy", True),
        (f"{ATTRIBUTES}.numa + 1 == 2 || {ATTRIBUTES}.numa == 0", True),
        (f"{ATTRIBUTES}.healthy", True),
        # a list and a map may have a comma after the last element, also after none
        ("[,] == [] && [1,] == [1] && {,} == {} && {1: 2,} == {1: 2}", True),
        # the unit of a quantity determines whether it is an integer
        ("['1', '1e3', '1.5k'].all(x, quantity(x).isInteger())", True),
        ("['1000m', '1.0', '1.5Gi', '100E'].exists(x, quantity(x).isInteger())", False),
        ("quantity('500m').add(quantity('500m')).isInteger() || quantity('1').sub(quantity('0m')).isInteger()", True),
        ("quantity('500m').add(quantity('500m')).isInteger()", False),
        ("quantity('1').add(1) == quantity('2')", True),
        (f"{ATTRIBUTES}.version != '1.10.0' && !('1.10.0' == {ATTRIBUTES}.version)", True),
        (
            (
                "[999999.5, 1e6, 1e21, 0.0001, 0.00001, -0.0].map(x, string(x)) == "
                "['999999.5', '1e+06', '1e+21', '0.0001', '1e-05', '-0']"
            ),
            True,
        ),
        ("device.attributes['other.com'].slot == 7", True),
        ("device.attributes[device.driver].numa == 0", True),
        # missing names
        (f"has({ATTRIBUTES}.nope)", False),
        ("has(device.attributes['nope.com'].x)", False),
        (f"{ATTRIBUTES}.?nope.orValue(3) == 3", True),
        (f"'numa' in {ATTRIBUTES}", True),
        ("'nope.com' in device.attributes", False),
        (f"true || {ATTRIBUTES}.nope == 1", True),
        (f"{ATTRIBUTES}.nope == 1 && false", False),
        (f"cel.bind(own, {ATTRIBUTES}, own.numa == 0 && own.healthy)", True),
        # text
        (f"{ATTRIBUTES}.model.startsWith('a1') && {ATTRIBUTES}.model.matches('^a[0-9]+$')", True),
        (f"{ATTRIBUTES}.model.upperAscii() == 'A100'", True),
        # quantities
        (f"{SIZE}.memory.compareTo(quantity('40Gi')) == 0", True),
        (f"{SIZE}.memory.isGreaterThan(quantity('39.9Gi'))", True),
        (f"{SIZE}.memory.isLessThan(quantity('40Gi'))", False),
        (f"{SIZE}.memory == quantity('40960Mi')", True),
        (f"{SIZE}.memory.sub(quantity('10Gi')).compareTo(quantity('30Gi')) == 0", True),
        (f"{SIZE}.memory.add(1).isInteger() && quantity('1500m').isInteger() == false", True),
        (f"{SIZE}.memory.asInteger() == 42949672960", True),
        ("isQuantity('12Xi')", False),
        # versions
        (f"{ATTRIBUTES}.version.compareTo(semver('1.9.0')) > 0", True),
        (f"{ATTRIBUTES}.version == semver('1.10.0')", True),
        (f"{ATTRIBUTES}.version.isGreaterThan(semver('1.10.0-rc.1'))", True),
        (
            (
                f"{ATTRIBUTES}.version.major() == 1 && {ATTRIBUTES}.version.minor() == 10 "
                f"&& {ATTRIBUTES}.version.patch() == 0"
            ),
            True,
        ),
        ("semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))", True),
        ("isSemver('1.0')", False),
        ("device.allowMultipleAllocations", False),
        ("{'a': 1}.all(k, v, v == 1)", True),
        (
            "[3, 1, 2].sortBy(x, -x) == [3, 2, 1] && [1, 2, 2].distinct() == [1, 2] && [[1], [2]].flatten() == [1, 2]",
            True,
        ),
        ("sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])", True),
        ("[1, 2, 3].sum() == 6 && [2, 1].min() == 1 && ['b', 'a'].max() == 'b' && !([2, 1].isSorted())", True),
        (
            "optional.of(1).optMap(x, x + 1).value() == 2 && {?'a': optional.of(1)} == {'a': 1}",
            True,
        ),
        ("{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && [5].transformList(i, v, i + v) == [5]", True),
        # addresses, URLs, formats, regular expressions
        ("isIP('::1') && ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && !ip.isCanonical('::0001')", True),
        ("cidr('10.0.0.0/8').containsIP('10.6.5.4') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.1.2.3/16').masked() == cidr('10.1.0.0/16') && cidr('::/0').prefixLength() == 0", True),
        ("url('https://a.example:80/p%20q?x=1&x=2').getHost() == 'a.example:80' && !isURL('a b')", True),
        ("url('https://a.example:80/p%20q?x=1&x=2').getQuery()['x'] == ['1', '2']", True),
        ("!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()", True),
        ("'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']", True),
        (
            "semver('v1.2', true) == semver('1.2.0') && 'a,b'.split(',').join('-') == 'a-b'",
            True,
        ),
        ("'%s is %d'.format([dyn('a'), dyn(255)]) == 'a is 255' && strings.quote('a\\n') == '\"a\\\\n\"'", True),
        ("timestamp('2024-02-29T10:00:00Z').getDayOfYear() == 59 && duration('1h30m').getMinutes() == 90", True),
        ("1u < 2 && 1.5 > 1 && 7 / 2 == 3 && -7 % 3 == -1 && dyn(1) == 1.0 && !(1 == 2)", True),
    ],
)
def test_results_of_expressions(expression: str, expected: bool) -> None:
    assert matches(expression) == expected


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f"{ATTRIBUTES}.nope == 1", "no such key: nope"),
        (f"{SIZE}.nope.compareTo(quantity('1')) == 0", "no such key: nope"),
        ("device.attributes['nope.com'].x == 1", "no such key: x"),
        (f"{ATTRIBUTES}.first == 1 || {ATTRIBUTES}.second == 1", "no such key: first"),
        (f"{ATTRIBUTES}.numa / {ATTRIBUTES}.numa == 1", "division by zero"),
        (f"{ATTRIBUTES}.model < 1", "no such overload"),
        # a version equals only versions; comparing it with a string fails or is false
        (f"{ATTRIBUTES}.version == '1.10.0'", "no such overload"),
        (f"dyn({SIZE}.memory) == 1", "no such overload"),
        (f"{ATTRIBUTES}.healthy.matches('a')", "no such overload"),
        # cel-go looks up constants in a hash table, and versions have no hash
        (
            f"{ATTRIBUTES}.version in ['1.10.0']",
            "internal error: runtime error: hash of unhashable type cel.Semver",
        ),
        # a sum on the right side has no overload
        ("quantity('2') == quantity('1').add(1)", "no such overload"),
        (f"[{ATTRIBUTES}.nope][1] == 1", "no such key: nope"),
        (f"{ATTRIBUTES}.nope.field == 1", "no such key: nope"),
        (
            f"[{ATTRIBUTES}.nope].distinct() == [1] || true",
            "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add",
        ),
        (f"{ATTRIBUTES}.numa", f"{RESULT_TYPE} int {NOT_CONVERTED} unsupported type conversion from 'int' to bool"),
        (
            f"{ATTRIBUTES}.model",
            f"{RESULT_TYPE} string {NOT_CONVERTED} unsupported native conversion from string to 'bool'",
        ),
        ("quantity('lots') == quantity('1')", QUANTITY_FORMAT),
        ("semver('1.2') == semver('1.2.0')", "No Major.Minor.Patch elements found"),
        ("[1][1] == 1", "index out of bounds: 1"),
        ("dyn(1).all(x, x == 1)", "got 'types.Int', expected iterable type"),
    ],
)
def test_errors_of_evaluation(expression: str, text: str) -> None:
    with pytest.raises(EvaluationError) as error:
        matches(expression)
    assert str(error.value) == text


def test_an_unsupported_attribute_fails_any_expression() -> None:
    with pytest.raises(EvaluationError, match="attribute sizes: unsupported attribute value"):
        matches("true", device("d", sizes={"ints": [1, 2]}))
    assert matches(f"{ATTRIBUTES}.sizes.exists(size, size == 2)", device("d", sizes={"ints": [1, 2]}), LISTS)
    assert matches(f"{ATTRIBUTES}.sizes.includes(2)", device("d", sizes={"ints": [1, 2]}), LISTS)
    assert not matches(f"{ATTRIBUTES}.model.includes('b200')", GPU, LISTS)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            "noSuchVar",
            "ERROR: <input>:1:1: undeclared reference to 'noSuchVar' (in container '')\n | noSuchVar\n | ^",
        ),
        (
            "{, 1: 2} == {}",
            "ERROR: <input>:1:4: Syntax error: mismatched input '1' expecting '}'\n | {, 1: 2} == {}\n | ...^",
        ),
        (
            "1 == 'a'",
            "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'\n | 1 == 'a'\n | ..^",
        ),
        (
            "device.nope == 1",
            "ERROR: <input>:1:7: undefined field 'nope'\n | device.nope == 1\n | ......^",
        ),
        (
            "[1, 'a'].size() == 2",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'].size() == 2\n | ....^",
        ),
        (
            "quantity('1') == 1",
            (
                "ERROR: <input>:1:15: found no matching overload for '_==_' applied to '(kubernetes.Quantity, int)'\n"
                " | quantity('1') == 1\n | ..............^"
            ),
        ),
        (
            "[1].all(a.b, true)",
            "ERROR: <input>:1:10: argument must be a simple name\n | [1].all(a.b, true)\n | .........^",
        ),
        (
            "duration('x') == duration('1s')",
            "ERROR: <input>:1:10: invalid duration argument\n | duration('x') == duration('1s')\n | .........^",
        ),
        (
            "device.driver == ",
            (
                f"ERROR: <input>:1:18: Syntax error: mismatched input '<EOF>' expecting {VALUE}\n"
                f" | device.driver == \n | {'.' * 17}^"
            ),
        ),
        ("", f"ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {VALUE}"),
        (
            "device.driver ==\n",
            f"ERROR: <input>:2:1: Syntax error: mismatched input '<EOF>' expecting {VALUE}\n | \n | ^",
        ),
        (
            "a{",
            (
                "ERROR: <input>:1:3: Syntax error: mismatched input '<EOF>' "
                "expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}\n | a{\n | ..^"
            ),
        ),
    ],
)
def test_errors_of_compilation(expression: str, text: str) -> None:
    with pytest.raises(CompileError) as error:
        matches(expression)
    assert str(error.value) == f"compilation failed: {text}"


def test_an_expression_must_be_a_condition() -> None:
    with pytest.raises(CompileError, match=r"^must evaluate to bool or the unknown type, not string$"):
        matches("device.driver")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "expression",
    [
        f"'{'a' * 11_000}' == 'a'",
        "'\ud800' == 'a'",
        "(" * 5000,
        "google.protobuf.Int32Value{value: 1} == 1",
        # expressions with a low estimated cost that need more memory or time than available
        f"[{ATTRIBUTES}.model]{'.map(x, x + x)' * 100}.size() == 1",
        f"[[1]]{'.map(x, x + x)' * 100}.size() == 1",
        pytest.param(f"[1]{'.map(x, [x, x])' * 30}.all(x, x == x)", marks=pytest.mark.long),
        "lists.range(1000000000).size() > 1",
    ],
)
def test_expressions_with_an_uncertain_result_are_undecided(expression: str) -> None:
    with pytest.raises(UndecidableError):
        matches(expression)


def test_devices_with_equal_attributes_are_evaluated_once() -> None:
    selector = DeviceProgram(f"{ATTRIBUTES}.model == 'a100'", FEATURES)
    for number in range(3):
        typed: Any = msgspec.convert(device("d", model="a100", uuid=str(number)), Device)
        assert selector.matches(typed, DRIVER)
    assert len(selector._answers) == 1


def test_names_in_an_expression() -> None:
    assert LANGUAGE.names_in(f"{ATTRIBUTES}.model == 'x' && {SIZE}['memory'].isInteger()") == {"model", "memory"}


def test_an_attribute_with_invalid_unicode() -> None:
    invalid = Device(name="d", attributes={"model": DeviceAttribute(string="\ud800")})
    assert not DeviceProgram(f"{ATTRIBUTES}.model == 'a100'", FEATURES).matches(invalid, DRIVER)


def test_an_invalid_version_fails_any_expression() -> None:
    with pytest.raises(
        EvaluationError, match=r"attribute v: parse semantic version: No Major.Minor.Patch elements found"
    ):
        matches("true", device("d", v={"version": "1.2"}))


def test_without_the_cel_package_expressions_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    with pytest.raises(UndecidableError, match="device selectors need the package cel-expr-python"):
        DeviceProgram("true &&", FEATURES)
