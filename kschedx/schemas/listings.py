"""The documents of commands about clusters, profiles, and plugins."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from kschedx.framework.config.advice import Advice
from kschedx.inquiry.document import ExtensionPoints
from kschedx.kube.documents import Document, Json


class ClusterAnswerDocument(Document, frozen=True):
    cluster: str
    question: tuple[str, ...]
    exit_code: int
    seconds: float
    summary: str
    errors: str
    taken: str
    """When the cluster was read; empty if that is not known."""
    document: Json | None
    """The command's document for this cluster."""


class FleetDocument(Document, frozen=True):
    clusters: tuple[ClusterAnswerDocument, ...]


class ProfileListing(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Of a Policy the predicates and priorities, since nothing else of it is expanded."""

    name: str
    kubernetes_version: str
    configuration: Json = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    extension_points: ExtensionPoints = field(default_factory=dict)


class ProfileCheckDocument(Document, frozen=True):
    name: str
    kubernetes_version: str
    advice: tuple[Advice, ...]


class PluginDocument(Document, frozen=True, omit_defaults=True):
    name: str
    origin: str
    points: tuple[str, ...]
    by_default: bool = field(name="default")
    defect: str = ""


class PluginListDocument(Document, frozen=True):
    kubernetes_version: str
    items: tuple[PluginDocument, ...]
