"""The MCP server, with the client of the SDK."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
import urllib3
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from kschedx.cli.connection import Connection
from kschedx.cli.mcp.server import BOUNDS, Answers, KnownClusters, _result, server
from kschedx.cli.mcp.tools import TOOLS, Detail, Truncation, bound, size, tool
from kschedx.cli.worker import CapturedAnswer, Worker
from kschedx.progress import Phase, ProgressStep, report_progress
from tests.command import ROOT, kschedx

ZONE_FULL = str(ROOT / "fixtures" / "zone-full" / "cluster")
FULL = {"detail": "full"}
POD = {"manifest": (ROOT / "fixtures" / "zone-full" / "pod.yaml").read_text(), **FULL}
RUNNING = {"target": "pod/clickstream-exec-17", "namespace": "data-platform", **FULL}
CLUSTERS = KnownClusters(snapshots=(ZONE_FULL, str(ROOT / "fixtures" / "tie")))


@pytest.fixture(scope="module")
def shared() -> Iterator[Answers]:
    """A process with the tools for all sessions about the same clusters."""
    answers = Answers(CLUSTERS, limit=60)
    yield answers
    answers.end()


def converse(talk: Callable[[Client], Awaitable[None]], answers: Answers) -> None:
    """Run a session with a server in this process; its tools run in another one."""

    async def session() -> None:
        async with Client(server(answers)) as client:
            await talk(client)

    anyio.run(session)


def run_session(
    talk: Callable[[Client], Awaitable[None]], clusters: KnownClusters = CLUSTERS, *, limit: float = 60
) -> None:
    """Run a session with tools in a process of its own."""
    answers = Answers(clusters, limit=limit)
    try:
        converse(talk, answers)
    finally:
        answers.end()


def text(result: CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


def structured(result: CallToolResult) -> Mapping[str, Any]:
    assert result.structured_content is not None, text(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def test_every_tool_is_read_only_and_has_a_description(shared: Answers) -> None:
    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [item.name for item in tools] == [item.name for item in TOOLS]
        assert len(json.dumps([item.model_dump(mode="json", exclude_none=True) for item in tools])) < 20_000
        for item in tools:
            assert item.annotations is not None
            assert item.annotations.read_only_hint
            assert item.annotations.destructive_hint is False
            assert item.description is not None
            assert item.description.startswith("Use this ")
            assert item.description.endswith("Changes nothing.")
            assert item.input_schema["additionalProperties"] is False
            Draft202012Validator.check_schema(item.input_schema)
            assert item.output_schema is not None
            Draft202012Validator.check_schema(item.output_schema)

    converse(talk, shared)


def test_why_returns_the_screen_and_the_document(shared: Answers) -> None:
    async def talk(client: Client) -> None:
        schema = next(item for item in (await client.list_tools()).tools if item.name == "pod_explain").output_schema
        assert schema is not None
        result = await client.call_tool("pod_explain", POD)
        answer = structured(result)
        Draft202012Validator(schema).validate(answer)
        assert "0 of 6 nodes fit" in text(result)
        assert answer["exitCode"] == 1
        assert answer["document"]["outcome"] == "Unschedulable"
        assert answer["leftOut"] == []
        assert (
            structured(await client.call_tool("pod_explain", RUNNING))["document"]["pod"]["name"]
            == "clickstream-exec-17"
        )

    converse(talk, shared)


def test_a_manifest_is_text_and_a_snapshot_is_a_listed_one() -> None:
    manifest = (ROOT / "fixtures" / "tie" / "pod.yaml").read_text()

    async def talk(client: Client) -> None:
        result = await client.call_tool("pod_explain", {"manifest": manifest, "snapshot": "cluster.yaml", **FULL})
        assert structured(result)["document"]["outcome"] == "Scheduled"

    run_session(talk, KnownClusters(snapshots=(str(ROOT / "fixtures" / "tie"),)))


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("pod_explain", {}, "pass either target, as pod/NAME or deploy/NAME, or manifest, as YAML"),
        ("pod_explain", {"target": "/etc/passwd"}, "target: found '/etc/passwd', allowed are pod/NAME"),
        ("pod_explain", {"target": "--help"}, "target: found '--help'"),
        ("pod_explain", {"manifest": "{{ x }}"}, "error: manifest:1: looks like a template"),
        (
            "pod_explain",
            {**RUNNING, "namespace": "--kubeconfig=/etc/passwd"},
            "namespace: found '--kubeconfig=/etc/passwd'",
        ),
        ("pod_explain", {**POD, "snapshot": "/etc"}, 'this server was not started with snapshot "/etc"'),
        ("pod_explain", {**POD, "snapshot": "../../../etc"}, "this server was not started with snapshot"),
        ("pod_explain", {**POD, "kubeconfig": "x"}, "Additional properties are not allowed"),
        ("pod_explain", {**POD, "profile": "/etc/passwd"}, "profile: found '/etc/passwd', allowed is a name"),
        ("pod_explain", {"target": "pod/nope", "namespace": "payments"}, 'no pod "nope" in namespace "payments"'),
        ("whyy", {}, 'no tool "whyy"'),
    ],
)
def test_a_forbidden_request_is_a_one_line_error(
    tool: str, arguments: dict[str, Any], expected: str, shared: Answers
) -> None:
    async def talk(client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert expected in text(result)
        assert "\n" not in text(result)

    converse(talk, shared)


def test_a_link_out_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "out.yaml").symlink_to(ROOT / "fixtures" / "tie" / "cluster.yaml")

    async def talk(client: Client) -> None:
        assert (await client.call_tool("dump_check", {"snapshot": "out.yaml"})).is_error

    run_session(talk, KnownClusters(snapshots=(str(tmp_path / "here"),)))


def test_only_listed_contexts_are_available() -> None:
    clusters = KnownClusters(contexts=("prod", "staging"), kubeconfig="k")
    assert clusters.question({"context": "staging"}).where == Connection(kubeconfig="k", context="staging")
    assert clusters.question({}).where == Connection(kubeconfig="k", context="prod")
    assert "snapshot" not in clusters.properties()


def test_a_context_that_the_kubeconfig_lacks_ends_the_server(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("{apiVersion: v1, kind: Config, contexts: [{name: prod, context: {}}]}")
    result = kschedx("mcp", "--kubeconfig", kubeconfig, "--context", "prd")
    assert (result.code, result.err) == (2, 'error: no context "prd" in the kubeconfig (did you mean "prod"?)\n')


def test_many_pods_profiles_reasons_and_dumps(shared: Answers) -> None:
    async def talk(client: Client) -> None:
        pending = structured(await client.call_tool("pending_explain", FULL))
        assert pending["document"]["items"] == []
        changed = structured(await client.call_tool("profiles_compare", {"before": "default", "after": "binpack"}))
        assert changed["exitCode"] == 1
        assert "insufficient" in text(await client.call_tool("event_decode", {"text": "insufficient-resource"}))
        assert structured(await client.call_tool("dump_check", FULL))["document"]["kind"] == "Diagnosis"

    converse(talk, shared)


def test_simulation_tools(shared: Answers) -> None:
    async def talk(client: Client) -> None:
        snapshot = {"snapshot": str(ROOT / "fixtures" / "tie" / "cluster.yaml"), **FULL}
        manifest = (ROOT / "fixtures" / "tie" / "pod.yaml").read_text()
        simulated = structured(await client.call_tool("changes_simulate", {"manifest": manifest, **snapshot}))
        assert list(simulated["document"]["placed"].values()) == ["lab-worker-01"]
        cordoned = {"manifest": manifest, "cordon": ["lab-worker-01"], **snapshot}
        simulated = structured(await client.call_tool("changes_simulate", cordoned))
        assert list(simulated["document"]["placed"].values()) == ["lab-worker-02"]
        drained = structured(await client.call_tool("node_drain_preview", {"each": True, **snapshot}))
        assert drained["document"]["kind"] == "Simulation"
        fit = structured(await client.call_tool("capacity_check", {"manifest": manifest, "replicas": 2, **snapshot}))
        assert fit["exitCode"] == 0
        refused = await client.call_tool("changes_simulate", {"drain": ["--kubeconfig=x"]})
        assert "drain: found '--kubeconfig=x', allowed is a node's name" in text(refused)

    converse(talk, shared)


def test_an_answer_is_cut_to_its_detail(tmp_path: Path) -> None:
    amounts = "{cpu: '1', memory: 4Gi, pods: '110'}"
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: node-%d}\nstatus: {allocatable: %s, capacity: %s}\n"
    path = tmp_path / "cluster.yaml"
    path.write_text("---\n".join(node % (number, amounts, amounts) for number in range(500)))
    manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
    manifest += "  - {name: app, image: app, resources: {requests: {cpu: '2'}}}\n"

    async def talk(client: Client) -> None:
        answer: Mapping[str, Any] = {}
        for detail, bounds in BOUNDS.items():
            result = await client.call_tool("pod_explain", {"manifest": manifest, "detail": detail.value})
            answer = structured(result)
            assert len(result.model_dump_json()) <= bounds.whole
            assert ("document" in answer) == (detail is not Detail.SUMMARY)
        nodes = next(item for item in answer["leftOut"] if item["path"] == "/filter/nodes")
        assert nodes["of"] == 500
        assert nodes["kept"] == len(answer["document"]["filter"]["nodes"]) < 500
        each = structured(await client.call_tool("node_drain_preview", {"each": True}))
        assert len(json.dumps(each)) < 8_000

    run_session(talk, KnownClusters(snapshots=(str(path),)))


@pytest.mark.parametrize("detail", Detail)
def test_a_long_screen_is_cut_to_whole_lines(detail: Detail) -> None:
    long = "a line of a screen\n" * 10_000
    result = _result(tool("event_decode"), CapturedAnswer(exit_code=0, screen=long, errors=long), detail)
    shown = text(result)
    assert shown.startswith("a line of a screen\n")
    assert len(shown) <= BOUNDS[detail].text + 60
    hint = "" if detail is Detail.FULL else "; detail: full shows more"
    assert shown.splitlines()[-1].endswith(f" more lines{hint})")
    assert len(structured(result)["notes"]) <= BOUNDS[detail].notes + 60


def test_a_map_of_numbers_is_cut_like_a_list() -> None:
    built, left_out = bound({"nodes": {f"node-{number}": number for number in range(1_000)}}, 2_000)
    assert size(built) <= 2_000
    assert left_out == (Truncation(path="/nodes", kept=len(built["nodes"]), of=1_000),)


def test_an_answer_has_a_timeout_and_the_next_one_follows() -> None:
    async def talk(client: Client) -> None:
        result = await client.call_tool("pod_explain", POD)
        assert result.is_error
        assert "no answer within 0.001 s" in text(result)

    run_session(talk, limit=0.001)


def test_progress_is_reported() -> None:
    seen: list[str | None] = []

    async def see(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async def talk(client: Client) -> None:
        await client.call_tool("dump_check", {}, progress_callback=see)

    run_session(talk)
    assert (seen[0], seen[-1]) == ("starting", "done")


def slow(_: Sequence[str]) -> int:
    for done in range(3):
        report_progress(Phase.DECIDING, done, 3, "pods")
        time.sleep(1.1)
    return 0


def test_a_long_answer_reports_its_progress() -> None:
    seen: list[ProgressStep] = []
    worker = Worker(slow)
    try:
        assert worker.ask((), 60, seen.append).exit_code == 0
    finally:
        worker.end()
    assert ProgressStep(Phase.DECIDING, 2, 3, "pods") in seen


PROGRAM = "from kschedx.cli import main; raise SystemExit(main())"


def test_over_standard_streams() -> None:
    command = StdioServerParameters(command=sys.executable, args=["-c", PROGRAM, "mcp", "-s", ZONE_FULL], cwd=str(ROOT))

    async def converse() -> None:
        async with Client(command) as client:
            assert "0 of 6 nodes fit" in text(await client.call_tool("pod_explain", POD))

    anyio.run(converse)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_although_it_reads_standard_input(number: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "mcp", "-s", ZONE_FULL],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # whoever runs the tests may ignore it
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write((json.dumps(INITIALIZE) + "\n").encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert not any(tmp_path.iterdir())


def test_over_http_on_the_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, "mcp", "-s", ZONE_FULL, "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process:
        try:
            _wait_for(port, process)
            anyio.run(_ask_over_http, port)
            headers = {"Host": "evil.example", "Content-Type": "application/json"}
            foreign = urllib3.request("POST", f"http://127.0.0.1:{port}/mcp", headers=headers, body=b"{}")
            assert foreign.status == 421
        finally:
            process.terminate()


async def _ask_over_http(port: int) -> None:
    async with Client(f"http://127.0.0.1:{port}/mcp") as client:
        assert "0 of 6 nodes fit" in text(await client.call_tool("pod_explain", POD))


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, process.stderr and process.stderr.read()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server does not listen")


def test_the_clusters_are_listed_and_a_node_table_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / ".hidden").write_text("{}")

    async def one_folder(client: Client) -> None:
        listed = text(await client.call_tool("clusters_list", {}))
        assert listed.splitlines() == [f"snapshot {tmp_path}", "snapshot a.json", "context prod"]

    async def two(client: Client) -> None:
        listed = text(await client.call_tool("clusters_list", {}))
        assert listed.splitlines() == [f"snapshot {snapshot}" for snapshot in CLUSTERS.snapshots]
        nodes = await client.call_tool("nodes_list", {"sort": "free", **FULL})
        assert text(nodes).startswith("✓ 6 nodes, 6 can take a pod")
        assert structured(nodes)["document"]["kind"] == "Nodes"
        refused = await client.call_tool("nodes_list", {"sort": "--watch"})
        assert "sort: found '--watch'" in text(refused)

    run_session(one_folder, KnownClusters(snapshots=(str(tmp_path),), contexts=("prod",)))
    run_session(two)


def test_an_unknown_priority_leaves_the_answer_undecided(tmp_path: Path) -> None:
    machine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}
    metadata, containers = {"name": "p", "namespace": "default"}, [{"name": "c"}]
    waits = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    spec = {"priorityClassName": "gold", "containers": containers}
    items = [machine, {**waits, "spec": spec, "status": {"phase": "Pending"}}]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    async def talk(client: Client) -> None:
        entry = structured(await client.call_tool("pod_explain", {"target": "pod/p", **FULL}))
        every = structured(await client.call_tool("pending_explain", FULL))
        assert (entry["exitCode"], entry["document"]["outcome"], every["exitCode"]) == (3, "Undecided", 3)

    run_session(talk, KnownClusters(snapshots=(str(path),)))
