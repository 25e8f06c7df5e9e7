"""What of the cluster's objects counts otherwise than one would think, in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.notes.cluster import (
    ClusterNote,
    FilesLeftOut,
    FinishedPods,
    OrphanedPods,
    ReleaseEmulated,
    Teller,
)
from kschedx.render.units import count, listed

_SHOWN = 3


def text(note: ClusterNote) -> str:
    match note:
        case OrphanedPods(pods=pods, nodes=nodes):
            run, counts = ("runs", "counts") if len(pods) == 1 else ("run", "count")
            these = count(len(pods), "pod")
            return f"{these} {run} on nodes that are not there and {counts} nowhere: {listed(nodes, _SHOWN)}"
        case FilesLeftOut(files=files):
            return f"left out, since there are no Kubernetes objects in it: {listed(files, _SHOWN)}"
        case FinishedPods(pods=number):
            return f"{number:,} finished pods count on their nodes: leave them out of the input, as an API server does"
        case ReleaseEmulated():
            return _release(note)
        case _:
            assert_never(note)


def _release(note: ReleaseEmulated) -> str:
    emulated = f"kube-scheduler {note.emulated}{'' if note.is_measured else ','} is emulated"
    told = f"{_teller(note.teller)} {note.version}"
    if note.is_known:
        return f"{told}: {emulated}"
    return f"{told}, which kschedx does not know: {emulated} (--kube-version names another)"


def _teller(teller: Teller) -> str:
    match teller:
        case Teller.SERVER:
            return "the API server is"
        case Teller.KUBELETS:
            return "the kubelets are"
        case Teller.MOST_KUBELETS:
            return "most kubelets are"
        case _:
            assert_never(teller)
