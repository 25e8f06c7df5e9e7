"""`kschedx why` for many pods: a row for each reason, in the order of the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kschedx.cli.exit_codes import ExitCode
from kschedx.explain.explanation import Explanation
from kschedx.explain.many import Answer
from kschedx.explain.run import explain_pod
from kschedx.framework.cycle import Outcome
from kschedx.snapshot.snapshot import Snapshot


class Asked:
    """The pods that were asked for, explained with the same settings."""

    def __init__(
        self,
        snapshot: Snapshot,
        rows: Sequence[int],
        *,
        config: Mapping[str, object] | None,
        profile: str | None,
        kube_version: str | None,
        feature_gates: Mapping[str, bool],
    ) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self._settings = {
            "config": config,
            "profile": profile,
            "kube_version": kube_version,
            "feature_gates": feature_gates,
        }

    def explanation(self, row: int) -> Explanation:
        """One pod's whole story. Raises `UndecidableError`."""
        return explain_pod(self.snapshot, self.snapshot.pods[row], **self._settings)  # type: ignore[arg-type]

    def answer(self, row: int) -> Answer:
        """The same in short; what cannot be decided is an answer too."""
        from kschedx.errors import ConfigError, UndecidableError

        pods = self.snapshot.pods
        key, priority = pods.key(row), int(pods.priorities[row])
        try:
            found = self.explanation(row)
        except (UndecidableError, ConfigError) as error:
            return Answer(pod=key, priority=priority, outcome=None, message=str(error))
        gated = found.outcome is Outcome.GATED
        message = "" if gated else found.message
        return Answer(pod=key, priority=priority, outcome=found.outcome, nodes=found.chosen_nodes, message=message)

    def answers(self) -> list[Answer]:
        """In the order of the rows, shared between processes where there are many."""
        from kschedx.cli.parallel import processors, results

        if self.rows:
            self.answer(self.rows[0])  # what all pods share is worked out once, before processes are forked
        return list(results(self.answer, list(self.rows), processors()))


def exit_code(answers: Sequence[Answer]) -> ExitCode:
    """0 where every pod can be scheduled, 3 where one cannot be decided, else 1."""
    if any(answer.outcome is None for answer in answers):
        return ExitCode.UNDECIDED
    fits = all(answer.outcome is Outcome.SCHEDULED for answer in answers)
    return ExitCode.SCHEDULABLE if fits else ExitCode.UNSCHEDULABLE


def documents(asked: Asked) -> dict[str, object]:
    """Every Explanation, as one document."""
    items = [asked.explanation(row).to_dict() for row in asked.rows]
    return {"apiVersion": "kschedx/v1", "kind": "ExplanationList", "items": items}
