"""`kschedx why` on a live cluster: its requests, failures, and their errors."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kschedx.kube.kinds import KINDS, READ_LIVE
from kschedx.releases import EMULATED
from kschedx.sources.live import client, credentials, lists
from kschedx.sources.live.lists import path_of
from tests.api_server import (
    CERTIFICATE,
    FakeApiServer,
    Handler,
    Reply,
    Request,
    discovery_of,
    failure,
    kubeconfig,
    served,
)
from tests.builders import Manifest, node, pod
from tests.cli.manifests import BIG_POD, NODE, POD, changed, small_pod, write
from tests.command import CommandResult, kschedx

LISTED = {key: kind for key, kind in KINDS.items() if not kind.is_on_demand}
OTHERS = [small_pod(f"other-{number:03}", "10m", namespace="shop") for number in range(12)]


@pytest.fixture
def api() -> FakeApiServer:
    result = FakeApiServer([NODE, POD, BIG_POD, *OTHERS])
    result.page_size = 5
    return result


@pytest.fixture
def url(api: FakeApiServer) -> Iterator[str]:
    with served(api) as result:
        yield result


def why(folder: Path, url: str, *arguments: str | Path, env: Mapping[str, str] | None = None) -> CommandResult:
    target = arguments or ("pod/web-0", "-o", "json")
    return kschedx("why", *target, "--kubeconfig", kubeconfig(folder, url), env=env)


def error(result: CommandResult, code: int = 2) -> str:
    """Return the only line of a command that failed."""
    assert (result.code, result.out) == (code, ""), result.err
    (line,) = result.err.splitlines()
    return line


# --- what is asked


def test_the_answer_is_the_same_as_from_a_file(url: str, tmp_path: Path) -> None:
    live = json.loads(why(tmp_path, url).out)
    file = write(tmp_path, NODE, POD, BIG_POD, *OTHERS)
    dumped = json.loads(kschedx("why", "pod/web-0", "-n", "shop", "-s", file, "-o", "json").out)
    assert live.pop("source")["kinds"] == dumped.pop("source")["kinds"]
    assert [note["id"] for note in live.pop("notes")] == [note["id"] for note in dumped.pop("notes")]
    assert live == dumped


def test_leases_and_webhooks_are_read(tmp_path: Path) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {"renewTime": "2026-01-01T08:00:00Z"},
    }
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    webhooks = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "drain"},
        "webhooks": [{"name": "drain.example.com", "rules": [rule]}],
    }
    new = pod("x", metadata={"creationTimestamp": "2026-01-01T09:00:00Z"})
    with served(FakeApiServer([node("n"), node("m"), pod("runs", on="n"), new, lease, webhooks])) as url:
        result = why(tmp_path, url, "pod/x", "-n", "default")
        drain = kschedx("drain", "n", "--force", "--kubeconfig", kubeconfig(tmp_path, url))
    assert "default/x is not scheduled: kube-scheduler has no leader" in result.out
    assert "note: webhook drain.example.com decides about evictions too" in drain.err


def test_a_printed_command_has_the_connection_of_its_list(url: str, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, url)
    screen = kschedx("why", "--all-pending", "--kubeconfig", config).out
    (command,) = re.findall(r"more +kschedx (why .*)", screen.replace("\\\n", ""))
    assert f"--kubeconfig {config}" in " ".join(command.split())


def test_only_get_is_sent(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    assert why(tmp_path, url).code == 0
    assert why(tmp_path, url, "pod/big-0").code == 1
    assert why(tmp_path, url, write(tmp_path, POD, name="pod.yaml")).code == 0
    assert {request.method for request in api.requests} == {"GET"}


def test_exactly_the_needed_kinds_are_listed(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    why(tmp_path, url)
    question = {request.path for request in api.requests}
    assert question == {"/version", "/apis", "/api/v1/events"} | {
        path_of(kind, kind.versions[0], only=only) for kind in LISTED.values() for only in kind.only or ("",)
    }


EVENT: Manifest = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web-0.1", "namespace": "shop"},
    "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-0"},
    "reason": "FailedScheduling",
    "message": "0/1 nodes are available: 1 Insufficient cpu.",
    "source": {"component": "default-scheduler"},
    "type": "Warning",
}
JOB_SET: Manifest = {
    "apiVersion": "jobset.x-k8s.io/v1",
    "kind": "JobSet",
    "metadata": {"name": "train", "namespace": "shop", "uid": "u"},
    "spec": {"suspend": True, "replicatedJobs": []},
}


def test_events_are_read(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.replace([NODE, POD, EVENT])
    notes = {note["id"]: note["text"] for note in json.loads(why(tmp_path, url).out)["notes"]}
    assert notes["recorded-event"].startswith("the recorded event differs: kschedx finds a node")
    (requested,) = (request.query for request in api.requests if request.path == "/api/v1/events")
    assert "reason!=Scheduled" in requested["fieldSelector"]


def test_events_that_may_not_be_listed_are_named(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail("/events", failure(403, "no"), forever=True)
    notes = {note["id"]: note["text"] for note in json.loads(why(tmp_path, url).out)["notes"]}
    assert notes["unread-events"].startswith("listing events is forbidden")
    for arguments in (("why", "--all-pending"), ("simulate",), ("fit", "pod/big-0", "-n", "shop")):
        result = kschedx(*arguments, "--kubeconfig", kubeconfig(tmp_path, url))
        assert "listing events is forbidden" in result.out + result.err, arguments


def test_custom_resources_are_read_if_the_server_serves_them(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.replace([NODE, POD, JOB_SET])
    arguments = ("why", "jobset/train", "-n", "shop", "--kubeconfig", kubeconfig(tmp_path, url))
    assert kschedx(*arguments).code == 2
    api.discovery = discovery_of(READ_LIVE.values())
    result = kschedx(*arguments)
    assert "shop/jobset/train is suspended" in result.out, result.err


def test_lists_are_read_in_pages(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    result = why(tmp_path, url)
    assert json.loads(result.out)["source"]["kinds"]["Pod"] == 14
    questions = [request.query for request in api.requests if request.path == "/api/v1/pods"]
    assert questions == [{"limit": "500"}, {"limit": "500", "continue": "5"}, {"limit": "500", "continue": "10"}]


def test_the_contexts_namespace_is_the_default(url: str, tmp_path: Path) -> None:
    assert why(tmp_path, url, "web-0").code == 0
    assert 'no pod "web-0" in namespace "other"' in error(why(tmp_path, url, "pod/web-0", "-n", "other"))


def test_a_manifest_without_a_namespace_has_that_of_the_context(url: str, tmp_path: Path) -> None:
    manifest = write(tmp_path, changed(POD, "metadata", {"name": "new"}), name="pod.yaml")
    assert json.loads(why(tmp_path, url, manifest, "-o", "json").out)["pod"]["namespace"] == "shop"


def test_a_namespace_that_contradicts_the_manifest_is_an_error(url: str, tmp_path: Path) -> None:
    manifest = write(tmp_path, POD, name="pod.yaml")
    assert why(tmp_path, url, manifest, "-n", "shop").code == 0
    assert 'does not match the namespace of the request: "other"' in error(why(tmp_path, url, manifest, "-n", "other"))


@pytest.mark.parametrize(
    ("version", "emulated", "says"),
    [
        ("v1.35.4", "1.35", None),
        ("v1.99.0", EMULATED[0], "does not support"),
        ("v0.0.0-master+8e16b12", "1.36", None),
        ("", "1.36", None),
    ],
)
def test_the_servers_version_is_emulated(
    version: str, emulated: str, says: str | None, api: FakeApiServer, url: str, tmp_path: Path
) -> None:
    api.version = version
    document = json.loads(why(tmp_path, url).out)
    notes = [note["text"] for note in document["notes"] if note["id"] == "release"]
    assert document["kubernetesVersion"] == emulated
    assert notes == [] if says is None else says in notes[0]


def test_a_given_version_is_emulated_without_a_note(url: str, tmp_path: Path) -> None:
    document = json.loads(why(tmp_path, url, "pod/web-0", "-o", "json", "--kube-version", "1.34").out)
    assert document["kubernetesVersion"] == "1.34"
    assert "release" not in {note["id"] for note in document["notes"]}


def test_a_user_is_impersonated(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    why(tmp_path, url, "web-0", "--as", "jane", "--as-group", "dev", "--as-group", "ops")
    for request in api.requests:
        assert request.headers["impersonate-user"] == ["jane"]
        assert request.headers["impersonate-group"] == ["dev", "ops"]


def test_a_group_alone_cannot_be_impersonated(url: str, tmp_path: Path) -> None:
    assert "--as-group needs --as" in error(why(tmp_path, url, "web-0", "--as-group", "dev"))


def test_files_and_a_connection_exclude_each_other(url: str, tmp_path: Path) -> None:
    line = error(why(tmp_path, url, "web-0", "-s", write(tmp_path, NODE, POD)))
    assert "--kubeconfig applies to a live cluster" in line


def test_the_error_without_a_configuration_names_the_options(tmp_path: Path) -> None:
    line = error(kschedx("why", "web-0", env={"HOME": str(tmp_path)}))
    assert "no cluster is configured" in line
    assert "--snapshot" in line


# --- logging in


def test_a_token_is_sent_over_tls(api: FakeApiServer, tmp_path: Path) -> None:
    with served(api, tls=True) as url:
        config = kubeconfig(tmp_path, url, user={"token": "secret"}, **{"certificate-authority": str(CERTIFICATE)})
        assert kschedx("why", "web-0", "--kubeconfig", config).code == 0
    assert {request.headers["authorization"][0] for request in api.requests} == {"Bearer secret"}


def test_no_token_is_sent_without_encryption(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    assert kschedx("why", "web-0", "--kubeconfig", kubeconfig(tmp_path, url, user={"token": "secret"})).code == 0
    assert not any("authorization" in request.headers for request in api.requests)


def plugin(folder: Path, script: str) -> Manifest:
    """Write a login plugin beside the kubeconfig, and return the user that has it."""
    path = folder / "login"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": "./login", "interactiveMode": "Never", "installHint": "brew it"}}


def answer(status: str, version: str = "v1") -> str:
    """Return a script that prints an ExecCredential."""
    group = "client.authentication.k8s.io"
    return f"""echo '{{"apiVersion": "{group}/{version}", "kind": "ExecCredential", "status": {status}}}'"""


def test_a_login_plugin_gives_a_token(api: FakeApiServer, tmp_path: Path) -> None:
    user = plugin(tmp_path, answer('{"token": "fresh"}'))
    with served(api, tls=True) as url:
        config = kubeconfig(tmp_path, url, user=user, **{"insecure-skip-tls-verify": True})
        assert kschedx("why", "web-0", "--kubeconfig", config).code == 0
    assert {request.headers["authorization"][0] for request in api.requests} == {"Bearer fresh"}


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 3", "failed: its exit code is 3"),
        ("echo secret", "prints no ExecCredential"),
        (r"printf '\\377secret'", "prints no ExecCredential"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "prints no ExecCredential"),
        ("yes secret", "prints no ExecCredential"),
        (answer('{"token": ["secret"]}'), "prints no ExecCredential"),
        (answer("null"), "returns no status"),
        (answer("{}"), "returns neither a token nor clientCertificateData and clientKeyData"),
        (answer('{"clientKeyData": "secret"}'), "returns a certificate or a key without the other"),
        (answer('{"token": "secret é"}'), "a token cannot have spaces, line ends"),
        (
            answer('{"token": "secret"}', version="v1beta1"),
            'prints no ExecCredential of "client.authentication.k8s.io/v1"',
        ),
        (None, "is not installed (brew it)"),
    ],
)
def test_a_failed_login_plugin_is_named_with_its_output(script: str | None, says: str, tmp_path: Path) -> None:
    user = plugin(tmp_path, script or "")
    if script is None:
        (tmp_path / "login").unlink()
    config = kubeconfig(tmp_path, "https://127.0.0.1:1", user=user)
    line = error(kschedx("why", "web-0", "--kubeconfig", config))
    assert f"{config}: user me: exec: " in line
    assert says in line
    assert "secret" not in line


def test_standard_error_of_a_login_plugin_is_passed_through(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "https://127.0.0.1:1", user=plugin(tmp_path, "echo log in first >&2; exit 3"))
    command = [str(Path(sys.executable).parent / "kschedx"), "why", "web-0", "--kubeconfig", str(config)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[0] == "log in first"
    assert "log in first" not in result.stderr.splitlines()[1]


@pytest.mark.parametrize("name", ["A=B", "", "A\0"])
def test_an_invalid_variable_of_a_login_plugin_is_an_error(name: str, tmp_path: Path) -> None:
    user = plugin(tmp_path, "exit 0")
    exec_plugin = user["exec"]
    assert isinstance(exec_plugin, dict)
    exec_plugin["env"] = [{"name": name, "value": "secret"}]
    line = error(kschedx("why", "web-0", "--kubeconfig", kubeconfig(tmp_path, "https://127.0.0.1:1", user=user)))
    assert "is not a name of an environment variable" in line
    assert "secret" not in line


def test_a_login_plugin_has_a_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its children are ended as well, even if they keep its output open."""
    monkeypatch.setattr(credentials, "_LOGIN_TIMEOUT", 0.5)
    child = tmp_path / "child"
    user = plugin(tmp_path, f"sleep 60 & echo $! > {child}; wait")
    config = kubeconfig(tmp_path, "https://127.0.0.1:1", user=user)
    line = error(kschedx("why", "web-0", "--kubeconfig", config))
    assert f'user me: exec: the login plugin "{tmp_path}/login" took longer than 0.5 s' in line
    number = int(child.read_text())
    for _ in range(100):
        if not Path(f"/proc/{number}").exists() or "Z" in Path(f"/proc/{number}/stat").read_text().split()[2]:
            return
        time.sleep(0.05)
    pytest.fail("the plugin's child is still there")


def test_a_login_plugin_gets_the_cluster(api: FakeApiServer, tmp_path: Path) -> None:
    text = tmp_path / "environment"
    user = plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO $WHO" > {text}; {answer(json.dumps({"token": "fresh"}))}')
    exec_plugin = user["exec"]
    assert isinstance(exec_plugin, dict)
    exec_plugin |= {"env": [{"name": "WHO", "value": "me"}], "provideClusterInfo": True}
    with served(api, tls=True) as url:
        config = kubeconfig(tmp_path, url, user=user, **{"insecure-skip-tls-verify": True})
        assert kschedx("why", "web-0", "--kubeconfig", config).code == 0
    info, _, who = text.read_text().rpartition(" ")
    assert who == "me\n"
    assert json.loads(info)["spec"] == {
        "interactive": False,
        "cluster": {"server": url, "insecure-skip-tls-verify": True},
    }


def test_a_server_with_an_untrusted_certificate(api: FakeApiServer, tmp_path: Path) -> None:
    with served(api, tls=True) as url:
        config = kubeconfig(tmp_path, url)
        assert "certificate verify failed" in error(kschedx("why", "web-0", "--kubeconfig", config))
        assert kschedx("why", "web-0", "--kubeconfig", config, "--insecure-skip-tls-verify").code == 0


@pytest.mark.parametrize(
    ("answer", "says"),
    [(b"", "/version: the connection broke: "), (b"HTTP/1.1 400 Bad Request\r\n\r\n", ": no encrypted connection: ")],
    ids=["nothing", "plain text"],
)
def test_a_failed_plain_connection_is_not_a_certificate_error(answer: bytes, says: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up() -> None:
            with contextlib.suppress(OSError):  # at the test's end
                while True:
                    taken, _ = listening.accept()
                    with taken:
                        taken.recv(1 << 16)
                        taken.sendall(answer)

        threading.Thread(target=hang_up, daemon=True).start()
        line = error(why(tmp_path, f"https://127.0.0.1:{listening.getsockname()[1]}"))
    assert (says in line, "trust" in line) == (True, False)


# --- what goes wrong


def test_a_list_that_expires_midway_is_read_again(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    later = [small_pod(f"later-{number}", namespace="shop") for number in range(3)]
    answers = itertools.count()

    def expire(request: object) -> Reply | None:
        if "continue" not in getattr(request, "query", {}) or next(answers) != 1:
            return None
        api.replace([NODE, POD, *later])
        return failure(410, "The provided continue parameter is too old")

    api.faults.append(expire)
    result = why(tmp_path, url)
    assert result.code == 0
    assert json.loads(result.out)["source"]["kinds"]["Pod"] == 4


def test_a_list_that_always_expires_is_an_error(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.faults.append(lambda request: failure(410, "too old") if "continue" in request.query else None)
    assert f"expired {lists._MAX_RESTARTS + 1} times" in error(why(tmp_path, url))


def test_a_busy_server_is_retried_after_its_delay(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail("/nodes", failure(429, "too many requests", Retry_After="0"), failure(503, "wait", Retry_After="0"))
    assert why(tmp_path, url).code == 0


def test_a_connection_that_always_breaks_is_an_error(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    busy = [failure(429, "too many requests", Retry_After="0")] * 9
    api.fail("/nodes", *busy, Reply(body=b"{", length=5))
    assert "/api/v1/nodes: the connection broke: " in error(why(tmp_path, url))


def test_a_server_that_stays_busy_is_an_error(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail("/nodes", failure(429, "too many requests", Retry_After="60"), forever=True)
    line = error(why(tmp_path, url, "web-0", "--request-timeout", "5s"))
    assert "429 Too Many Requests: too many requests" in line
    assert "retry after 60 s" in line


@pytest.mark.parametrize(
    ("path", "reply", "says"),
    [
        ("/version", failure(401, "Unauthorized"), "kubeconfig: user me: "),
        ("/version", failure(401, "Unauthorized"), "does not accept the credentials (401 Unauthorized"),
        ("/pods", failure(401, "Unauthorized"), "does not accept the credentials"),
        ("/pods", failure(500, "etcd is \x1b[31mgone"), "/api/v1/pods: the server answers 500 Internal Server Error"),
        (
            "/version",
            Reply(status=400, body=b"Client sent HTTP to an HTTPS server.\n"),
            "400 Bad Request: Client sent HTTP",
        ),
        ("/nodes", Reply(status=502, body=b"<html><b>bad</b></html>"), "the server answers 502 Bad Gateway"),
        ("/version", failure(403, 'users "jane" is forbidden: User "me" cannot impersonate'), "cannot impersonate"),
        ("/pods", failure(404, "page not found"), "not an API server: it knows no pods (the address of a"),
        ("/pods", Reply(status=302, headers={"Location": "https://login"}), "not an API server: it sends on to"),
        ("/version", Reply(body=b"<html>log in</html>"), "not an API server: its answer is not valid JSON"),
        ("/pods", Reply(body=b"<html>log in</html>"), "/api/v1/pods: not valid JSON"),
        ("/pods", Reply(body=b'{"kind":"NodeList","metadata":{},"items":[]}'), "expected a PodList, found NodeList"),
        ("/pods", Reply(body=b'{"kind":"PodList","metadata":{},"items":[{"metadata":'), "not valid JSON: it ends in"),
        ("/pods", Reply(body=b'{"kind":"PodList","metadata":{},"items":[{]}'), "not valid JSON"),
        ("/pods", Reply(body=b'{"kind":"PodList","metadata":{},"items":{}}'), "items: not an array"),
        ("/pods", Reply(body=b'{"kind":"PodList","metadata":{},"items":[{"spec":7}]}'), "expected"),
        ("/pods", Reply(body=b'{"kind":"PodList","metadata":{},"items":' + b"[" * 10**6), "nested too deeply"),
        ("/pods", Reply(body=b'{"kind":"PodList","metadata":{},"items":[{"metad\xffta":{}}]}'), "not valid UTF-8"),
        ("/pods", Reply(body=b'{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"\xff"}}]}'), "UTF-8"),
        ("/apis", failure(500, "etcd is gone"), "/apis: the server answers 500 Internal Server Error: etcd is gone"),
        ("/pods", Reply(body=b"\x1f\x8bgarbage", headers={"Content-Encoding": "gzip"}), "compressed and damaged"),
        ("/pods", Reply(body=b'{"kind":"PodList"', length=1000), "/api/v1/pods: the connection broke"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_an_error_of_the_server_is_one_line(
    path: str, reply: Reply, says: str, api: FakeApiServer, url: str, tmp_path: Path
) -> None:
    api.fail(path, reply, forever=True)
    line = error(why(tmp_path, url))
    assert says in line
    assert "\x1b" not in line


def test_a_broken_connection_is_retried(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail("/pods", Reply(body=b'{"kind":"PodList"', length=1000))
    assert why(tmp_path, url).code == 0


def test_an_endless_list_is_an_error(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    page = b'{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"again"},"items":[]}'
    api.fail("/pods", Reply(body=page), forever=True)
    assert "/api/v1/pods: a list that does not end" in error(why(tmp_path, url))


def endless(item: bytes) -> Callable[[Request], Reply | None]:
    """Serve pages of one object, each with a new continue token."""
    count, names = itertools.count(), itertools.count()

    def fault(request: Request) -> Reply | None:
        if not request.path.endswith("/pods"):
            return None
        metadata = b'"metadata":{"continue":"%d"}' % next(count)
        return Reply(body=b'{"kind":"PodList","apiVersion":"v1",%s,"items":[%s]}' % (metadata, item % next(names)))

    return fault


def test_a_list_with_one_object_per_page_is_read(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.faults.append(endless(b'{"metadata":{"name":"p-%d","namespace":"shop"}}'))
    assert "/api/v1/pods: a list that does not end" in error(why(tmp_path, url))


def test_a_list_has_a_timeout(api: FakeApiServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_MAX_SECONDS", 0.1)
    annotations = b'{"a":"' + b"x" * 9000 + b'"}'
    api.faults.append(endless(b'{"metadata":{"name":"p-%d","namespace":"shop","annotations":' + annotations + b"}}"))
    line = error(why(tmp_path, url, "web-0", "--request-timeout", "200ms"))
    assert "/api/v1/pods: a list that does not end" in line


def trickle(pause: float) -> Reply:
    """Serve a body that never ends, in small parts."""

    def write(handler: Handler) -> None:
        handler.wfile.write(b'{"kind":"PodList","items":[')
        while True:
            handler.wfile.write(b" " * (1 if pause else 1 << 20))
            handler.wfile.flush()
            time.sleep(pause)

    return Reply(write=write)


def silent(handler: Handler) -> None:
    time.sleep(20)


@pytest.mark.parametrize("path", ["/version", "/pods"])
@pytest.mark.parametrize("reply", [Reply(write=silent), trickle(0.01)], ids=["silent", "slow"])
def test_a_silent_server_has_a_timeout(path: str, reply: Reply, api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail(path, reply, forever=True)
    begun = time.monotonic()
    line = error(why(tmp_path, url, "web-0", "--request-timeout", "300ms"))
    assert "no complete answer within 0.3 s (--request-timeout allows more)" in line
    assert time.monotonic() - begun < 5


def test_an_endless_answer_is_cut_off(
    api: FakeApiServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MAX_PAGE", 8 << 20)
    api.fail("/pods", trickle(0), forever=True)
    assert "/api/v1/pods: more than 8 MB in one response" in error(why(tmp_path, url))


def test_a_page_that_is_too_large_is_read_in_smaller_ones(
    api: FakeApiServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MAX_PAGE", 100_000)
    monkeypatch.setattr(lists, "_SMALL_LIMIT", 2)
    api.page_size = 500
    api.replace([NODE, POD, *(changed(other, "metadata.annotations", {"big": "x" * 20_000}) for other in OTHERS)])
    result = why(tmp_path, url)
    assert result.code == 0
    assert json.loads(result.out)["source"]["kinds"]["Pod"] == 13


def test_an_unreachable_server(tmp_path: Path) -> None:
    assert "http://127.0.0.1:1: cannot be reached: " in error(why(tmp_path, "http://127.0.0.1:1"))


@pytest.mark.parametrize("text", ["soon", "-1", "1d", "1e9", ""])
def test_an_invalid_timeout(text: str, url: str, tmp_path: Path) -> None:
    line = error(why(tmp_path, url, "web-0", f"--request-timeout={text}"))
    assert f'--request-timeout: found "{text}"' in line


# --- kinds that cannot be read


def forbid(api: FakeApiServer, *kinds: str) -> None:
    for kind in kinds:
        row = KINDS[kind]
        path = f"/{row.plural}" if row.only else f"/{row.api_version}/{row.plural}"  # others are listed everywhere
        api.fail(path, failure(403, f"{kind} is forbidden"), forever=True)


@pytest.mark.parametrize(
    ("kind", "everywhere", "headline"),
    [
        ("Node", True, "? shop/web-0 is undecided: where a pod could go is not known"),
        ("Pod", False, "? shop/web-0 is undecided: what is free on the nodes is not known"),
        ("Pod", True, ""),
    ],
)
def test_a_question_about_a_pod_needs_its_namespace_alone(
    kind: str, everywhere: bool, headline: str, api: FakeApiServer, url: str, tmp_path: Path
) -> None:
    path = f"/{KINDS[kind].plural}" if everywhere else f"/api/v1/{KINDS[kind].plural}"
    api.fail(path, failure(403, "forbidden"), forever=True)
    for target in ("web-0", "shop/web-0", "pod/web-0"):
        result = why(tmp_path, url, target)
        assert (result.code, result.out.partition("\n")[0]) == (3, headline)
        assert f"listing {KINDS[kind].plural} is forbidden" in result.out + result.err
        assert f"--verb=get,list --resource={KINDS[kind].plural}" in result.out + result.err
    assert f"listing {KINDS[kind].plural} is forbidden" in error(why(tmp_path, url, "node/node-a"), code=3)


def test_a_workload_whose_nodes_may_not_be_listed_has_the_event_of_its_pod(tmp_path: Path) -> None:
    message = "0/3 nodes are available: 3 Insufficient cpu."
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    metadata = {"creationTimestamp": "2026-05-01T00:00:00Z", "ownerReferences": [owner]}
    waits = pod("web-x", namespace="shop", metadata=metadata, labels={"app": "web"}, status={"conditions": [refused]})
    replica_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]},
        },
        "status": {"replicas": 1, "observedGeneration": 1},
    }
    api = FakeApiServer([waits, replica_set])
    forbid(api, "Node", "PriorityClass")
    with served(api) as url:
        result = why(tmp_path, url, "rs/web")
    assert result.out.startswith("? shop/web-x is undecided: where a pod could go is not known\n")
    assert f"event     {message}" in result.out


def test_an_error_names_all_forbidden_kinds(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    forbid(api, "Node", "Service", "LimitRange")
    line = error(why(tmp_path, url, "--all-pending"), code=3)
    assert "listing nodes is forbidden, and so is listing 2 more kinds (kubectl create clusterrole kschedx" in line
    assert "--verb=get,list --resource=nodes,limitranges,services, bound to you" in line
    forbid(api, *(kind for kind in LISTED if kind != "Pod"))
    line = error(why(tmp_path, url, "--all-pending"), code=3)
    assert line.endswith(
        "(the ClusterRole of https://kschedx.github.io/kschedx/reference/permissions.html, bound to you, allows it)"
    )


@pytest.mark.parametrize("part", range(4))
def test_other_forbidden_kinds_matter_only_to_pods_that_depend_on_them(
    part: int, api: FakeApiServer, url: str, tmp_path: Path
) -> None:
    """A single node is not scored, and the pod has no claims and owners."""
    whole = why(tmp_path, url)
    kinds = [kind for kind in LISTED if kind not in ("Node", "Pod")][part::4]
    forbid(api, *kinds)
    result = why(tmp_path, url)
    assert result.code == 0, result.err
    before, after = json.loads(whole.out), json.loads(result.out)
    texts = [note for note in after.pop("notes") if note not in before["notes"]]
    assert after["source"].pop("missing") == dict.fromkeys(kinds, "forbidden")
    assert {**before, "notes": None} == {**after, "notes": None}
    assert all(set(note["kinds"]) <= set(kinds) for note in texts)


def test_forbidden_kinds_without_effect_are_one_note(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    forbid(api, "Service", "PodDisruptionBudget", "Namespace")
    notes = {note["id"]: note for note in json.loads(why(tmp_path, url).out)["notes"]}
    assert notes["unread-kind"]["kinds"] == ["Namespace", "PodDisruptionBudget", "Service"]
    assert "poddisruptionbudgets.policy" in notes["unread-kind"]["text"]


def test_services_matter_if_nodes_are_scored(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.replace([NODE, node("node-02"), POD])
    forbid(api, "Service")
    assert "which pods default spreading counts is not known: listing services" in error(why(tmp_path, url), code=3)


def test_a_kind_that_the_server_does_not_serve_has_no_objects(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    for kind in LISTED.values():
        if kind.group:
            api.fail(f"/{kind.plural}", failure(404, "not found"), forever=True)
    assert why(tmp_path, url).code == 0
    api.replace([NODE, node("node-02"), POD])
    assert why(tmp_path, url).code == 0


def test_an_older_version_of_a_kind_is_read(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    body = (
        b'{"kind":"PodDisruptionBudgetList","apiVersion":"policy/v1beta1","metadata":{},'
        b'"items":[{"metadata":{"name":"web","namespace":"shop"}}]}'
    )
    api.fail("/policy/v1/poddisruptionbudgets", failure(404, "not found"), forever=True)
    api.fail("/policy/v1beta1/poddisruptionbudgets", Reply(body=body), forever=True)
    policy = {"name": "policy", "versions": [{"groupVersion": "policy/v1beta1", "version": "v1beta1"}]}
    older = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [policy]}
    for text in (Reply(body=json.dumps(older).encode()), failure(403, "no"), Reply(body=b"<html>")):
        api.fail("/apis", text)
        assert json.loads(why(tmp_path, url).out)["source"]["kinds"]["PodDisruptionBudget"] == 1


def test_kinds_that_are_not_served_are_not_requested(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.discovery = discovery_of(kind for kind in LISTED.values() if not kind.is_optional)
    document = json.loads(why(tmp_path, url).out)
    optional = {
        key for key, kind in LISTED.items() if kind.is_optional and kind.group
    }  # the core group is always served
    assert document["source"]["missing"] == dict.fromkeys(optional, "absent")
    question = {request.path.rpartition("/")[2] for request in api.requests}
    assert not question & {LISTED[key].plural for key in optional}


def test_a_workload_that_may_not_be_read_is_not_called_missing(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    forbid(api, "Deployment")
    line = error(why(tmp_path, url, "deploy/web"), code=3)
    assert "listing deployments.apps is forbidden" in line


def test_pods_of_a_deployment_are_unknown_without_replica_sets(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    selector = {"matchLabels": {"app": "web"}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": selector, "template": template},
    }
    api.replace([NODE, web])
    assert why(tmp_path, url, "deploy/web").code == 0
    forbid(api, "ReplicaSet")
    line = error(why(tmp_path, url, "deploy/web"), code=3)
    assert "which ReplicaSet creates the pods of Deployment web is not known: listing replicasets.apps" in line


def test_a_namespace_that_admission_reads(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    forbid(api, "Namespace")
    manifest = write(tmp_path, POD, name="pod.yaml")
    assert why(tmp_path, url, manifest).code == 0
    result = why(tmp_path, url, manifest, "--enable-admission-plugins", "PodNodeSelector")
    assert (result.code, "which annotations for PodNodeSelector the namespace has is not known" in result.out) == (
        3,
        True,
    )


def test_an_object_that_a_live_cluster_lacks_does_not_exist(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    """With a dump that lacks the kind, the answer would be undecided."""
    manifest = write(tmp_path, changed(POD, "spec.runtimeClassName", "kata"), name="pod.yaml")
    live = why(tmp_path, url, manifest)
    assert (live.code, 'RuntimeClass "kata" not found' in live.out) == (1, True)
    dumped = kschedx(
        "why", manifest, "-s", write(tmp_path, changed(NODE, "metadata.creationTimestamp", "2026-01-01T00:00:00Z"))
    )
    assert (dumped.code, "what RuntimeClass kata adds to its pods is not known" in dumped.out) == (3, True)


def test_a_priority_class_that_may_not_be_read(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    forbid(api, "PriorityClass")
    manifest = write(tmp_path, changed(POD, "spec.priorityClassName", "gold"), name="pod.yaml")
    result = why(tmp_path, url, manifest)
    assert (result.code, "the priority of gold is not known" in result.out) == (3, True)


def test_pending_pods_of_the_cluster(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.replace([NODE, POD, pod("there", namespace="shop", on="node-01"), BIG_POD])
    result = why(tmp_path, url, "--all-pending")
    assert (result.code, result.err) == (1, "")
    assert "there" not in result.out


def test_a_list_of_pods_has_the_note_about_forbidden_kinds_once(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    """The note leaves out kinds that only admission reads, since the pods are admitted."""
    api.replace([NODE, POD, BIG_POD])
    forbid(api, "Service", "CSINode", "LimitRange")
    note = "note: listing is forbidden for csinodes.storage.k8s.io, services: pods that use them are undecided"
    assert why(tmp_path, url, "--all-pending").err.splitlines() == [note]
    assert diff(tmp_path, url, "default", "binpack", "--all-pending").err.splitlines() == [note]


# --- profiles compared on a live cluster


def diff(folder: Path, url: str, *arguments: str | Path) -> CommandResult:
    return kschedx("diff-profiles", *arguments, "--kubeconfig", kubeconfig(folder, url))


HALF_FULL = [NODE, node("node-02"), changed(small_pod("there", namespace="shop"), "spec.nodeName", "node-01")]


@pytest.mark.parametrize("which", [("pod/web-0",), ("--all-pending",), ("--all",), ("--pod", "shop/web-0")])
def test_profiles_are_compared_as_on_a_file(
    which: tuple[str, ...], api: FakeApiServer, url: str, tmp_path: Path
) -> None:
    objects = [*HALF_FULL, POD]
    api.replace(objects)
    result = diff(tmp_path, url, "default", "binpack", *which)
    file = write(tmp_path, *objects)
    dumped = kschedx("diff-profiles", "default", "binpack", *which, "-n", "shop", "-s", file)
    assert (result.code, result.out, result.err) == (dumped.code, dumped.out, dumped.err)
    assert result.code == 1
    assert {request.method for request in api.requests} == {"GET"}


def test_two_versions_are_compared_on_a_target(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.replace([*HALF_FULL, POD])
    for arguments in (["pod/web-0"], ["web-0"], ["binpack", "web-0"], ["binpack", write(tmp_path, POD, name="p.yaml")]):
        result = diff(tmp_path, url, "--kube-version", "1.35..1.36", *arguments)
        assert (result.err, "1 pod" in result.out) == ("", True)


def test_the_live_servers_version_is_compared(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.version = "v1.33.1"
    assert "Kubernetes 1.33" in diff(tmp_path, url, "default", "binpack", "pod/web-0").out


def test_configurations_are_compared_without_a_cluster(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    assert diff(tmp_path, url, "default", "binpack").code == 1
    assert api.requests == []


def test_a_missing_profile_is_an_error_before_the_cluster_is_read(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    assert "binpak" in error(diff(tmp_path, url, "default", "binpak", "--all"))
    assert api.requests == []


def test_a_comparison_that_depends_on_forbidden_kinds_is_undecided(
    api: FakeApiServer, url: str, tmp_path: Path
) -> None:
    api.replace([*HALF_FULL, POD])
    forbid(api, "Service")
    reason = "which pods default spreading counts is not known: listing services is forbidden"
    assert reason in error(diff(tmp_path, url, "default", "binpack", "pod/web-0"), code=3)
    result = diff(tmp_path, url, "default", "binpack", "--all-pending")
    assert (result.code, "1 pod undecided, shop/web-0 among them: " in result.out) == (3, True)
    forbid(api, "Pod")
    assert "listing pods is forbidden" in error(diff(tmp_path, url, "default", "binpack", "--all"), code=3)


def test_a_pod_and_all_pods_exclude_each_other(url: str, tmp_path: Path) -> None:
    assert "--pod selects one pod" in error(diff(tmp_path, url, "default", "binpack", "--pod", "web-0", "--all"))


# --- a dry run on the server


def dry_run(api: FakeApiServer, **spec: object) -> None:
    """A server that returns the pod with more fields in its spec."""

    def answer(request: Request) -> Reply | None:
        if request.method != "POST":
            return None
        stored = json.loads(request.body)
        stored["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "1"}
        stored["spec"] |= spec
        return Reply(status=201, body=json.dumps(stored).encode())

    api.faults.append(answer)


def test_a_dry_run_is_the_only_post_and_stores_nothing(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    dry_run(api, priority=0)
    manifest = write(tmp_path, changed(POD, "metadata.name", "new"), name="pod.yaml")
    assert why(tmp_path, url, manifest, "--dry-run=server", "-o", "json").code == 0
    sent = [request for request in api.requests if request.method != "GET"]
    assert [(item.method, item.path, item.query) for item in sent] == [
        ("POST", "/api/v1/namespaces/shop/pods", {"dryRun": "All"})
    ]


def test_fields_that_the_server_changes_count_and_are_shown(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    dry_run(api, priority=0, nodeSelector={"pool": "gold"})
    manifest = write(tmp_path, changed(POD, "metadata.name", "new"), name="pod.yaml")
    assert why(tmp_path, url, manifest).code == 0
    result = why(tmp_path, url, manifest, "--dry-run=server", "-o", "json")
    assert result.code == 1
    (note,) = [note for note in json.loads(result.out)["notes"] if note["id"] == "dry-run"]
    assert 'spec.nodeSelector.pool is "gold", not null' in note["changes"]


def test_quantities_in_another_form_are_equal(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    """The server writes `1` for 1 and 1000m; real differences are shown by field."""
    container = {"name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": "1"}}}
    dry_run(api, containers=[container], priority=0, preemptionPolicy="PreemptLowerPriority")
    for written in (1, "1000m", "1500m"):
        manifest = write(tmp_path, changed(POD, "spec.containers.0.resources.requests.cpu", written), name="pod.yaml")
        result = why(tmp_path, url, manifest, "--dry-run=server", "-o", "json")
        (note,) = [note for note in json.loads(result.out)["notes"] if note["id"] == "dry-run"]
        changes = [change for change in note["changes"] if "containers" in change]
        different = 'spec.containers[0].resources.requests.cpu is "1", not "1500m"'
        assert changes == ([different] if written == "1500m" else [])


def test_a_forbidden_dry_run_names_the_way_without_it(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    manifest = write(tmp_path, POD, name="pod.yaml")
    message = 'pods is forbidden: User "me" cannot create resource "pods" in API group ""'
    api.fail("/namespaces/shop/pods", failure(403, message))
    line = error(why(tmp_path, url, manifest, "--dry-run=server"))
    assert (message in line, "without --dry-run=server" in line) == (True, True)


def test_a_quota_that_refuses_the_dry_run_is_the_answer(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    message = 'pods "web-0" is forbidden: exceeded quota'
    api.fail("/namespaces/shop/pods", failure(403, message))
    result = why(tmp_path, url, write(tmp_path, POD, name="pod.yaml"), "--dry-run=server")
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("✗ shop/web-0 is not created: ResourceQuota refuses the pod\n")
    assert message in result.out


def test_another_refusal_of_the_dry_run_is_quoted_as_an_error(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail("/namespaces/shop/pods", failure(422, "Pod is invalid: spec: too odd"), forever=True)
    manifest = write(tmp_path, POD, name="pod.yaml")
    assert "Pod is invalid: spec: too odd" in error(why(tmp_path, url, manifest, "--dry-run=server"))


def test_a_dry_run_needs_a_live_cluster(tmp_path: Path) -> None:
    manifest = write(tmp_path, POD, name="pod.yaml")
    line = error(kschedx("why", manifest, "-s", write(tmp_path, NODE), "--dry-run=server"))
    assert "--dry-run=server needs one manifest and a live cluster" in line
