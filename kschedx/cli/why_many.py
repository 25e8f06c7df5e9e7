"""`kschedx why` for many pods: a row for each reason, in the order of the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from kschedx.answer.explanation import Explanation
from kschedx.api.types import Pod
from kschedx.cli.exit_codes import ExitCode
from kschedx.cli.output import Report
from kschedx.errors import ConfigError, UndecidableError
from kschedx.explain.many import Answer
from kschedx.framework.cycle import Outcome
from kschedx.snapshot.snapshot import Snapshot


class Asked:
    """The pods that were asked for, explained with the same settings."""

    def __init__(self, snapshot: Snapshot, rows: Sequence[int], explain: Callable[[Pod], Explanation]) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self._explain = explain

    def look(self, row: int) -> tuple[Answer, Explanation | None]:
        """One pod in short, and its whole story; what cannot be decided is an answer too."""
        from kschedx.render.unheard import could_reject

        pods = self.snapshot.pods
        key, priority = pods.key(row), int(pods.priorities[row])
        try:
            found = self._explain(pods[row])
        except (UndecidableError, ConfigError) as error:
            return Answer(pod=key, priority=priority, outcome=None, message=str(error)), None
        match found.outcome:
            case Outcome.GATED:
                message = ""
            case Outcome.UNDECIDED:
                message = could_reject(found.cycle.unheard)
            case _:
                message = found.message
        answer = Answer(pod=key, priority=priority, outcome=found.outcome, nodes=found.chosen_nodes, message=message)
        return answer, found

    def answer(self, row: int) -> Answer:
        return self.look(row)[0]

    @cached_property
    def answers(self) -> list[Answer]:
        """In the order of the rows, shared between processes where there are many."""
        from kschedx.cli.parallel import processors, results

        if not self.rows:
            return []
        first = self.answer(self.rows[0])  # what all pods share is worked out once, before processes are forked
        return [first, *results(self.answer, list(self.rows[1:]), processors())]

    def document(self) -> dict[str, object]:
        """Every Explanation as one document, with the pods that cannot be decided."""
        answers: list[Answer] = []
        items: list[object] = []
        undecided: list[object] = []
        for answer, found in map(self.look, self.rows):
            answers.append(answer)
            if found is None:
                undecided.append({"pod": answer.pod, "reason": answer.message})
            else:
                items.append(found.to_dict())
        self.answers = answers
        return {"apiVersion": "kschedx/v1", "kind": "ExplanationList", "items": items, "undecided": undecided}

    def report(self) -> Report:
        def screen(wide: bool) -> None:
            from kschedx.render.many import print_many

            print_many(self.answers, wide=wide)

        def names() -> list[str]:
            return [
                f"{answer.pod} {' '.join(f'node/{name}' for name in answer.nodes)}".rstrip() for answer in self.answers
            ]

        return Report(screen=screen, document=self.document, names=names)

    @property
    def exit_code(self) -> ExitCode:
        """0 where every pod can be scheduled, 3 where one cannot be decided, else 1."""
        if any(answer.outcome in (None, Outcome.UNDECIDED) for answer in self.answers):
            return ExitCode.UNDECIDED
        fits = all(answer.outcome is Outcome.SCHEDULED for answer in self.answers)
        return ExitCode.SCHEDULABLE if fits else ExitCode.UNSCHEDULABLE
