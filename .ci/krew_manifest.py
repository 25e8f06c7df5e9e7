"""The manifest that krew installs kubectl's plugin from, for the archives that `.ci/build-binary` made.

krew_manifest.py VERSION URL ARCHIVE...
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

NAME = "kubectl-kschedx"
PLATFORM = re.compile(r".*-(?P<os>[a-z]+)-(?P<arch>[a-z0-9_]+)\.tar\.gz")

DESCRIPTION = """\
Runs a pod through the complete scheduling framework and shows each plugin's
verdict per node, the scores, preemption, and fixes that were tried. Reads the
cluster or files, and never writes.
"""
CAVEATS = """\
For completion, kubectl looks for a program next to the plugin:
  cd "${KREW_ROOT:-$HOME/.krew}/bin" && ln -s kubectl-kschedx kubectl_complete-kschedx
"""


def manifest(version: str, url: str, archives: Sequence[Path]) -> dict[str, object]:
    """`url` is the folder that the archives will be downloaded from."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "kschedx"},
        "spec": {
            "version": f"v{version}",
            "homepage": "https://kschedx.github.io/kschedx/",
            "shortDescription": "Explain why a pod is Pending or where it runs",
            "description": DESCRIPTION,
            "caveats": CAVEATS,
            "platforms": [_platform(url, archive) for archive in sorted(archives)],
        },
    }


def _platform(url: str, archive: Path) -> dict[str, object]:
    found = PLATFORM.fullmatch(archive.name)
    if found is None:
        raise ValueError(f"{archive.name} does not end with -OS-ARCH.tar.gz")
    return {
        "selector": {"matchLabels": found.groupdict()},
        "uri": f"{url.rstrip('/')}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": NAME,
        "files": [{"from": f"{NAME}/*", "to": "."}],
    }


if __name__ == "__main__":
    version, url, *archives = sys.argv[1:]
    yaml.safe_dump(manifest(version, url, list(map(Path, archives))), sys.stdout, sort_keys=False)
