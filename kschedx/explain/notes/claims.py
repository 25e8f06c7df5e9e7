"""Claims that controllers make for a new pod."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from kschedx.explain.notes.facts import NoteFacts


class _ClaimsMade(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "claims-from-templates"
    claims: tuple[str, ...]
    """`namespace/name`."""
    first_attempt: str | None = None
    """What kube-scheduler says where it sees the pod before the claims; None where that was not asked."""

    @property
    def facts(self) -> dict[str, object]:
        return {"claims": list(self.claims)} | self._before

    @property
    def _before(self) -> dict[str, object]:
        return {} if self.first_attempt is None else {"firstAttempt": self.first_attempt}


class ClaimsOfController(_ClaimsMade, frozen=True, kw_only=True):
    """From the volumeClaimTemplates of the pod's StatefulSet."""


class ClaimsOfVolumes(_ClaimsMade, frozen=True, kw_only=True):
    """For generic ephemeral volumes."""


class ClaimsOfTemplates(_ClaimsMade, frozen=True, kw_only=True):
    """Of devices."""

    templates: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"claims": list(self.claims), "templates": list(self.templates)} | self._before


class ClaimNotMade(NoteFacts, frozen=True, kw_only=True):
    """Of a generic ephemeral volume: the pod is there, and waits for it."""

    id: ClassVar[str] = "claim-not-made"
    claim: str
    """`namespace/name`."""
    refusal: str
    """The API server's words."""

    @property
    def facts(self) -> dict[str, object]:
        return {"claim": self.claim, "refusal": self.refusal}


class DeviceClaimNotMade(ClaimNotMade, frozen=True, kw_only=True):
    """Of devices: so it is with those of a template."""


ClaimsMade: TypeAlias = ClaimsOfController | ClaimsOfVolumes | ClaimsOfTemplates
ClaimNote: TypeAlias = ClaimsMade | ClaimNotMade | DeviceClaimNotMade
