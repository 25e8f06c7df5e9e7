"""The document of many clusters' answers to one question, and a line of the results."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.controllers.states import ExitCode
from kschedx.kube.documents import Document


class ClusterAnswerDocument(Document, frozen=True):
    cluster: str
    question: tuple[str, ...]
    exit_code: int
    seconds: float
    summary: str  # the headline of the answer, or the first line of the error
    errors: str
    taken: str  # when the cluster was read; empty if that is not known
    document: Mapping[str, object] | None  # the command's document for this cluster

    @property
    def is_answered(self) -> bool:
        """Whether the cluster was read and the question answered; if so, it is not asked again."""
        return self.document is not None and self.exit_code in (ExitCode.SCHEDULABLE, ExitCode.UNSCHEDULABLE)


class FleetDocument(Document, frozen=True):
    clusters: tuple[ClusterAnswerDocument, ...]
