"""Extenders that answer by the rules of a recorded case without a network, and store their requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kschedx.framework.extenders import ExtenderAnswer, ExtenderFailure, ExtenderRequest, Reply

Json = dict[str, Any]


def key(manifest: Json) -> str:
    return f"{manifest['metadata'].get('namespace') or 'default'}/{manifest['metadata']['name']}"


class Extenders:
    """An `Ask`; README.md has the tables of the rules."""

    def __init__(self, case: Json) -> None:
        self._answers: list[Json] = case["extenderAnswers"]
        self._nodes = {item["metadata"]["name"]: item for item in case["objects"] if item["kind"] == "Node"}
        self._pods = {key(item): item for item in case["objects"] if item["kind"] == "Pod"}
        self._names = {item["metadata"].get("uid"): name for name, item in self._pods.items()}
        self.requests: list[Json] = []

    def __call__(self, requests: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        return tuple(map(self._reply, requests))

    def _reply(self, request: ExtenderRequest) -> Reply:
        body: Json = json.loads(request.body())
        rules = self._answers[request.index] if request.index < len(self._answers) else {}
        request_with_names = self._request_with_names(request, body)
        if not rules.get("down"):
            self.requests.append(request_with_names)
        else:
            return self._failure(request, f"dial tcp {_host(request)}: connect: connection refused")
        rule = rules.get(request.verb.value) or {}
        if rule.get("hang"):
            return self._failure(request, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
        if rule.get("close"):
            return self._failure(request, "EOF")
        if rule.get("status", 200) != 200:
            return ExtenderAnswer(status=rule["status"])
        if "garbage" in rule:
            return ExtenderAnswer(status=200, body=rule["garbage"].encode())
        content = rule["body"] if "body" in rule else getattr(self, f"_{request.verb.value}")(rule, body)
        return ExtenderAnswer(status=200, body=json.dumps(_with_key_case(content, rule)).encode())

    def _failure(self, request: ExtenderRequest, text: str) -> ExtenderFailure:
        return ExtenderFailure(text=f'Post "{request.url}": {text}')

    # --- answers

    def _filter(self, rule: Json, body: Json) -> Json:
        has_nodes = body["Nodes"] is not None
        names = [item["metadata"]["name"] for item in body["Nodes"]["items"]] if has_nodes else body["NodeNames"]
        resolvable, unresolvable = rule.get("drop") or {}, rule.get("dropUnresolvable") or {}
        remaining = [name for name in names if name not in {*resolvable, *unresolvable, *(rule.get("forget") or ())}]
        remaining += rule.get("add") or []
        result: Json = {}
        if (rule.get("field") or ("Nodes" if has_nodes else "NodeNames")) == "NodeNames":
            result["NodeNames"] = remaining
        else:
            result["Nodes"] = {
                "metadata": {},
                "items": [self._nodes[name] for name in remaining if name in self._nodes],
            }
        result["FailedNodes"] = {name: resolvable[name] for name in names if name in resolvable} | (
            rule.get("failAlso") or {}
        )
        result["FailedAndUnresolvableNodes"] = {name: unresolvable[name] for name in names if name in unresolvable}
        return result | ({"Error": rule["error"]} if rule.get("error") else {})

    def _prioritize(self, rule: Json, _: Json) -> list[Json]:
        return [{"Host": host, "Score": score} for host, score in sorted((rule.get("scores") or {}).items())]

    def _preempt(self, rule: Json, body: Json) -> Json:
        sent_nodes = (
            body["NodeNameToVictims"] if body["NodeNameToVictims"] is not None else body["NodeNameToMetaVictims"]
        )
        victims_by_node, targets = rule.get("victims") or {}, {}

        def put(node: str, pods: list[str], violations: int) -> None:
            uids = [
                self._pods[pod]["metadata"].get("uid") if pod in self._pods else f"uid-unknown-{pod}" for pod in pods
            ]
            number = (rule.get("pdb") or {}).get(node, violations)
            targets[node] = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": number}

        for node in sorted(sent_nodes)[: rule.get("first") or None]:
            if rule.get("keep") is None or node in rule["keep"]:
                pods = victims_by_node.get(node, victims_by_node.get("*", self._victims(sent_nodes[node])))
                put(node, pods, sent_nodes[node]["NumPDBViolations"])
        for node, pods in (rule.get("also") or {}).items():
            if node not in sent_nodes:
                put(node, pods, 0)
        return {"NodeNameToMetaVictims": targets}

    # --- requests

    def _victims(self, victims: Json) -> list[str]:
        return [key(pod) if "metadata" in pod else self._names[pod["UID"]] for pod in victims["Pods"]]

    def _request_with_names(self, request: ExtenderRequest, body: Json) -> Json:
        """Return a request with names in place of objects, after a check that the objects are complete."""
        result: Json = {"extender": request.index, "verb": request.verb.value, "pod": key(body["Pod"])}
        self._check(self._pods[result["pod"]], body["Pod"])
        if body.get("NodeNames") is not None:
            result["nodeNames"] = sorted(body["NodeNames"])
        if body.get("Nodes") is not None:
            for node in body["Nodes"]["items"]:
                self._check(self._nodes[node["metadata"]["name"]], node)
            result["nodes"] = sorted(node["metadata"]["name"] for node in body["Nodes"]["items"])
        for field, name in (("NodeNameToVictims", "victims"), ("NodeNameToMetaVictims", "metaVictims")):
            if body.get(field) is not None:
                result[name] = {
                    node: {"pods": sorted(self._victims(victims)), "numPDBViolations": victims["NumPDBViolations"]}
                    for node, victims in body[field].items()
                }
        return result

    def _check(self, manifest: Json, sent: Json) -> None:
        for field in ("labels", "annotations"):
            assert (manifest["metadata"].get(field) or {}).items() <= (sent["metadata"].get(field) or {}).items()
        assert manifest["metadata"].get("uid") == sent["metadata"].get("uid")
        spec = manifest.get("spec") or {}
        assert not {field for field, value in spec.items() if value} - set(sent.get("spec") or {})


def _host(request: ExtenderRequest) -> str:
    return str(request.url).split("/")[2]


def _with_key_case(value: Any, rule: Mapping[str, Any]) -> Any:
    """Return the value with keys in lower camel case if the rule requires it; names of nodes stay."""
    if rule.get("keys") != "lower" or "body" in rule:
        return value
    if isinstance(value, list):
        return [_with_key_case(item, rule) for item in value]
    if isinstance(value, dict):
        lower = {"UID": "uid"} | {name: name[0].lower() + name[1:] for name in _FIELDS}
        return {
            lower.get(name, name): item if name == "Nodes" else _with_key_case(item, rule)
            for name, item in value.items()
        }
    return value


_FIELDS = (
    *("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error", "Host", "Score"),
    *("NodeNameToMetaVictims", "Pods", "NumPDBViolations"),
)
