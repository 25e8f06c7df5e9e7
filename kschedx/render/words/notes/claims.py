"""Claims that controllers make for a new pod, in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.notes.claims import (
    ClaimNote,
    ClaimNotMade,
    ClaimsOfController,
    ClaimsOfTemplates,
    ClaimsOfVolumes,
    DeviceClaimNotMade,
)


def text(note: ClaimNote) -> str:
    if isinstance(note, DeviceClaimNotMade):
        return f"nobody makes claim {note.claim} from its template: {note.refusal}"
    if isinstance(note, ClaimNotMade):
        return f"nobody makes claim {note.claim} for the pod's ephemeral volume: {note.refusal}"
    claims = ", ".join(note.claims)
    match note:
        case ClaimsOfController():
            return f"judged with what its controller makes for it: claim {claims}"
        case ClaimsOfVolumes():
            return f"judged with what kube-controller-manager makes for its ephemeral volumes: claim {claims}"
        case ClaimsOfTemplates(templates=templates):
            return f"claims as kube-controller-manager makes them for the pod: {claims} from {', '.join(templates)}"
        case _:
            assert_never(note)
