"""The help, and the manual page that is generated from it."""

from __future__ import annotations

import re

import pytest

from kschedx.cli.app import program
from kschedx.cli.help import COMMANDS as GROUPS
from tests.command import kschedx

COMMANDS = [name for command in program().registered_commands if (name := command.name) is not None]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_a_summary_that_fits(name: str) -> None:
    result = kschedx(name, "--help", columns=80).out
    assert re.search(rf"^    .*kschedx {name}", result, re.MULTILINE)
    listed = kschedx("--help", columns=80).out
    (row,) = [line for line in listed.splitlines() if line.startswith(f"  {name} ")]
    assert not row.endswith("...")
    assert not [line for line in result.splitlines() if len(line) > 80]


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("name", ["", *COMMANDS, "profiles", "profiles tune", "descheduler-policy advise"])
def test_no_line_breaks_within_a_name_or_a_short_command(name: str, columns: int) -> None:
    lines = kschedx(*name.split(), "--help-all" if name in COMMANDS else "--help", columns=columns).out.splitlines()
    removal = "spec.nodeSelector.disk-"
    assert not [line for line in lines if re.search(r"[a-z]-$", line) and not line.endswith(removal)]
    assert not [line for line in lines if re.search(r"`(kubectl|kschedx)$", line)]


@pytest.mark.parametrize("name", ["", "show", "check", "list"])
def test_help_about_profiles_fits(name: str) -> None:
    result = kschedx("profiles", *filter(None, (name,)), "--help", columns=80).out
    assert not [line for line in result.splitlines()[1:] if len(line) > 80 or line.endswith("...")]
    assert name == "list" or re.search(rf"^    kschedx profiles {name}", result, re.MULTILINE)


def test_options_are_in_groups() -> None:
    result = kschedx("why", "--help-all").out
    titles = re.findall(r"^(\S.*):$", result, re.MULTILINE)
    assert titles[:3] == ["Options", "Cluster", "Scheduler"]
    assert titles[-1] == "Connection (as for kubectl)"


def test_shared_options_are_left_to_help_all() -> None:
    short = kschedx("why", "--help").out
    assert "--kubeconfig" not in short
    assert short.splitlines()[-1] == "--help-all adds the scheduler, autoscaler, Kueue, and connection options."


def test_every_command_is_in_a_group() -> None:
    assert {*COMMANDS, "profiles", "descheduler-policy"} == {name for names in GROUPS.values() for name in names}


def test_a_command_without_arguments_prints_ten_lines_of_usage() -> None:
    result = kschedx("why")
    assert result.code == 2
    assert len(result.err.splitlines()) <= 10
    assert "kschedx why pod/web-0 -n shop" in result.err


def test_the_manual_page_holds_every_command() -> None:
    page = kschedx("man").out
    assert page.startswith(".TH KSCHEDX 1")
    for name in COMMANDS:
        assert f'.SS "kschedx {name}"' in page
    assert "\\fB\\-\\-snapshot, \\-s\\fR \\fIPATH\\fR" in page
    assert not [line for line in page.splitlines() if line.startswith("'")]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("wyh", '"why"'),
        ("diff", '"diff-profiles"'),
        ("top", '"nodes"'),
        ("cordon", '"simulate --cordon"'),
        ("explain", '"why" or "reason"'),
    ],
)
def test_an_unknown_command_names_what_is_meant(typed: str, meant: str) -> None:
    result = kschedx(typed, "web-0")
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: no command \"{typed}\" (did you mean {meant}?)\nSee 'kschedx --help' for usage.\n"


def test_a_command_without_a_similar_name_is_refused() -> None:
    assert kschedx("zzz").err.startswith('error: no command "zzz"\n')
