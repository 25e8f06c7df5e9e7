"""`kschedx why` for many pods: a block for each cause, the largest first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.answer.explanation import Explanation
from kschedx.api.scheduler_plugins import POD_GROUP_LABEL
from kschedx.cli.exit_codes import ExitCode
from kschedx.cli.output import Report
from kschedx.errors import ConfigError, NotAdmittedError, Place, UndecidableError
from kschedx.explain.bound_by_hand import bound_by_hand
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.many import Answer, Group, Taken, cause_of, decisive
from kschedx.framework.cycle import Outcome

if TYPE_CHECKING:
    from kschedx.render.checks import Check
    from kschedx.render.page.model import Page
    from kschedx.simulate.mending import Mended


class Replica(Struct, frozen=True, kw_only=True):
    """One of several pods that are alike."""

    pod: str
    """`namespace/name`."""
    node: str = ""
    """Where it goes; empty where it finds no node."""
    taken: Taken | None = None
    """The place that it would have had alone."""


class Item(Struct, frozen=True, kw_only=True):
    """One of the pods or workloads that were asked for."""

    pod: str
    """`namespace/name`."""
    owner: str
    """What makes it: `Deployment web`."""
    priority: int
    command: str
    """What tells its whole story."""
    explain: Callable[[], Explanation]
    place: Place = Place()
    """Where in a file it is from."""
    node: str = ""
    """Where the pod goes, where that is known without its whole story."""
    taken: Taken | None = None
    """The place that it would have had alone."""
    waits: str = ""
    """kube-scheduler's text about a pod that waits after all of the queue, which may find a node by itself then."""
    workload: str = ""
    """`shop/deploy/web`, of a workload with replicas."""
    replicas: tuple[Replica, ...] = ()
    """Each of them; `explain` tells of the one that says most."""
    like: Hashable = None
    """Equal for pods whose stories are the same, names aside; None for one that is like no other."""


def command_of(namespace: str, owner: str, name: str, files: Sequence[str] = ()) -> str:
    """What tells the whole story of a pod, or without its name, of what makes it."""
    from kschedx.api.workloads import SHORT_NAMES

    kind, _, of = owner.partition(" ")
    short = next((short for short, known in SHORT_NAMES.items() if known == kind), kind.lower())
    target = f"{short}/{of}" if not name or (files and short) else f"pod/{name}"
    return f"kschedx why {target} -n {namespace}" + "".join(f" -f {shlex.quote(file)}" for file in files)


class Asked:
    """The pods that were asked for, explained with the same settings."""

    def __init__(
        self,
        items: Sequence[Item],
        *,
        jobs: int | None = None,
        competing: bool = False,
        notes: Sequence[str] = (),
        nothing: str = "",
        mended: Callable[[Sequence[str]], Mended | None] | None = None,
    ) -> None:
        """`jobs` is how many processes may share the work; by default all that there are. `notes` are about all of
        them; `nothing` is said where there are no pods. `mended` tries a fix for several pods that wait, one after the
        other."""
        self._notes = notes
        self._nothing = nothing
        self._mended = mended
        self._jobs = jobs
        self._items = items
        self._competing = competing
        """They are new, and would take room from each other."""

    def look(self, index: int) -> tuple[Answer, Explanation | None]:
        """One pod in short, and its whole story; what cannot be decided is an answer too, and so is
        what the API server refuses."""
        from kschedx.render.many import wanted_labels
        from kschedx.render.unheard import could_reject
        from kschedx.render.words import headline
        from kschedx.render.words.notes.cycle import by_hand

        item = self._items[index]
        undecided = self._undecided(item)
        try:
            found = item.explain()
        except UndecidableError as error:
            return replace(undecided, message=str(error)), None
        except ConfigError as error:
            # Whose pod it is, is told beside it: alike for all pods of one scheduler.
            told = type(error)(error.message, place=Place(field=error.place.field), hint=error.hint)
            return replace(undecided, message=str(told)), None
        except NotAdmittedError as error:
            said = f"{error.message} ({error.hint})" if error.hint else error.message
            return replace(undecided, outcome=Outcome.UNSCHEDULABLE, message=said), None
        if (bound := bound_by_hand(found.cycle)) is not None:
            nodes = (bound.node,) if bound.is_taken else ()
            return replace(undecided, outcome=found.becomes, nodes=nodes, message=by_hand(bound)), found
        if found.outcome is Outcome.SCHEDULED and (found.overall is not Outcome.SCHEDULED or item.waits):
            return self._of_gang(item, found), found
        match found.outcome:
            case Outcome.GATED:
                message = ""
            case Outcome.UNDECIDED:
                message = could_reject(found.cycle.unheard)
            case _:
                message = found.message
        answer = replace(undecided, outcome=found.outcome, nodes=found.chosen_nodes, message=message)
        if found.outcome in (Outcome.UNSCHEDULABLE, Outcome.GATED):
            diagnosis = Diagnosis(found.cycle)
            reasons = decisive(diagnosis)
            headlines = tuple(dict.fromkeys(map(headline, reasons)))
            answer = replace(answer, cause=cause_of(diagnosis), headlines=headlines, wants=wanted_labels(reasons[:1]))
        return answer, found

    def _of_gang(self, item: Item, found: Explanation) -> Answer:
        """One that finds a node by itself, and gets none since its group does not."""
        from kschedx.render.holding import of_a_group

        group = found.holding.group
        named = group.name if group is not None else found.cycle.pod.metadata.labels.get(POD_GROUP_LABEL, "")
        headline = f"fits by itself, and gets no node with its group {named}"
        if group is not None and group.lacks_room:
            headline = of_a_group(group)
        message = item.waits or (found.message if group is None else group.message)
        undecided = replace(self._undecided(item), outcome=Outcome.UNSCHEDULABLE, taken=None, message=message)
        return replace(undecided, cause=("group", named), headlines=(headline,))

    def answer(self, index: int) -> tuple[Answer, ...]:
        """Of one item, for each of its pods."""
        item = self._items[index]
        if item.node or (item.replicas and all(one.node for one in item.replicas)):
            return self._each(item, replace(self._undecided(item), outcome=Outcome.SCHEDULED, nodes=(item.node,)))
        return self._each(item, self.look(index)[0])

    def _each(self, item: Item, story: Answer) -> tuple[Answer, ...]:
        """The story is that of every replica without a node."""
        if not item.replicas:
            return (story,)
        placed = replace(self._undecided(item), outcome=Outcome.SCHEDULED, taken=None)
        return tuple(
            replace(placed, pod=one.pod, nodes=(one.node,))
            if one.node
            else replace(story, pod=one.pod, taken=one.taken)
            for one in item.replicas
        )

    def _undecided(self, item: Item) -> Answer:
        return Answer(
            pod=item.pod,
            owner=item.owner,
            priority=item.priority,
            outcome=None,
            command=item.command,
            taken=item.taken,
        )

    @property
    def answers(self) -> list[Answer]:
        """Of every pod, in their order."""
        return [answer for answers in self._answers for answer in answers]

    @cached_property
    def _answers(self) -> list[tuple[Answer, ...]]:
        """In the order of the items, shared between processes where there are many."""
        from kschedx.cli.parallel import Progress, processors, results

        if not self._items:
            return []
        likes = [index if item.like is None else (item.like,) for index, item in enumerate(self._items)]
        first = {like: index for index, like in reversed([*enumerate(likes)])}
        asked = sorted(first.values())
        progress = Progress(len(self._items), "pods")
        found = {0: self.answer(0)}  # what all pods share is worked out once, before processes are forked
        pods = Counter(likes)
        try:
            for index, one in zip(asked[1:], results(self.answer, asked[1:], self._jobs or processors()), strict=True):
                progress.advance(pods[likes[index]])
                found[index] = one
        finally:
            progress.end()
        return [
            found[index] if index in found else (_alike(item, found[first[like]][0]),)
            for index, (item, like) in enumerate(zip(self._items, likes, strict=True))
        ]

    def document(self) -> dict[str, object]:
        return {key: [*value] if isinstance(value, Iterator) else value for key, value in self.entries()}

    def entries(self) -> Iterator[tuple[str, object]]:
        """Every Explanation as one document, with the pods that cannot be decided or that the API server refuses; each
        is made when it is asked for."""
        undecided: list[object] = []
        refused: list[object] = []
        answers: list[tuple[Answer, ...]] = []

        def items() -> Iterator[object]:
            for index, item in enumerate(self._items):
                answer, found = self.look(index)
                answers.append(self._each(item, answer))
                if found is not None:
                    yield found.to_dict()
                else:
                    told = undecided if answer.outcome is None else refused
                    told.append({"pod": answer.pod, "reason": answer.message})

        yield "apiVersion", "kschedx/v1"
        yield "kind", "ExplanationList"
        yield "items", items()
        self._answers = answers
        yield "undecided", undecided
        if refused:
            yield "refused", refused

    def fix_of(self, group: Group) -> str:
        """A fix of the first pod of a group, with its certainty and for how many it does; empty where none is known."""
        if group.first.outcome not in (Outcome.UNSCHEDULABLE, Outcome.GATED):
            return ""
        if self._mended is not None and len(group.answers) > 1 and group.first.outcome is Outcome.UNSCHEDULABLE:
            from kschedx.render.fixes import mended_text

            mended = self._mended([answer.pod for answer in group.answers])
            if mended is not None:
                return mended_text(mended)
        index = next(index for index, answers in enumerate(self._answers) if group.first in answers)
        _, found = self.look(index)
        fixes = found.fixes if found is not None else ()
        for_whom = " for one of them" if len(group.answers) > 1 else ""
        return f"{fixes[0].title} ({fixes[0].certainty.value}{for_whom})" if fixes else ""

    def report(self) -> Report:
        def screen(wide: bool) -> None:
            from kschedx.render.many import print_many

            print_many(
                self.answers,
                self.fix_of,
                wide=wide,
                competing=self._competing,
                notes=self._notes,
                nothing=self._nothing,
            )

        def names() -> list[str]:
            return [
                f"{answer.pod} {' '.join(f'node/{name}' for name in answer.nodes)}".rstrip() for answer in self.answers
            ]

        def checks() -> list[Check]:
            from kschedx.cli.checks import of_answers

            pairs = zip(self._answers, self._items, strict=True)
            return [of_answers(answers, item.workload, item.place) for answers, item in pairs]

        def page(_: bool) -> Page:
            from kschedx.render.page.many import page_of

            return page_of(self.answers, self.fix_of, self._notes)

        return Report(
            screen=screen, document=self.document, entries=self.entries, names=names, checks=checks, page=page
        )

    @property
    def exit_code(self) -> ExitCode:
        """0 where every pod can be scheduled, 3 where one cannot be decided, else 1."""
        if any(answer.outcome in (None, Outcome.UNDECIDED) for answer in self.answers):
            return ExitCode.UNDECIDED
        fits = all(answer.outcome is Outcome.SCHEDULED for answer in self.answers)
        return ExitCode.SCHEDULABLE if fits else ExitCode.UNSCHEDULABLE


def _alike(item: Item, story: Answer) -> Answer:
    """The story of a pod that is like this one, as this one's."""
    return replace(story, pod=item.pod, owner=item.owner, priority=item.priority, command=item.command)
