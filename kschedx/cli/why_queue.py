"""What is asked about, and what is beside it in the files, in one queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kschedx.errors import NotAdmittedError

if TYPE_CHECKING:
    from kschedx.answer.subject import Subject
    from kschedx.api.types import Pod
    from kschedx.cli.manifests import Written
    from kschedx.explain.setup import Setup
    from kschedx.simulate.lacking import Bound, Gathering
    from kschedx.simulate.together import Group
    from kschedx.snapshot.snapshot import Snapshot


def gather(gathering: Gathering, subject: Subject, one: Pod | Written, *, is_written: bool = False) -> Group | Bound:
    """`is_written`: it is not what the cluster has, wherever it is from."""
    from kschedx.api.types import Pod

    if isinstance(one, Pod):
        return gathering.take(subject, None, is_written=is_written)
    return gathering.take(subject, one.workload, is_written=is_written or one.document is not None)


def gather_beside(gathering: Gathering, setup: Setup, one: Pod | Written) -> None:
    """What nobody asks about, and is there too; what the API server refuses of it is not."""
    from kschedx.api.types import Pod

    if isinstance(one, Pod):
        return
    try:
        gather(gathering, one.admitted(gathering.snapshot, setup), one)
    except NotAdmittedError:
        return


def gather_queue(
    gathering: Gathering,
    setup: Setup,
    queue: Sequence[Pod | Written],
    found: Pod | Written,
    admit: Callable[[Snapshot], Subject],
    *,
    is_written: bool = False,
) -> Group | Bound:
    """All of a queue, one of which is asked about; `admit` gives its pod in a cluster."""
    own: Group | Bound | None = None
    for one in queue:
        if one is found:
            own = gather(gathering, admit(gathering.snapshot), one, is_written=is_written)
        else:
            gather_beside(gathering, setup, one)
    assert own is not None, "what is asked about is in the queue"
    return own
