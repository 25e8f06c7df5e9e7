"""What tolerates what is answered by an index; it must say what the plain walk over all tolerations says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kschedx.kube.tolerations import Tolerations, find_untolerated, tolerates
from kschedx.kube.types import Taint, Toleration

KEYS, EFFECTS, VALUES = ("", "a", "b"), ("", "NoSchedule", "NoExecute"), ("", "1", "2")
OPERATORS = ("", "Equal", "Exists", "Lt", "Gt", "Odd")


@given(
    st.lists(
        st.builds(
            Toleration,
            key=st.sampled_from(KEYS),
            effect=st.sampled_from(EFFECTS),
            value=st.sampled_from(VALUES),
            operator=st.sampled_from(OPERATORS),
        ),
        max_size=4,
    ),
    st.builds(
        Taint,
        key=st.sampled_from(KEYS),
        effect=st.sampled_from(EFFECTS[1:]),
        value=st.sampled_from(VALUES),
    ),
    st.booleans(),
)
def test_many_at_once_are_as_one_after_the_other(tolerations: list[Toleration], taint: Taint, comparison: bool) -> None:
    known = Tolerations(tolerations, comparison=comparison)
    assert known.cover(taint) == any(tolerates(toleration, taint, comparison=comparison) for toleration in tolerations)


def test_ten_thousand_by_ten_thousand_are_looked_at_once_each() -> None:
    class Counted(str):
        looked_at = 0

        def __eq__(self, other: object) -> bool:
            Counted.looked_at += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    tolerations = [Toleration(key=Counted(f"t{number}"), operator="Exists") for number in range(10_000)]
    taints = [Taint(key=f"k{number}", effect="NoSchedule") for number in range(10_000)]
    assert find_untolerated(taints, tolerations, effects=("NoSchedule",), comparison=True) is taints[0]
    known = Tolerations(tolerations, comparison=True)
    assert not any(map(known.cover, taints))
    assert Counted.looked_at < 100_000
