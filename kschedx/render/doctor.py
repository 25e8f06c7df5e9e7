"""The view, screen, and page of `kschedx doctor`: its findings in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, assert_never, cast

from msgspec import Struct
from msgspec.structs import replace

from kschedx.doctor import findings as gaps
from kschedx.doctor.diagnosis import Completion, DumpDiagnosis, Inventory, Way
from kschedx.errors import InputError, Place
from kschedx.kube.escaping import shell_command
from kschedx.render.fixes import shell_rows
from kschedx.render.layout import head_lines
from kschedx.render.page.model import SCREEN_WIDTH, Page, page_of
from kschedx.render.terminal import BLANK, BOLD, DIM, StyledLine, fact_block, fact_lines, line, paragraph
from kschedx.render.view import FixView, ItemList, TableView, Tone, View, ViewItem
from kschedx.wording import Fact, count, list_facts, list_names, with_article

_NAMES = 3
_LONGEST_PATH = 40  # the longest path. Only the end of a longer one is shown


_T = TypeVar("_T")


def _with_short_paths(value: _T) -> _T:
    """Return the same value with shorter paths in its places."""
    match value:
        case Place(source=source):
            return cast(_T, replace(value, source=_short(source)))
        case tuple():
            return cast(_T, tuple(map(_with_short_paths, value)))
        case Struct():
            fields = {name: _with_short_paths(getattr(value, name)) for name in value.__struct_fields__}
            return cast(_T, replace(value, **fields))
    return value


def _short(path: str) -> str:
    *parents, name = path.split("/")
    ends = (path, "/".join(("…", *parents[-1:], name)), f"…/{name}")
    return next((end for end in ends if len(end) <= _LONGEST_PATH), ends[-1])


def _certainty_text(certainty: gaps.Certainty) -> str:
    """Return the text that follows a headline."""
    return "" if certainty is gaps.Certainty.CERTAIN else f" ({certainty})"


def _reaction_fact(how: gaps.Reaction) -> Fact:
    """Return how `kschedx why` treats it."""
    return Fact.of("note", f"`kschedx why` {_REACTIONS[how]}")


_REACTIONS = {
    gaps.Reaction.REFUSES: "refuses the dump",
    gaps.Reaction.SHOWS: "warns in affected answers",
    gaps.Reaction.SILENT: "does not warn about this",
}


def _weakens(finding: gaps.Finding) -> tuple[Fact, ...]:
    lines = [f"{', '.join(it.plugins)}: {it.effect}" if it.plugins else it.effect for it in finding.weakens]
    facts = (*list_facts("affects", lines), _reaction_fact(finding.reaction), *_repair_facts(finding))
    return facts if finding.counts else ()


def _repair_facts(finding: gaps.Finding) -> Iterator[Fact]:
    """Yield how to make `kschedx why` read the dump; nothing if the dump has to be taken again."""
    match finding:
        case gaps.Unreadable():
            text = "repair the file, or omit it"
        case gaps.Copies(pairs=1, first=first, second=second) if first.source != second.source:
            text = "use only one of the two files"
        case gaps.Copies():
            text = "omit one of each pair"
        case gaps.Orphans(reaction=gaps.Reaction.REFUSES):
            text = "ignore them with --ignore-orphans"
        case _:
            return
    yield Fact.of("fix", text)


def _headline_and_facts(finding: gaps.Finding) -> tuple[str, tuple[Fact, ...]]:
    if isinstance(finding, gaps.Mixture):
        return _mixture_facts(finding)
    if isinstance(finding, gaps.Absence):
        return _absent(finding)
    match finding:
        case gaps.Unreadable(problems=problems):
            number = count(finding.number, "object")
            rest = finding.number - len(problems)
            texts = [str(InputError(each.message, place=each.place, hint=each.hint)) for each in problems]
            texts += [f"{rest:,} more"] if rest else []
            return f"{number} cannot be read", tuple(list_facts("at", texts))
        case gaps.Secrets():
            where = list_names(finding.files, _NAMES)
            number = count(finding.secrets, "Secret")
            return f"{number} in {where}: remove them before you share the dump; kschedx does not read them", ()
        case _:
            assert_never(finding)


def _mixture_facts(mixture: gaps.Mixture) -> tuple[str, tuple[Fact, ...]]:
    match mixture:
        case gaps.TwoClusters():
            return "objects of two clusters: namespace kube-system has two uids", (
                Fact.of("one", f"{mixture.first_uid} in {_file(mixture.first)}"),
                Fact.of("other", f"{mixture.second_uid} in {_file(mixture.second)}"),
            )
        case gaps.Copies():
            return _copies(mixture)
        case gaps.OtherOwner():
            number = count(mixture.objects, "object is", "objects are")
            return f"{number} owned by another object of the same name", (
                Fact.of("example", f"{mixture.example} ({mixture.place})"),
                Fact.of("owner", f"{mixture.owner}, uid {mixture.named_uid}"),
                Fact.of("there", f"uid {mixture.found_uid} ({mixture.owner_place})"),
            )
        case gaps.Clouds():
            clouds = [f"{number:,} of {cloud}" for cloud, number in mixture.nodes.items()]
            examples = tuple(f"{mixture.examples[cloud]} in {mixture.places[cloud]}" for cloud in mixture.nodes)
            return f"nodes of {len(clouds)} clouds: {list_names(clouds, _NAMES)}", (Fact.of("such as", *examples),)
        case gaps.Skew():
            return _skew(mixture)
        case gaps.NodesOfTwoTimes():
            return (
                f"nodes recorded at two times: {count(mixture.older, 'ready node')} last seen earlier",
                (
                    Fact.of("newest", f"{mixture.newest} {mixture.newest_node} ({mixture.newest_place})"),
                    Fact.of("oldest", f"{mixture.oldest} {mixture.oldest_node} ({mixture.oldest_place})"),
                ),
            )
        case gaps.PodsAfterNodes():
            return "the pods are newer than the nodes", (
                Fact.of("pod", f"{mixture.pod_time} {mixture.pod} ({mixture.pod_place})"),
                Fact.of("node", f"{mixture.node_time} {mixture.node} ({mixture.node_place})"),
            )
        case gaps.YoungNodes():
            pods = count(mixture.pods, "pod")
            return f"{pods} started before the {'node' if mixture.nodes == 1 else 'nodes'} under them", (
                Fact.of("pod", f"{mixture.started} {mixture.pod}"),
                Fact.of("node", f"{mixture.created} {mixture.node} was created"),
            )
        case gaps.TakenTwice():
            return "snapshots of two times", (
                Fact.of("one", f"{mixture.first} {mixture.first_source}"),
                Fact.of("other", f"{mixture.second} {mixture.second_source}"),
            )
        case _:
            assert_never(mixture)


def _absent(absence: gaps.Absence) -> tuple[str, tuple[Fact, ...]]:
    match absence:
        case gaps.IncompleteDump():
            return _incomplete_dump_facts(absence)
        case gaps.MissingKind():
            return f"{absence.kind}: {_missing_kind_text(absence)}", ()
        case gaps.PerhapsNone():
            return f"none exist, or none were saved: {', '.join(absence.kinds)}", ()
        case gaps.NamespacesOnly():
            return (
                f"a snapshot of {list_names(absence.namespaces, _NAMES)} only: pods of other namespaces are missing",
                (),
            )
        case gaps.PodsOfNamespaces():
            return _pods_of_namespaces(absence)
        case gaps.Cut():
            kinds = [f"{number:,} {kind}, {absence.there[kind]:,} now" for kind, number in absence.kinds.items()]
            return "the snapshot was truncated or edited after it was taken", (Fact.of("held", *kinds),)
        case gaps.Orphans():
            where = "a missing node" if absence.total == 1 else f"{absence.total:,} missing nodes"
            rest = absence.total - len(absence.nodes)
            items = [*map(_unknown_node, absence.nodes), *([(f"{count(rest, 'more node')}",)] if rest else [])]
            return f"{count(absence.pods, 'pod is', 'pods are')} on {where}", tuple(
                Fact.of("" if position else "node", *item) for position, item in enumerate(items)
            )
        case gaps.WorkloadPods():
            missing = count(absence.pods, "pod is", "pods are")
            return f"{missing} missing: workloads report {absence.of:,}", (Fact.of("of", *absence.workloads),)
        case gaps.EmptyNodes():
            verb = "runs" if absence.empty == 1 else "run"
            number = f"{absence.empty:,} of {count(absence.total, 'node')} {verb} no pod, not even a DaemonSet's"
            return number, (Fact.of("nodes", list_names(absence.nodes, _NAMES, absence.empty)),)
        case gaps.NoStatus():
            number = count(absence.pods, "pod on a node has", "pods on nodes have")
            return f"{number} no status", (Fact.of("pods", list_names(absence.examples, _NAMES, absence.pods)),)
        case gaps.NoAutoscalerStatus():
            namespace, _, name = absence.config_map.partition("/")
            phrase = shell_command("kubectl get configmap {} -n {} -o yaml", name, namespace)
            return "cluster-autoscaler's status is missing", (
                Fact.of("runs as", absence.pod),
                Fact.of("add", phrase, whole=True),
            )
        case gaps.NoNodePools():
            nodes_text = count(absence.nodes, "node was", "nodes were")
            return f"{nodes_text} created by Karpenter, but its NodePools are missing", (
                Fact.of("node", absence.example),
                Fact.of("add", "kubectl get nodepools,nodeclaims -o yaml", whole=True),
            )
        case gaps.AutoscalerFlags():
            return "cluster-autoscaler's Deployment is missing: kschedx assumes default flags", ()
        case _:
            assert_never(absence)


def _incomplete_dump_facts(lacking: gaps.IncompleteDump) -> tuple[str, tuple[Fact, ...]]:
    first = lacking.what[0] if lacking.what else f"anything of {count(len(lacking.kinds), 'kind')}"
    every = tuple(f"every {kind}" if number == 0 else kind for number, kind in enumerate(lacking.kinds))
    lacks = (Fact.of("lacks", *lacking.what[1:], *every),) if lacking.what[1:] or every else ()
    return f"{with_article(lacking.format)} does not hold {first}", (*lacks, Fact.of("in", lacking.place))


def _missing_kind_text(kind: gaps.MissingKind) -> str:
    if kind.is_forbidden:
        return "listing is forbidden"
    if not kind.missing:
        return f"none, but there are {kind.named_by}" if kind.named_by else "none"
    if not kind.present:
        return f"none, but {kind.named_by} name {kind.missing:,}"
    names = list_names(kind.names, 1, kind.missing)
    return f"{kind.present:,} present; missing but named by {kind.named_by}: {names}"


def _copies(copies: gaps.Copies) -> tuple[str, tuple[Fact, ...]]:
    kinds = list_names([f"{number:,} {kind}" for kind, number in copies.kinds.items()], _NAMES)
    first, second = _file(copies.first), _file(copies.second)
    if copies.pairs > 1:
        files = f"each in two of many files ({count(copies.pairs, 'pair')})"
    else:
        files = f"twice in {first}" if first == second else f"in {first} and {second}"
    where = Fact.of("example", copies.example, f"{copies.first} and {copies.second}")
    match copies.difference:
        case gaps.ObjectDifference.NONE:
            return f"{kinds} {files}, identical", (where,)
        case gaps.ObjectDifference.UNKNOWN:
            return f"{kinds} {files}", (where,)
        case gaps.ObjectDifference.STATE:
            versions = f"resourceVersion {copies.first_value} and {copies.second_value}"
            return f"{kinds} {files}, at two times", (where, Fact.of("differs", versions))
        case gaps.ObjectDifference.OBJECT:
            uids = f"uid {copies.first_value} and {copies.second_value}"
            return f"{kinds} {files}, with the same names but different uids", (where, Fact.of("differs", uids))
        case _:
            assert_never(copies.difference)


def _skew(skew: gaps.Skew) -> tuple[str, tuple[Fact, ...]]:
    newest = f"{skew.newest} on {skew.newest_node}"
    oldest = f"{skew.oldest} on {skew.oldest_node}"
    rule = f"a kubelet may be at most {skew.allowed} minor versions older than its API server, and never newer"
    compared = (f"API server {skew.server}",) if skew.server else ()
    return "unsupported version skew", (Fact.of("kubelets", *compared, newest, oldest), Fact.of("rule", rule))


def _unknown_node(node: gaps.UnknownNode) -> tuple[str, ...]:
    text = f"{node.name}: {count(node.pods, 'pod')}, such as {node.example} ({node.place})"
    return (text, f"near: {node.nearest}") if node.nearest else (text,)


def _pods_of_namespaces(namespaces: gaps.PodsOfNamespaces) -> tuple[str, tuple[Fact, ...]]:
    here = Fact.of("present", f"pods of {list_names(namespaces.present, _NAMES, namespaces.namespaces)}")
    if not namespaces.namespaces_absent:
        return "only pods of system namespaces are present", (here,)
    absent = list_names(namespaces.absent, _NAMES, namespaces.namespaces_absent)
    number = f"at least {count(namespaces.pods, 'pod is', 'pods are')}" if namespaces.pods else "pods are"
    headline = f"{number} missing: none of namespace {absent}"
    return headline, (here, *((Fact.of("shown by", namespaces.evidence),) if namespaces.evidence else ()))


def _file(place: Place) -> str:
    return _short(place.source or str(place))


# The screen of `kschedx doctor`: the inventory, the findings, and how to complete the dump.

_MOST_LINES = 40
_FACT_LINES = 3  # lines of one fact without `-o wide`
_KINDS = 4
_MISSING_KIND = "missing kind"
_SNAPSHOT = "cluster.json"


class _Block(Struct, frozen=True, kw_only=True):
    """A finding's headline, and its details, which are shown if there is room."""

    head: list[StyledLine]
    detail: list[StyledLine]

    def lines(self, *, opened: bool) -> list[StyledLine]:
        return [BLANK, *self.head, *self.detail] if opened else self.head


def _diagnosis_view(diagnosis: DumpDiagnosis, *, whole: bool = True) -> View:
    """Return a view with a row for each gap; certain ones come first. Long paths are shortened, unless `whole`."""
    number, source = len(diagnosis.weakening), diagnosis.inventory.source
    gaps_text = f"{count(number, 'gap makes', 'gaps make')} answers less reliable"
    text = gaps_text if number else "complete, no gaps found"
    return View(
        command="kschedx doctor",
        subject=source,
        headline=f"{'standard input' if source == '-' else source}: {text}",
        tone=Tone.BAD if number else Tone.GOOD,
        facts=tuple(_inventory(diagnosis.inventory)),
        fixes=(_completion_fix(diagnosis.completion),) if diagnosis.completion else (),
        lists=(ItemList(title="Gaps", noun="gap", items=tuple(_item(it, whole=whole) for it in diagnosis.findings)),),
        tables=(
            TableView(
                title="Objects",
                columns=(("kind", False), ("objects", True)),
                rows=tuple(diagnosis.inventory.kinds.items()),
            ),
        ),
    )


def _item(finding: gaps.Finding, *, whole: bool) -> ViewItem:
    is_sure = finding.certainty is not gaps.Certainty.POSSIBLE
    tone = (Tone.BAD if is_sure else Tone.OPEN) if finding.counts else Tone.PLAIN
    if isinstance(finding, gaps.MissingKind):
        title = f"{finding.kind}: {_missing_kind_text(finding)}{_certainty_text(finding.certainty)}"
        effects = (f"{it.effect} ({', '.join(it.plugins)})" if it.plugins else it.effect for it in finding.weakens)
        facts = (Fact.of("affects", "; ".join(effects)), _reaction_fact(finding.reaction))
        return ViewItem(title=title, tone=tone, kind=_MISSING_KIND, facts=facts)
    headline, evidence = _headline_and_facts(finding if whole else _with_short_paths(finding))
    sure = _certainty_text(finding.certainty) if finding.counts else ""
    kind = "gap" if finding.counts else "note"
    return ViewItem(title=headline + sure, tone=tone, kind=kind, facts=(*evidence, *_weakens(finding)))


def diagnosis_lines(diagnosis: DumpDiagnosis, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return at most 40 lines, unless `wide`: the first findings in full, and the headlines of the others."""
    view = _diagnosis_view(diagnosis, whole=wide)
    top = head_lines(replace(view, fixes=()), width, rows=None if wide else _FACT_LINES)
    end = [row for fix in view.fixes for row in _completion(fix, width)]
    blocks = list(_blocks(view.items, width, wide=wide))
    room = _MOST_LINES - len(top) - sum(max(-(-drawn_line.cell_len // width), 1) for drawn_line in end)
    opened = (
        len(blocks)
        if wide
        else max((number for number in range(len(blocks) + 1) if len(_stack(blocks, number)) <= room), default=0)
    )
    shown = _stack(blocks, opened)
    if not wide and len(shown) > room:
        shown = [*shown[: room - 1], line((f"{len(shown) - room + 1:,} more lines: -o wide", DIM))]
    return [*top, *shown, *end]


def _stack(blocks: Sequence[_Block], opened: int) -> list[StyledLine]:
    """Return the blocks one below the other, the first ones opened."""
    lines = [row for block in blocks[:opened] for row in block.lines(opened=True)]
    closed = [row for block in blocks[opened:] for row in block.lines(opened=False)]
    note = [line(("  -o wide shows these in full", DIM))]
    return [*lines, BLANK, *closed, *note] if closed else lines


def _inventory(inventory: Inventory) -> Iterator[Fact]:
    """Yield what the dump holds, and where it is from."""
    pods = [
        f"{number:,} {what}"
        for what, number in (
            ("running", inventory.running),
            ("pending", inventory.pending),
            ("finished", inventory.finished),
        )
        if number
    ]
    text = f"{count(inventory.kinds.get('Pod', 0), 'pod')}" + (f" ({', '.join(pods)})" if pods else "")
    spaces = f" in {count(inventory.namespaces, 'namespace')}" if inventory.namespaces else ""
    others = tuple(f"{number:,} {kind}" for kind, number in inventory.kinds.items() if kind not in ("Node", "Pod"))
    yield Fact.of("holds", count(inventory.kinds.get("Node", 0), "node"), text + spaces, *others)
    kubelets = dict.fromkeys((inventory.oldest_kubelet, inventory.newest_kubelet))
    versions = [f"API server {inventory.server_version}"] if inventory.server_version else []
    versions += [f"kubelets {' to '.join(kubelets)}"] if inventory.oldest_kubelet else []
    if versions:
        yield Fact.of("versions", *versions)
    if inventory.time:
        yield Fact.of("taken", inventory.time)
    origin = (inventory.origin,) if inventory.origin and inventory.origin != inventory.source else ()
    files = (count(inventory.files, "file"),) if inventory.files > 1 else ()
    names = ("names are replaced",) if inventory.is_anonymized else ()
    known = (*inventory.formats, *origin, *files, *names)
    if known:
        yield Fact.of("from", *known)
    not_read = (*inventory.not_applied, *(f"{number:,} {kind}" for kind, number in inventory.not_read.items()))
    if not_read:
        yield Fact.of("not read", *not_read)


def _blocks(items: Sequence[ViewItem], width: int, *, wide: bool) -> Iterable[_Block]:
    """Yield a block for each row; all missing kinds share one."""
    missing = [item for item in items if item.kind == _MISSING_KIND]
    for item in items:
        if item.kind != _MISSING_KIND:
            facts = item.facts if wide else _without_repeats(item.facts)
            detail = fact_block(facts, width, None if wide else _FACT_LINES)
            style = DIM if item.tone is Tone.PLAIN else BOLD
            yield _Block(head=paragraph(item.title, width, first=item.tone.mark or "· ", style=style), detail=detail)
        elif item is missing[0]:
            yield _missing_block(missing, width, wide=wide)


def _without_repeats(facts: Sequence[Fact]) -> Iterable[Fact]:
    """Yield the first lines of each list below a label, and the number of its other lines."""
    run: list[Fact] = []
    for fact in (*facts, None):
        if fact is not None and not fact.label:
            run.append(fact)
            continue
        yield from run[: _FACT_LINES - 1]
        if len(run) >= _FACT_LINES:
            yield Fact.of("", f"{len(run) - _FACT_LINES + 1:,} more")
        run = []
        if fact is not None:
            yield fact


def _missing_block(items: Sequence[ViewItem], width: int, *, wide: bool) -> _Block:
    rows = [(*item.title.split(": ", 1), *(fact.items[0] for fact in item.facts)) for item in items]
    names = ", ".join(kind for kind, *_ in rows)
    phrase = f"{count(len(items), 'kind is', 'kinds are')} missing or incomplete: {names}"
    lines: list[StyledLine] = []
    shown = rows if wide or len(rows) <= _KINDS + 1 else rows[:_KINDS]
    label = max(len(kind) for kind, *_ in shown)
    silent = _reaction_fact(gaps.Reaction.SILENT)
    for kind, text, affects, reaction in shown:
        more = "" if reaction in silent.items else f"; {reaction}"
        lines += paragraph(f"{text} · {affects}{more}", width, first=f"  {kind:<{label}}  ")
    if len(shown) < len(rows):
        lines.append(line((f"  {len(rows) - len(shown):,} more: -o wide", DIM)))
    is_silent = any(reaction in silent.items for *_, reaction in rows)
    return _Block(
        head=paragraph(phrase, width, first="✗ ", style=BOLD),
        detail=lines + (fact_lines(silent, width) if is_silent else []),
    )


def _completion_fix(completion: Completion) -> FixView:
    """Return how to get what is missing."""
    match completion.way:
        case Way.ADD:
            again = "kschedx why ..." + " --snapshot {}" * len(completion.snapshots)
            more = shell_command(again, *map(Path, completion.snapshots))
            return FixView(title="complete it with", commands=(completion.command, more))
        case Way.ANEW:
            snapshot = f"kschedx snapshot -o {_SNAPSHOT}"
            return FixView(
                title="take one new dump with one of these commands", commands=(snapshot, completion.command)
            )
        case Way.ALLOW:
            return FixView(title="grant yourself this role", commands=(completion.command,))
        case _:
            assert_never(completion.way)


def _completion(fix: FixView, width: int) -> list[StyledLine]:
    """Return commands that can be copied."""
    rows = (row for command in fix.commands for row in shell_rows(command, width))
    return [BLANK, line((fix.title, DIM)), *map(line, rows)]


def doctor_page(diagnosis: DumpDiagnosis) -> Page:
    """Return a page with the inventory, what is missing, and how to complete the dump."""
    lines = diagnosis_lines(diagnosis, width=SCREEN_WIDTH, wide=True)
    cited = (("cluster", diagnosis.inventory.source), ("taken", diagnosis.inventory.time or "unknown"))
    return page_of(_diagnosis_view(diagnosis), lines, cited=cited)
