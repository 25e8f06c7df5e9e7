"""Advice on settings that kube-scheduler accepts but that are probably mistakes.

Each rule is a function of one profile; `advice` runs them all. Nothing here is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from kschedx.errors import differs_by_one_letter
from kschedx.framework.args import (
    MOST_ALLOCATED,
    SYSTEM_DEFAULTING,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
)
from kschedx.framework.config.decoding import PluginSet, Profile, ProfileDocument
from kschedx.framework.config.expansion import MergedSet, PluginPoints, merge_plugins
from kschedx.framework.config.loading import decode_document, load_profiles, plugin_points
from kschedx.kube.names import is_extended_resource
from kschedx.releases import Release
from kschedx.releases.plugins import KUBERNETES, NOT_SIMULATED, PLUGINS, Trait, plugins_with
from kschedx.snapshot.devices import IMPLICIT_PREFIX


class Advice(Struct, frozen=True, kw_only=True):
    """Something to look at, with its place in the configuration."""

    id: str
    path: str
    text: str
    needs: str = ""  # a plugin that a kube-scheduler must have to accept the configuration; empty if there is none


class _AdvisedProfile(Struct, frozen=True, kw_only=True):
    """A profile as it is written, and the loaded one."""

    path: str
    document: ProfileDocument
    merged: Mapping[str, MergedSet]
    profile: Profile
    default: Profile  # of the version
    implements: PluginPoints
    release: Release

    def sets(self) -> Iterator[tuple[str, PluginSet, str]]:
        """Yield (point, its PluginSet, its path), MultiPoint included."""
        for point, plugins in self.document.plugins.sets_by_point().items():
            yield point, plugins, f"{self.path}.plugins.{point}"


def advice(config: Mapping[str, object] | None, release: Release) -> tuple[Advice, ...]:
    """Return the advice in the order of the rules, profile by profile. Raises `ConfigError` if kube-scheduler would
    refuse the configuration."""
    scheduler = load_profiles(config, release)
    document = decode_document(config, release)
    warnings: list[Advice] = []
    for index, profile in enumerate(scheduler.profiles):
        written = document.profiles[index]
        path = f"profiles[{index}]"
        subject = _AdvisedProfile(
            path=path,
            document=written,
            merged=merge_plugins(written.plugins, document.api_version, release, f"{path}.plugins"),
            profile=profile,
            default=load_profiles(None, release).profiles[0],
            implements=plugin_points(document, release),
            release=release,
        )
        for rule in _RULES:
            warnings += rule(subject)
    return tuple(warnings)


_SUCCESSORS = {
    "NodeLabel": "NodeAffinity",
    "NodePreferAvoidPods": "TaintToleration",
    "NodeResourcesLeastAllocated": "NodeResourcesFit with scoringStrategy LeastAllocated",
    "NodeResourcesMostAllocated": "NodeResourcesFit with scoringStrategy MostAllocated",
    "RequestedToCapacityRatio": "NodeResourcesFit with scoringStrategy RequestedToCapacityRatio",
    "ServiceAffinity": "InterPodAffinity",
}
"""Plugins that Kubernetes had before 1.26, to what replaces them."""


def _unknown_names(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on plugins of other projects, once each, and on names in `disabled` and `pluginConfig` that
    kube-scheduler never looks up."""
    enabled = subject.profile.unknown
    reported: set[str] = set()
    for _, plugins, path in subject.sets():
        for number, plugin in enumerate(plugins.enabled):
            if plugin.name in enabled and plugin.name not in reported:
                reported.add(plugin.name)
                project = NOT_SIMULATED.get(plugin.name)
                known = f"a plugin of {project}, not of the released kube-scheduler"
                which = known if project else "not a plugin of Kubernetes or of an installed package"
                text = f"{plugin.name} is {which}: kschedx skips it"
                if successor := _SUCCESSORS.get(plugin.name):
                    text = f"Kubernetes no longer has {plugin.name}: use {successor}"
                yield Advice(
                    id="unknown-plugin",
                    path=f"{path}.enabled[{number}].name",
                    text=text,
                    needs=plugin.name,
                )
        for number, plugin in enumerate(plugins.disabled):
            if plugin.name not in (*subject.implements, *enabled, "*"):
                yield Advice(
                    id="unknown-plugin",
                    path=f"{path}.disabled[{number}].name",
                    text=_unknown(plugin.name, "so nothing is disabled", subject),
                )
    for number, config in enumerate(subject.document.plugin_config):
        if config.name not in subject.implements and config.name not in enabled:
            yield Advice(
                id="unknown-plugin",
                path=f"{subject.path}.pluginConfig[{number}].name",
                text=_unknown(config.name, "so its arguments have no effect", subject),
            )


def _foreign_plugins(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on plugins that the released kube-scheduler does not have: it does not start with them."""
    projects = {row.name: row.project for row in PLUGINS if row.project != KUBERNETES}
    reported: set[str] = set()
    for _, plugins, path in subject.sets():
        for number, plugin in enumerate(plugins.enabled):
            if plugin.name in projects and plugin.name not in reported:
                reported.add(plugin.name)
                yield Advice(
                    id="not-in-released-binary",
                    path=f"{path}.enabled[{number}].name",
                    text=f"{plugin.name} is a plugin of {projects[plugin.name]}, not of the released kube-scheduler",
                    needs=plugin.name,
                )


def _unknown(name: str, then: str, subject: _AdvisedProfile) -> str:
    hint = next((f' (did you mean "{it}"?)' for it in subject.implements if differs_by_one_letter(name, it)), "")
    return f'there is no plugin "{name}", {then}{hint}'


def _nothing_to_disable(subject: _AdvisedProfile) -> Iterator[Advice]:
    for point, plugins, path in subject.sets():
        for number, plugin in enumerate(plugins.disabled):
            points = subject.implements.get(plugin.name)
            if points is not None and point != "multiPoint" and point not in points:
                yield Advice(
                    id="nothing-to-disable",
                    path=f"{path}.disabled[{number}].name",
                    text=f"{plugin.name} has no extension point {point}, so nothing is disabled: "
                    f"it has {', '.join(sorted(points))}",
                )


def _unused_arguments(subject: _AdvisedProfile) -> Iterator[Advice]:
    running = {name for plugins in subject.profile.points.values() for name in plugins}
    for number, config in enumerate(subject.document.plugin_config):
        if config.name in subject.implements and config.name not in running:
            yield Advice(
                id="unused-arguments",
                path=f"{subject.path}.pluginConfig[{number}]",
                text=f"{config.name} is not enabled anywhere, so its arguments have no effect",
            )


def _scored_twice(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on plugins enabled at `score` and through MultiPoint: they score once with the weight at `score`."""
    scoring = {name for name, points in subject.implements.items() if "score" in points}
    multi_point = {entry.name: entry for entry in subject.merged["multiPoint"].enabled if entry.name in scoring}
    for number, plugin in enumerate(subject.document.plugins.score.enabled):
        other = multi_point.get(plugin.name)
        if other is None or "*" in subject.merged["score"].disabled or plugin.name in subject.merged["score"].disabled:
            continue
        mine, theirs = plugin.weight or 1, other.weight or 1
        path = f"{subject.path}.plugins.score.enabled[{number}]"
        if other.path:
            text = f"{plugin.name} is enabled at {other.path} too: it scores once, with weight {mine}"
            text += f", and the weight {theirs} there has no effect" if mine != theirs else ""
            yield Advice(id="scored-twice", path=path, text=text)
        elif not plugin.weight and mine != theirs:
            yield Advice(id="lost-weight", path=path, text=_lost_weight(plugin.name, theirs))


def _lost_weight(name: str, default: int) -> str:
    return f"{name} is enabled without a weight, so its weight is 1 instead of its default weight {default}"


def _named_again(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on plugins that MultiPoint enables again without a weight: they lose their default weight."""
    for number, plugin in enumerate(subject.document.plugins.multi_point.enabled):
        default = subject.default.weights.get(plugin.name, 1)
        scores = plugin.name in subject.profile.points["score"]
        own = any(entry.name == plugin.name for entry in subject.document.plugins.score.enabled)
        if scores and not own and not plugin.weight and default != 1:
            yield Advice(
                id="lost-weight",
                path=f"{subject.path}.plugins.multiPoint.enabled[{number}]",
                text=_lost_weight(plugin.name, default),
            )


def _idle_weights(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on weights that can never change a decision."""
    for point, plugins, path in subject.sets():
        for number, plugin in enumerate(plugins.enabled):
            if not plugin.weight:
                continue
            where = f"{path}.enabled[{number}].weight"
            if point not in ("score", "multiPoint", "placementScore"):
                yield Advice(
                    id="idle-weight", path=where, text=f"a weight at {point} is ignored: only score uses weights"
                )
            elif plugin.name in subject.profile.unknown:
                continue
            elif "score" not in subject.implements.get(plugin.name, ()) and point == "multiPoint":
                text = f"{plugin.name} does not score, so its weight is ignored"
                yield Advice(id="idle-weight", path=where, text=text)
            elif plugin.name not in subject.profile.points["score"] and point == "multiPoint":
                text = f"{plugin.name} is disabled at score, so its weight is ignored"
                yield Advice(id="idle-weight", path=where, text=text)
            elif subject.profile.points["score"] == (plugin.name,) and plugin.weight > 1:
                text = f"{plugin.name} is the only plugin that scores: its weight changes no decision"
                yield Advice(id="idle-weight", path=where, text=text)
    weights = [subject.profile.weights[name] for name in subject.profile.points["score"]]
    if len(weights) > 1 and (common := math.gcd(*weights)) > 1:
        yield Advice(
            id="idle-weight",
            path=f"{subject.path}.plugins.score",
            text=f"every weight is a multiple of {common}: dividing them by it changes no decision",
        )


def _flat_shape(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on a ratio that gives every node the same score."""
    args = subject.profile.args.get("NodeResourcesFit")
    if not isinstance(args, NodeResourcesFitArgs) or args.scoring_strategy.requested_to_capacity_ratio is None:
        return
    shape = args.scoring_strategy.requested_to_capacity_ratio.shape
    if len({point.score for point in shape}) == 1:
        yield Advice(
            id="idle-weight",
            path=f"{subject.path}.pluginConfig",
            text="NodeResourcesFit's shape gives every utilization the same score, so its weight never decides",
        )


def _half_disabled(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on plugins that are disabled at one of two points that need each other. Plugins with the same advice
    share one text."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for first, second, alone in (
        ("preFilter", "filter", Trait.FILTERS_ALONE),
        ("preScore", "score", Trait.SCORES_ALONE),
    ):
        before, after = subject.profile.points[first], subject.profile.points[second]
        for name, points in subject.implements.items():
            if not {first, second} <= points or (name in before) == (name in after):
                continue
            off, on = (second, first) if name in before else (first, second)
            match off:
                case "filter":
                    then = ", where {it} still run{s} for every pod, and may reject it or leave nodes out"
                case "score":
                    then = ", where {it} still run{s} at preScore without effect"
                case _ if name in plugins_with(alone):
                    then = ", where the same work is done for each node"
                case _:
                    then = ", which fail{s} without the result of {off}"
            names.setdefault((off, on, then), []).append(name)
    for (off, on, then), those in names.items():
        is_one = len(those) == 1
        phrase = then.format(it="it" if is_one else "they", s="s" if is_one else "", off=off)
        listed = those[0] if is_one else f"{', '.join(those[:-1])} and {those[-1]}"
        text = f"{listed} {'is' if is_one else 'are'} disabled at {off} but not at {on}{phrase}"
        yield Advice(id="half-disabled", path=f"{subject.path}.plugins.{off}", text=text)


def _unchecked_by_filter(subject: _AdvisedProfile) -> Iterator[Advice]:
    checked = plugins_with(Trait.KUBELET)
    for name in subject.default.points["filter"]:
        if name in checked and name not in subject.profile.points["filter"]:
            yield Advice(
                id="kubelet-refuses",
                path=f"{subject.path}.plugins.filter",
                text=f"without {name} at filter, pods are assigned to nodes whose kubelet then rejects them",
            )


def _packs_and_spreads(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on bin packing that the default spreading outweighs."""
    fit, spread = subject.profile.args.get("NodeResourcesFit"), subject.profile.args.get("PodTopologySpread")
    if not isinstance(fit, NodeResourcesFitArgs) or not isinstance(spread, PodTopologySpreadArgs):
        return
    scoring = subject.profile.points["score"]
    if fit.scoring_strategy.type != MOST_ALLOCATED or not {"NodeResourcesFit", "PodTopologySpread"} <= set(scoring):
        return
    mine, theirs = (subject.profile.weights[name] for name in ("NodeResourcesFit", "PodTopologySpread"))
    if spread.defaulting_type == SYSTEM_DEFAULTING and mine <= theirs:
        yield Advice(
            id="packs-and-spreads",
            path=f"{subject.path}.pluginConfig",
            text=f"MostAllocated with weight {mine} packs, and PodTopologySpread with weight {theirs} spreads the pods "
            "of every Service and ReplicaSet by default: raise the one, or set defaultingType List without constraints",
        )


def _panics(subject: _AdvisedProfile) -> Iterator[Advice]:
    """Yield advice on resources that devices may provide: the plugin has nothing to evaluate their selectors with."""
    args, release = subject.profile.args.get("NodeResourcesBalancedAllocation"), subject.release
    if not isinstance(args, NodeResourcesBalancedAllocationArgs) or not release.enabled("DRAExtendedResource"):
        return
    for resource in args.resources if release.behavior.balance_cannot_evaluate_selectors else ():
        if is_extended_resource(resource.name) or resource.name.startswith(IMPLICIT_PREFIX):
            yield Advice(
                id="panics",
                path=f"{subject.path}.pluginConfig",
                text=f"NodeResourcesBalancedAllocation scores {resource.name}: if a DeviceClass with selectors "
                "provides it, kube-scheduler panics at the first pod that requests it and fits two nodes",
            )


_RULES: tuple[Callable[[_AdvisedProfile], Iterator[Advice]], ...] = (
    _unknown_names,
    _foreign_plugins,
    _nothing_to_disable,
    _unused_arguments,
    _scored_twice,
    _named_again,
    _idle_weights,
    _flat_shape,
    _half_disabled,
    _unchecked_by_filter,
    _packs_and_spreads,
    _panics,
)
