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
        self._nodes = {item["metadata"]["name"]: item for item in case["objects"] if item["kind"] == "Node"}
        self._pods = {key(item): item for item in case["objects"] if item["kind"] == "Pod"}
        self._names = {item["metadata"].get("uid"): name for name, item in self._pods.items()}
        self.requests: list[Json] = []

    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        return tuple(map(self._reply, questions))

    def _reply(self, question: ExtenderRequest) -> Reply:
        questions: Json = json.loads(question.body())
        rules = self._answers[question.index] if question.index < len(self._answers) else {}
        named = self._named(question, questions)
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
        built = rule["body"] if "body" in rule else getattr(self, f"_{question.verb.value}")(rule, questions)
        return ExtenderAnswer(status=200, body=json.dumps(_cased(built, rule)).encode())

    def _failure(self, question: ExtenderRequest, words: str) -> ExtenderFailure:
        return ExtenderFailure(text=f'Post "{question.url}": {words}')

    # --- answers

    def _filter(self, rule: Json, question: Json) -> Json:
        whole = question["Nodes"] is not None
        names = [item["metadata"]["name"] for item in question["Nodes"]["items"]] if whole else question["NodeNames"]
        drop, never = rule.get("drop") or {}, rule.get("dropUnresolvable") or {}
        left = [name for name in names if name not in {*drop, *never, *(rule.get("forget") or ())}]
        left += rule.get("add") or []
        created: Json = {}
        if (rule.get("field") or ("Nodes" if whole else "NodeNames")) == "NodeNames":
            created["NodeNames"] = left
        else:
            created["Nodes"] = {"metadata": {}, "items": [self._nodes[name] for name in left if name in self._nodes]}
        created["FailedNodes"] = {name: drop[name] for name in names if name in drop} | (rule.get("failAlso") or {})
        created["FailedAndUnresolvableNodes"] = {name: never[name] for name in names if name in never}
        return created | ({"Error": rule["error"]} if rule.get("error") else {})

    def _prioritize(self, rule: Json, _: Json) -> list[Json]:
        return [{"Host": host, "Score": score} for host, score in sorted((rule.get("scores") or {}).items())]

    def _preempt(self, rule: Json, question: Json) -> Json:
        sent = (
            question["NodeNameToVictims"]
            if question["NodeNameToVictims"] is not None
            else question["NodeNameToMetaVictims"]
        )
        changed, built = rule.get("victims") or {}, {}

        def put(node: str, pods: list[str], violations: int) -> None:
            uids = [
                self._pods[pod]["metadata"].get("uid") if pod in self._pods else f"uid-unknown-{pod}" for pod in pods
            ]
            number = (rule.get("pdb") or {}).get(node, violations)
            built[node] = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": number}

        for node in sorted(sent)[: rule.get("first") or None]:
            if rule.get("keep") is None or node in rule["keep"]:
                pods = changed.get(node, changed.get("*", self._victims(sent[node])))
                put(node, pods, sent[node]["NumPDBViolations"])
        for node, pods in (rule.get("also") or {}).items():
            if node not in sent:
                put(node, pods, 0)
        return {"NodeNameToMetaVictims": built}

    # --- what was asked

    def _victims(self, victims: Json) -> list[str]:
        return [key(pod) if "metadata" in pod else self._names[pod["UID"]] for pod in victims["Pods"]]

    def _named(self, question: ExtenderRequest, question_result: Json) -> Json:
        """A request with names in place of objects, which must be whole."""
        created: Json = {"extender": question.index, "verb": question.verb.value, "pod": key(question_result["Pod"])}
        self._check(self._pods[created["pod"]], question_result["Pod"])
        if question_result.get("NodeNames") is not None:
            created["nodeNames"] = sorted(question_result["NodeNames"])
        if question_result.get("Nodes") is not None:
            for node in question_result["Nodes"]["items"]:
                self._check(self._nodes[node["metadata"]["name"]], node)
            created["nodes"] = sorted(node["metadata"]["name"] for node in question_result["Nodes"]["items"])
        for field, text in (("NodeNameToVictims", "victims"), ("NodeNameToMetaVictims", "metaVictims")):
            if question_result.get(field) is not None:
                created[text] = {
                    node: {"pods": sorted(self._victims(victims)), "numPDBViolations": victims["NumPDBViolations"]}
                    for node, victims in question_result[field].items()
                }
        return created

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
        return [_cased(item, rule) for item in value]
    if isinstance(value, dict):
        lower = {"UID": "uid"} | {name: name[0].lower() + name[1:] for name in _FIELDS}
        return {lower.get(name, name): item if name == "Nodes" else _cased(item, rule) for name, item in value.items()}
    return value


_FIELDS = (
    *("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error", "Host", "Score"),
    *("NodeNameToMetaVictims", "Pods", "NumPDBViolations"),
)
