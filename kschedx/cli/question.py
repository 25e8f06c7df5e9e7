"""The common part of questions about a cluster: the cluster, and the configuration of its scheduler.

A command declares by `asks` which groups of options (`options.py`) it has, and is called with their `Question`.
"""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, json
from msgspec.structs import fields, replace
from typer.models import ParameterInfo

from kschedx.cli import connection
from kschedx.cli.connection import Connection, LoadedCluster
from kschedx.cli.options import CHANGES, CONNECTION, OPTIONS, OptionGroup
from kschedx.cli.output import Answer, cited_inputs, show
from kschedx.cli.streams import print_note
from kschedx.errors import ConfigError, InputError, NotReadError, closest, nearest
from kschedx.kube.escaping import repeat_options
from kschedx.patterns import lazy_pattern

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import AutoscalerOptions
    from kschedx.controllers.workloads import Workload
    from kschedx.explain.notes import Note
    from kschedx.explain.setup import Setup
    from kschedx.export.slim import Slim
    from kschedx.framework.extenders import Ask
    from kschedx.inquiry.autoscalers import AutoscalingOptions
    from kschedx.inquiry.profile_difference import Shard
    from kschedx.inquiry.simulation import Simulation
    from kschedx.karpenter.cluster import KarpenterOptions
    from kschedx.simulate.changes import SimulatedChange
    from kschedx.snapshot.snapshot import Snapshot

_RECORD = "record="


_SNAPSHOTZ = lazy_pattern(rb'\s*\{\s*"(?:NodeList|UnscheduledPodsCanBeScheduled|TemplateNodes)"')
"""The beginning of the output of the autoscaler's /snapshotz."""
_RETYPED_APART = {"where", "snapshot", "namespace", "what_if"}
"""Options whose form in another command differs from the name of their field."""


def _freeze_loaded_objects() -> None:
    """Exclude loaded objects from garbage collection. Clusters of trials, hundreds for some questions, are freed with
    their last reference."""
    _freeze_once()
    gc.set_threshold(50_000)
    gc.enable()


@cache
def _freeze_once() -> None:
    gc.freeze()  # to ask how many objects are frozen would count them, at every question of a long process


class Question(Struct, frozen=True, kw_only=True, dict=True):
    """The options as typed, and their values. Files are read once; a cluster is read as often as `read` is called."""

    where: Connection = Connection()
    snapshot: Sequence[str] = ()
    namespace: str | None = None
    ignore_orphans: bool | None = None
    config: str | None = None
    profile: str | None = None
    without_unknown_plugins: bool = False
    kube_version: str | None = None
    feature_gate: Sequence[str] = ()
    enable_admission_plugins: Sequence[str] = ()
    node_group_label: str = ""
    autoscaler_flag: Sequence[str] = ()
    node_groups: str | None = None
    instance_types: str | None = None
    karpenter_flag: Sequence[str] = ()
    what_if: Sequence[tuple[str, str]] = ()  # changes as typed, in their order: the name of the option and its value
    force: bool = False  # whether a drain deletes pods that no controller recreates
    delete_emptydir_data: bool = False
    extenders: str | None = None
    kueue_config: str | None = None
    kueue_feature_gate: Sequence[str] = ()

    @property
    def names_cluster(self) -> bool:
        """Whether the command line names its cluster."""
        return bool(self.snapshot or self.where.live_option)

    @cached_property
    def gates(self) -> Mapping[str, bool]:
        """The feature gates. Raises `ConfigError`."""
        return _feature_gates(self.feature_gate)

    @cached_property
    def configuration(self) -> Mapping[str, object] | None:
        """The configuration of --config; None for the version's default. Raises `InputError`."""
        if self.config is None:
            return None
        from kschedx.cli import files

        return files.configuration(self.config)

    @cached_property
    def admission_plugins(self) -> tuple[str, ...]:
        return tuple(name.strip() for names in self.enable_admission_plugins for name in names.split(","))

    @cached_property
    def autoscaling(self) -> AutoscalingOptions:
        """The options about the cluster's autoscalers. Raises `InputError`, and `ConfigError` for a flag's value."""
        from kschedx.inquiry.autoscalers import AutoscalingOptions

        return AutoscalingOptions(groups=self._groups, pools=self._pools)

    @property
    def _groups(self) -> AutoscalerOptions | None:
        explicit = [*((self.node_groups,) if self.node_groups is not None else ()), *self._autoscaler_outputs]
        if not (self.autoscaler_flag or self.node_group_label or explicit):
            return None
        from kschedx.autoscaler.cluster import AutoscalerOptions
        from kschedx.autoscaler.flags import check_known, parse_flag_options
        from kschedx.autoscaler.templates import GroupsFile, read_groups
        from kschedx.cli import files
        from kschedx.cli.files import single_document
        from kschedx.kube.autoscalers import SCHEDULER_CONFIG

        flags = parse_flag_options(self.autoscaler_flag)
        check_known(list(flags))
        configurations = flags.get(SCHEDULER_CONFIG)
        file = GroupsFile()
        for path in explicit:
            file = file.with_other(read_groups(single_document(path), path))
        config = files.configuration(configurations[-1]) if configurations else None
        return AutoscalerOptions(group_label=self.node_group_label, flags=flags, file=file, config=config)

    @cached_property
    def _autoscaler_outputs(self) -> tuple[str, ...]:
        """The paths of --snapshot that are not a cluster, but the output of the autoscaler's /snapshotz."""
        return tuple(filter(_is_autoscaler_output, self.snapshot))

    @property
    def command_options(self) -> Sequence[str]:
        """The options for another command about the same cluster, scheduler, and changes, as words."""
        paths = [("-s", path) for path in self.snapshot if path != "-"]
        paths += [("--kubeconfig", self.where.kubeconfig)] if self.where.kubeconfig is not None else []
        words = [word for option, path in paths for word in (option, f"./{path}" if path.startswith("-") else path)]
        words += [] if self.where.context is None else ["--context", self.where.context]
        for verb, value in self.what_if:
            words += [f"--{verb}={value}"] if value.startswith("-") else [f"--{verb}", value]
        for name in sorted({*self.__struct_fields__} - _RETYPED_APART):
            value, option = getattr(self, name), f"--{name.replace('_', '-')}"
            values = (value,) if isinstance(value, str | bool) else value or ()
            words += [option if each is True else f"{option}={each}" for each in values if each]
        return words

    def inputs(self, values: Mapping[str, object]) -> Iterator[str]:
        """Yield the names that may be files: of the cluster, the configuration, and a command's own arguments."""
        own = (values.get(name) for name in ("target", "file", "dump", "policy"))
        for value in (self.snapshot, self.config, [name for verb, name in self.what_if if verb == "apply"], *own):
            yield from (value,) if isinstance(value, str) else filter(None, value) if isinstance(value, list) else ()

    @cached_property
    def _cluster_paths(self) -> Sequence[str]:
        flags = self._autoscaler_outputs
        return [path for path in self.snapshot if path not in flags] if flags else self.snapshot

    @property
    def _pools(self) -> KarpenterOptions | None:
        if self.instance_types is None and not self.karpenter_flag:
            return None
        from kschedx.cli.instance_types import read
        from kschedx.karpenter.cluster import KarpenterOptions
        from kschedx.karpenter.scheduler import KarpenterSettings

        catalogue = None if self.instance_types is None else read(self.instance_types)
        return KarpenterOptions(catalogue=catalogue, settings=KarpenterSettings.read(self.karpenter_flag))

    @cached_property
    def changes(self) -> tuple[SimulatedChange, ...]:
        """The changes that are made first; files are read. Raises `InputError` with the change."""
        if not self.what_if:
            return ()
        from kschedx.inquiry.manifests import objects_of
        from kschedx.simulate.changes import typed_changes

        return typed_changes(self.what_if, objects_of)

    @cached_property
    def ask(self) -> Ask | None:
        """The function that answers for the configuration's extenders, by --extenders; None if they are not called.
        Raises `InputError`."""
        if self.extenders is None:
            return None
        from kschedx.extenders.client import CALL, Recorder, call, load_replay

        if self.extenders == CALL:
            return call
        return Recorder(call) if self.recorded_in is not None else load_replay(self.extenders)

    @property
    def recorded_in(self) -> str | None:
        """The file in which the extenders' answers are recorded."""
        return self.extenders.removeprefix(_RECORD) if self.extenders and self.extenders.startswith(_RECORD) else None

    @property
    def calls(self) -> bool:
        """Whether the extenders themselves are called, which needs whole objects."""
        return self.extenders == "call" or self.recorded_in is not None

    def jobs(self, wanted: int | None = None) -> int:
        """Return how many processes may work on many pods; one if extenders are recorded."""
        from kschedx.parallel import processors

        return 1 if self.recorded_in is not None else wanted or processors()

    def keep_recording(self) -> None:
        """Write the extenders' answers to the file of --extenders. Raises `InputError`."""
        if self.recorded_in is None:
            return

        from kschedx.extenders.client import Recorder
        from kschedx.sources.compression import write

        if isinstance(self.ask, Recorder):
            write(self.recorded_in, [json.format(json.encode(self.ask.recording)), b"\n"], mode=0o600)

    def read(
        self, *, keep: Slim | None = None, namespace: str = "", whole: bool = False, on_demand: bool = False
    ) -> LoadedCluster:
        """Read the cluster of --snapshot, or the live one. Raises `InputError`.

        `keep`, `namespace`, `whole`, and `on_demand` are those of `loading.load_live`.
        """
        reached = connection.read_cluster(
            self._cluster_paths, self.where, namespace=namespace, keep=keep, whole=whole, on_demand=on_demand
        )
        return self._apply_options(reached)

    def read_to_decide(
        self,
        *,
        whole: bool = False,
        on_demand: bool = False,
        needs_nodes: bool = True,
        or_namespace: str | None = None,
    ) -> LoadedCluster:
        """Read a cluster as `read` does, and require its nodes. Wrong options are reported before anything is read.
        Without `needs_nodes`, a dump may hold pods alone.

        If listing nodes or pods is forbidden, what may be listed of the namespace `or_namespace` is read (empty for the
        default one). Raises `UndecidableError` if it is None, or if that has no pods.
        """
        from kschedx.explain.missing_kinds import require_nodes, require_nodes_and_pods
        from kschedx.loading import refuse_without_nodes

        _ = self.gates, self.configuration, self.changes, self.ask
        reached = connection.read_cluster(
            self._cluster_paths,
            self.where,
            check=True,
            ignore_orphans=self.ignore_orphans,
            whole=whole or self.calls,
            on_demand=on_demand,
        )
        snapshot = reached.snapshot
        try:
            require_nodes_and_pods(snapshot)
        except NotReadError:
            part = None if or_namespace is None else self._part(reached, or_namespace)
            if part is None or not len(part.snapshot.pods):
                raise
            return part
        if needs_nodes:
            require_nodes(snapshot)
        if needs_nodes or not snapshot.source.is_dump:
            refuse_without_nodes(snapshot)
        _freeze_loaded_objects()
        return self._apply_options(reached)

    def _part(self, reached: LoadedCluster, namespace: str) -> LoadedCluster:
        """Return the cluster, with the pods of a namespace if those of all may not be listed. Pods count as missing
        nevertheless. Raises `InputError`."""
        forbidden = reached.snapshot.source.missing.get("Pod")
        if forbidden is None or self._cluster_paths:
            return self._apply_options(reached)
        part = self.read(namespace=namespace or self.namespace or reached.namespace)
        source = part.snapshot.source
        source = replace(source, missing={**source.missing, "Pod": forbidden})
        return replace(part, snapshot=replace(part.snapshot, source=source))

    def _apply_options(self, reached: LoadedCluster) -> LoadedCluster:
        """Return the cluster with the namespace and the Kueue Configuration of the options. Raises `InputError`."""
        reached = replace(reached, namespace=self.namespace or reached.namespace)
        if self.kueue_config is None and not self.kueue_feature_gate:
            return reached
        from kschedx.cli.files import single_document
        from kschedx.kueue.settings import configuration_in, with_configuration

        path = self.kueue_config
        config = None if path is None else configuration_in(single_document(path), path)
        gates = _feature_gates(self.kueue_feature_gate, option="--kueue-feature-gate")
        return replace(reached, snapshot=with_configuration(reached.snapshot, config, gates))

    def setup(self, snapshot: Snapshot) -> Setup:
        """Return the setup of this cluster's scheduler. Raises `ConfigError`."""
        from kschedx.explain.setup import Setup

        with self.error_places():
            setup = Setup.of_cluster(
                snapshot,
                config=self.configuration,
                profile=self.profile,
                kube_version=self.kube_version,
                feature_gates=self.gates,
                admission_plugins=self.admission_plugins,
                without_unknown_plugins=self.without_unknown_plugins,
                ask=self.ask,
            )
        if self.profile is not None and self.profile not in setup.scheduler_names:
            raise self._unknown_profile(self.profile, setup.scheduler_names)
        return setup

    def _unknown_profile(self, name: str, known: Collection[str]) -> ConfigError:
        from kschedx.cli import files

        near = closest(name, files.names())
        hint = nearest(name, known) or (
            f"did you mean --config {near}?" if near else f"known: {', '.join(sorted(known))}"
        )
        return ConfigError(f'--profile: no profile has the schedulerName "{name}"', hint=hint)

    @contextmanager
    def error_places(self) -> Iterator[None]:
        """Add the file and the line to errors about a field of the configuration."""
        try:
            yield
        except ConfigError as error:
            if error.place.object or not error.place.field or self.config is None:
                raise
            from kschedx.cli import files

            with files.error_places(self.config):
                raise


def _is_autoscaler_output(path: str) -> bool:
    """Return whether a regular file begins as /snapshotz does; no other file is opened."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return _SNAPSHOTZ.match(file.read(256)) is not None
    except (OSError, ValueError):
        return False


def asks(*parts: OptionGroup) -> Callable[[Callable[..., Answer | int]], Callable[..., int]]:
    """Add the options of these groups to a command, which is called with `question`, their values. Its answer is
    printed. A command with a parameter `wanted` has the options that are that type's fields."""
    options = {name: declared for part in OptionGroup if part in parts for name, declared in OPTIONS[part].items()}

    def decorate(command: Callable[..., Answer | int]) -> Callable[..., int]:
        signature = inspect.signature(command, eval_str=True)
        record = signature.parameters["wanted"].annotation if "wanted" in signature.parameters else None

        @functools.wraps(command)
        def called(**values: Any) -> int:
            typed = {name: value for name in options if (value := values.pop(name)) is not None}
            what_if = _command_line_order({name: typed.pop(name) for name in CHANGES if name in typed})
            of_connection = {name: typed.pop(name) for name in CONNECTION if name in typed}
            baseline = typed.pop("baseline", None)
            question = Question(where=Connection(**of_connection), what_if=what_if, **typed)
            known = None
            if baseline is not None:
                from kschedx.cli.checks import Baseline

                known = Baseline.read(baseline)
            passed: dict[str, object] = values if record is None else {"wanted": record(**values)}
            try:
                with repeat_options(question.command_options), cited_inputs(question.inputs(values)):
                    answer = command(**passed, **({"question": question} if options else {}))
                    if known is not None and isinstance(answer, Answer) and answer.report.checks is not None:
                        marked, code = known.mark_new(answer.report.checks(), answer.exit_code)
                        answer = Answer(replace(answer.report, checks=lambda: marked), code)
                    return show(answer, values.get("output"))
            finally:
                question.keep_recording()

        own = [it for name, it in signature.parameters.items() if name not in ("question", "wanted")]
        own += [
            _keyword(item.name, item.default, item.type)
            for item in (fields(record) if record is not None else ())
            if isinstance(item.default, ParameterInfo)
        ]
        parameters = [*own, *(_keyword(name, declared, _type_of(declared)) for name, declared in options.items())]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # inspect reads it, no type has it
        return called

    return decorate


def _keyword(name: str, default: object, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _type_of(declared: ParameterInfo) -> object:
    """Return the type of a shared option's value; None for an option that is not typed."""
    if declared.default == []:
        return list[str]
    return str | None if declared.metavar else bool | None


ORDER: ContextVar[tuple[str, ...]] = ContextVar("order", default=())
"""The names of the options in the order in which they were typed, set by `help.HelpCommand`."""


def _command_line_order(typed: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the values of several repeatable options in the order of the command line."""
    values = {name: iter(texts) for name, texts in typed.items()}
    return [(name, next(values[name])) for name in ORDER.get() if name in values]


def shard_of(typed: str | None, *, is_json: bool) -> Shard | None:
    """Return the part of --shard. Raises `InputError`."""
    from kschedx.inquiry.profile_difference import Shard

    if typed is None:
        return None
    if not is_json:
        raise InputError("--shard needs -o json, for kschedx merge")
    return Shard.parse(typed)


def _feature_gates(settings: Sequence[str], *, option: str = "--feature-gate") -> dict[str, bool]:
    """Parse `NAME=true,OTHER=false`, as kube-scheduler does. Raises `ConfigError`."""
    gates: dict[str, bool] = {}
    for setting in settings:
        for part in filter(None, (p.strip() for p in setting.split(","))):
            name, equals, value = part.partition("=")
            truth = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}.get(value.lower())
            if not equals or truth is None:
                raise ConfigError(f'{option}: found "{part}", allowed is NAME=true or NAME=false')
            gates[name.strip()] = truth
    return gates


def cluster_after_changes(
    question: Question,
    reached: LoadedCluster,
    setup: Setup,
    in_question: Callable[[Snapshot], Collection[str]] | None = None,
    held: Collection[Workload] = (),
) -> tuple[LoadedCluster, tuple[Note, ...]]:
    """Return the cluster after the changes, and a note about the changes if there are any.

    Every pod that the changes created or evicted is scheduled, except the pods in question, which `in_question` returns
    as `namespace/name`. `held` are the workloads in question, whose new templates are not rolled out. A drain or a
    rollout that does not finish is reported on stderr. Raises `InputError`.
    """
    if not question.changes:
        return reached, ()
    from kschedx.controllers.workloads import member_rows
    from kschedx.explain.notes import AFTER_CHANGES, note
    from kschedx.inquiry.what_if import settle
    from kschedx.render.drain import undone_text
    from kschedx.render.lifecycle import rollout_text
    from kschedx.render.simulation import displaced_text
    from kschedx.simulate.simulator import SimulationOptions

    options = SimulationOptions(force=question.force, delete_emptydir_data=question.delete_emptydir_data)
    done = settle(
        reached.snapshot, setup, question.changes, options, reached.namespace, in_question=in_question, held=held
    ).simulation()
    print_open_counts(done)
    for drained in done.drained:
        if not drained.is_done:
            print_note(f"drain {drained.node}: {undone_text(drained)}")
    asked = {*(in_question(done.after) if in_question is not None else ())}
    for rolled in done.rolled_out:
        # a rollout waits for the pods in question, which are not scheduled yet
        waits = any(done.after.pods.key(row) in asked for row in member_rows(done.after, rolled.workload))
        if not (rolled.is_done or waits):
            print_note(rollout_text(rolled))
    lost, changes = done.displaced, tuple(map(str, question.changes))
    pods = {"moved": lost.moved, "waiting": lost.waiting, "gone": lost.gone}
    undone = tuple(effect.undone for effect in done.effects if effect.undone)
    shown = {name: keys for name, keys in {**pods, "undone": undone}.items() if keys}
    text = "; ".join((f"after {'; '.join(changes)}{displaced_text(**pods)}", *undone))
    return replace(reached, snapshot=done.after), (note(AFTER_CHANGES, text, changes=changes, **shown),)


def print_open_counts(simulation: Simulation) -> None:
    """Print a line on stderr about each custom resource whose pods are not all known."""
    for workload, why in simulation.open_counts.items():
        print_note(f"{workload.title}: {why}")
