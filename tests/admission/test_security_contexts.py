"""Security contexts that no API server stores, in the words of kube-apiserver 1.36.

`security_contexts.jsonl.gz`: pods given to it as server-side dry runs; a JSON object per line with `manifest` and
`errors`, each as kubectl prints it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kschedx.errors import InputError, NotAdmittedError
from kschedx.explain.admission import admitted_pod
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot

with gzip.open(Path(__file__).parent / "security_contexts.jsonl.gz") as file:
    CASES: list[dict[str, Any]] = [json.loads(line) for line in file]


@pytest.mark.parametrize("part", range(3))
def test_each_fault_has_its_words(part: int) -> None:
    release = resolve()
    for case in CASES[part::3]:
        manifest = case["manifest"]
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": manifest["metadata"]["namespace"]}}
        with pytest.raises(InputError) as raised:
            admitted_pod(Snapshot.from_objects([space]), manifest, release)
        assert not isinstance(raised.value, NotAdmittedError)  # it is wrong by itself
        told = {str(one) for one in raised.value.each}
        for error in case["errors"]:
            if "cannot set `allowPrivilegeEscalation`" in error and "annotations" in manifest["metadata"]:
                continue  # it quotes what the API server has made of the annotation
            assert error in told, manifest
