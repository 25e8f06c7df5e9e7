"""Which files count, which entry of them wins, and what an error names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
import yaml

from kschedx.errors import InputError
from kschedx.sources.live.kubeconfig import ExecPlugin, Kubeconfig, KubeconfigUser, load

Document = Mapping[str, object]


def entries(section: str, **named: Document) -> Document:
    what = section.removesuffix("s")
    return {section: [{"name": name, what: fields} for name, fields in named.items()]}


def server(url: str, **more: object) -> Document:
    return {"server": url, **more}


FIRST: Document = {
    "current-context": "dev",
    **entries("contexts", dev={"cluster": "dev", "user": "me"}, both={"cluster": "dev", "namespace": "first"}),
    **entries("clusters", dev=server("https://first")),
    **entries("users", me={"token": "first"}),
}
SECOND: Document = {
    "current-context": "prod",
    **entries("contexts", prod={"cluster": "prod", "user": "root"}, both={"cluster": "prod", "user": "root"}),
    **entries("clusters", dev=server("https://second", **{"insecure-skip-tls-verify": True}), prod=server("https://p")),
    **entries("users", me={"username": "second"}, root={"token": "second"}),
}


def write(folder: Path, name: str, document: Document | str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(dict(document)), encoding="utf-8")
    return path


def merged(folder: Path, *documents: Document) -> Kubeconfig:
    files = [write(folder, f"{number}.yaml", document) for number, document in enumerate(documents)]
    return load(None, {"KUBECONFIG": os.pathsep.join(map(str, files))})


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load(str(path), {}).choose()
    return str(caught.value)


# --- which files


def test_an_explicit_file_is_the_only_one(tmp_path: Path) -> None:
    first, second = write(tmp_path, "first", FIRST), write(tmp_path, "second", SECOND)
    home = write(tmp_path, ".kube/config", SECOND)
    loaded = load(str(first), {"KUBECONFIG": str(second), "HOME": str(tmp_path)})
    assert loaded.sources == (str(first),)
    assert set(loaded.clusters) == {"dev"}
    assert load(None, {"KUBECONFIG": str(second), "HOME": str(tmp_path)}).sources == (str(second),)
    assert load(None, {"KUBECONFIG": "", "HOME": str(tmp_path)}).sources == (str(home),)


def test_missing_files_of_a_list_are_skipped(tmp_path: Path) -> None:
    first = write(tmp_path, "first", FIRST)
    loaded = load(None, {"KUBECONFIG": f"{tmp_path / 'gone'}{os.pathsep}{os.pathsep}{first}{os.pathsep}{first}"})
    assert loaded.sources == (str(first),)


@pytest.mark.parametrize("environment", [{}, {"KUBECONFIG": "/nowhere/config"}, {"HOME": "/nowhere"}])
def test_without_any_file_nothing_is_configured(environment: Mapping[str, str]) -> None:
    assert load(None, environment).is_empty


def test_an_explicit_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "config", FIRST)
    assert refusal(tmp_path / "confg") == f'{tmp_path / "confg"}: no such file (did you mean "config"?)'


# --- which entries


@pytest.mark.parametrize(
    ("order", "current", "dev", "me", "both"),
    [
        ((FIRST, SECOND), "dev", "https://first", {"token": "first"}, "first"),
        ((SECOND, FIRST), "prod", "https://second", {"username": "second"}, "default"),
        (({}, FIRST, SECOND), "dev", "https://first", {"token": "first"}, "first"),
    ],
)
def test_the_first_file_to_set_an_entry_wins_it_whole(
    order: tuple[Document, ...], current: str, dev: str, me: Document, both: str, tmp_path: Path
) -> None:
    result = merged(tmp_path, *order)
    assert result.current_context == current
    assert result.clusters["dev"].entry.server == dev
    assert result.clusters["dev"].entry.insecure_skip_tls_verify == (dev == "https://second")
    assert result.users["me"].entry == msgspec.convert(me, KubeconfigUser)
    assert result.choose(context="both").namespace == both
    assert set(result.clusters) == {"dev", "prod"}


@pytest.mark.parametrize(
    ("options", "server", "user"),
    [
        ({}, "https://first", "me"),
        ({"context": "prod"}, "https://p", "root"),
        ({"cluster": "prod"}, "https://p", "me"),
        ({"user": "root"}, "https://first", "root"),
        ({"context": "both", "user": "me"}, "https://first", "me"),
        ({"context": "both"}, "https://first", None),
    ],
)
def test_options_choose(options: Mapping[str, str], server: str, user: str | None, tmp_path: Path) -> None:
    chosen = merged(tmp_path, FIRST, SECOND).choose(**options)
    assert (chosen.cluster.entry.server, chosen.user and chosen.user.name) == (server, user)


def test_a_cluster_alone_needs_no_context(tmp_path: Path) -> None:
    chosen = merged(tmp_path, entries("clusters", dev=server("https://first"))).choose(cluster="dev")
    assert (chosen.cluster.entry.server, chosen.namespace, chosen.user) == ("https://first", "default", None)


def test_relative_paths_are_beside_their_own_file(tmp_path: Path) -> None:
    paths = {"client-certificate": "me.crt", "client-key": "../me.key", "tokenFile": "/run/token"}
    write(tmp_path, "a/config", entries("clusters", dev=server("https://d", **{"certificate-authority": "ca.crt"})))
    write(tmp_path, "b/config", entries("users", me={**paths, "exec": {"command": "./login"}}))
    write(tmp_path, "c/config", entries("users", you={"exec": {"command": "aws"}}))
    files = [str(tmp_path / name / "config") for name in "abc"]
    loaded = load(None, {"KUBECONFIG": os.pathsep.join(files)})
    assert loaded.clusters["dev"].entry.certificate_authority == str(tmp_path / "a/ca.crt")
    assert loaded.users["me"].entry == KubeconfigUser(
        client_certificate=str(tmp_path / "b/me.crt"),
        client_key=str(tmp_path / "b/../me.key"),
        token_file="/run/token",
        exec=ExecPlugin(command=str(tmp_path / "b/login")),
    )
    assert loaded.users["you"].entry == KubeconfigUser(exec=ExecPlugin(command="aws"))


# --- errors


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"context": "pord"}, 'context "pord" does not exist (did you mean "prod"?)'),
        ({"cluster": "x"}, 'cluster "x" does not exist (known: dev, prod)'),
        ({"user": "rot"}, 'user "rot" does not exist (did you mean "root"?)'),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(options: Mapping[str, str], says: str, tmp_path: Path) -> None:
    result = merged(tmp_path, FIRST, SECOND)
    with pytest.raises(InputError) as caught:
        result.choose(**options)
    assert str(caught.value) == f"{os.pathsep.join(result.sources)}: {says}"


WRONG_TYPES: list[tuple[str, object]] = [
    ("token", ["secret"]),
    ("tokenFile", 7),
    ("username", 5),
    ("password", True),
    ("client-key-data", {"a": "secret"}),
    ("as", 7),
    ("as-groups", "secret"),
    ("as-user-extra", ["secret"]),
    ("auth-provider", "gcp"),
    ("exec", []),
]


def context(**fields: object) -> Document:
    return {"current-context": "c", **entries("contexts", c=fields)}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("a: [", "config:1: "),
        ("just text", "not a kubeconfig: expected one mapping"),
        ("a: 1\n---\nb: 2", "not a kubeconfig: expected one mapping"),
        ({"kind": "Pod"}, "not a kubeconfig: its kind is Pod, expected Config"),
        ({"clusters": {}}, "clusters: expected a list, found a mapping"),
        ({"clusters": ["x"]}, "clusters[0]: expected a mapping, found a string"),
        ({"users": [{"name": 7}]}, "users[0].name: expected a string, found a whole number"),
        ({"users": [{"name": "a", "user": []}]}, "users[0].user: expected a mapping, found a list"),
        ({"users": [{"name": "a"}, {"name": "a"}]}, 'user "a" is defined twice'),
        ({"current-context": []}, "current-context: expected a string, found a list"),
        ({**FIRST, "current-context": ""}, "no current-context is set (--context takes one of: both, dev)"),
        ({}, "no current-context is set (--context takes one of: none)"),
        (context(), "context c: names no cluster"),
        (context(cluster="gone"), 'context c: cluster "gone" does not exist (there is no cluster)'),
        *((entries("users", me={name: value}), f"users[0].user.{name}") for name, value in WRONG_TYPES),
        (
            entries("clusters", d=server("https://d", **{"insecure-skip-tls-verify": "false"})),
            "clusters[0].cluster.insecure-skip-tls-verify: expected true or false, found a string",
        ),
        (
            entries("clusters", d=server("https://d", **{"proxy-url": ["p"]})),
            "clusters[0].cluster.proxy-url: expected a string",
        ),
        (context(cluster=7), "contexts[0].context.cluster: expected a string, found a whole number"),
        ({**context(cluster="d"), **entries("clusters", d={})}, "cluster d: no server"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(document: Document | str, says: str, tmp_path: Path) -> None:
    path = write(tmp_path, "config", document)
    line = refusal(path)
    assert line.startswith(str(path))
    assert says in line
    assert "secret" not in line
