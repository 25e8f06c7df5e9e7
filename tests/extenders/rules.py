"""Extenders that answer by the rules of a recorded case, without a network, and remember what they were asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kschedx.framework.extenders import ExtenderAnswer, ExtenderFailure, ExtenderRequest, Reply

Json = dict[str, Any]


def key(manifest: Json) -> str:
    return f"{manifest['metadata'].get('namespace') or 'default'}/{manifest['metadata']['name']}"


class Extenders:
    """An `Ask`; the tables of what a rule says are in README.md."""

    def __init__(self, case: Json) -> None:
        self._answers: list[Json] = case["extenderAnswers"]
        self._nodes = {one["metadata"]["name"]: one for one in case["objects"] if one["kind"] == "Node"}
        self._pods = {key(one): one for one in case["objects"] if one["kind"] == "Pod"}
        self._names = {one["metadata"].get("uid"): name for name, one in self._pods.items()}
        self.requests: list[Json] = []

    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        return tuple(map(self._one, questions))

    def _one(self, question: ExtenderRequest) -> Reply:
        asked: Json = json.loads(question.body())
        rules = self._answers[question.index] if question.index < len(self._answers) else {}
        named = self._named(question, asked)
        if not rules.get("down"):
            self.requests.append(named)
        else:
            return self._failure(question, f"dial tcp {_host(question)}: connect: connection refused")
        rule = rules.get(question.verb.value) or {}
        if rule.get("hang"):
            return self._failure(question, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
        if rule.get("close"):
            return self._failure(question, "EOF")
        if rule.get("status", 200) != 200:
            return ExtenderAnswer(status=rule["status"])
        if "garbage" in rule:
            return ExtenderAnswer(status=200, body=rule["garbage"].encode())
        made = rule["body"] if "body" in rule else getattr(self, f"_{question.verb.value}")(rule, asked)
        return ExtenderAnswer(status=200, body=json.dumps(_cased(made, rule)).encode())

    def _failure(self, question: ExtenderRequest, words: str) -> ExtenderFailure:
        return ExtenderFailure(text=f'Post "{question.url}": {words}')

    # --- answers

    def _filter(self, rule: Json, asked: Json) -> Json:
        whole = asked["Nodes"] is not None
        names = [one["metadata"]["name"] for one in asked["Nodes"]["items"]] if whole else asked["NodeNames"]
        drop, never = rule.get("drop") or {}, rule.get("dropUnresolvable") or {}
        left = [name for name in names if name not in {*drop, *never, *(rule.get("forget") or ())}]
        left += rule.get("add") or []
        made: Json = {}
        if (rule.get("field") or ("Nodes" if whole else "NodeNames")) == "NodeNames":
            made["NodeNames"] = left
        else:
            made["Nodes"] = {"metadata": {}, "items": [self._nodes[name] for name in left if name in self._nodes]}
        made["FailedNodes"] = {name: drop[name] for name in names if name in drop} | (rule.get("failAlso") or {})
        made["FailedAndUnresolvableNodes"] = {name: never[name] for name in names if name in never}
        return made | ({"Error": rule["error"]} if rule.get("error") else {})

    def _prioritize(self, rule: Json, _: Json) -> list[Json]:
        return [{"Host": host, "Score": score} for host, score in sorted((rule.get("scores") or {}).items())]

    def _preempt(self, rule: Json, asked: Json) -> Json:
        sent = asked["NodeNameToVictims"] if asked["NodeNameToVictims"] is not None else asked["NodeNameToMetaVictims"]
        changed, made = rule.get("victims") or {}, {}

        def put(node: str, pods: list[str], violations: int) -> None:
            uids = [
                self._pods[pod]["metadata"].get("uid") if pod in self._pods else f"uid-unknown-{pod}" for pod in pods
            ]
            number = (rule.get("pdb") or {}).get(node, violations)
            made[node] = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": number}

        for node in sorted(sent)[: rule.get("first") or None]:
            if rule.get("keep") is None or node in rule["keep"]:
                pods = changed.get(node, changed.get("*", self._victims(sent[node])))
                put(node, pods, sent[node]["NumPDBViolations"])
        for node, pods in (rule.get("also") or {}).items():
            if node not in sent:
                put(node, pods, 0)
        return {"NodeNameToMetaVictims": made}

    # --- what was asked

    def _victims(self, victims: Json) -> list[str]:
        return [key(one) if "metadata" in one else self._names[one["UID"]] for one in victims["Pods"]]

    def _named(self, question: ExtenderRequest, asked: Json) -> Json:
        """A request with names in place of objects, which must be whole."""
        made: Json = {"extender": question.index, "verb": question.verb.value, "pod": key(asked["Pod"])}
        self._check(self._pods[made["pod"]], asked["Pod"])
        if asked.get("NodeNames") is not None:
            made["nodeNames"] = sorted(asked["NodeNames"])
        if asked.get("Nodes") is not None:
            for node in asked["Nodes"]["items"]:
                self._check(self._nodes[node["metadata"]["name"]], node)
            made["nodes"] = sorted(node["metadata"]["name"] for node in asked["Nodes"]["items"])
        for field, told in (("NodeNameToVictims", "victims"), ("NodeNameToMetaVictims", "metaVictims")):
            if asked.get(field) is not None:
                made[told] = {
                    node: {"pods": sorted(self._victims(victims)), "numPDBViolations": victims["NumPDBViolations"]}
                    for node, victims in asked[field].items()
                }
        return made

    def _check(self, manifest: Json, sent: Json) -> None:
        for part in ("labels", "annotations"):
            assert (manifest["metadata"].get(part) or {}).items() <= (sent["metadata"].get(part) or {}).items()
        assert manifest["metadata"].get("uid") == sent["metadata"].get("uid")
        spec = manifest.get("spec") or {}
        assert not {field for field, value in spec.items() if value} - set(sent.get("spec") or {})


def _host(question: ExtenderRequest) -> str:
    return str(question.url).split("/")[2]


def _cased(value: Any, rule: Mapping[str, Any]) -> Any:
    """With keys that start with a small letter, where the rule says so; names of nodes stay."""
    if rule.get("keys") != "lower" or "body" in rule:
        return value
    if isinstance(value, list):
        return [_cased(one, rule) for one in value]
    if isinstance(value, dict):
        lower = {"UID": "uid"} | {name: name[0].lower() + name[1:] for name in _FIELDS}
        return {lower.get(name, name): one if name == "Nodes" else _cased(one, rule) for name, one in value.items()}
    return value


_FIELDS = (
    *("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error", "Host", "Score"),
    *("NodeNameToMetaVictims", "Pods", "NumPDBViolations"),
)
