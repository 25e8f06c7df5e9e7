"""The index of tolerations, compared with a search of all tolerations."""

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
def test_the_index_equals_a_search_of_all_tolerations(
    tolerations: list[Toleration], taint: Taint, comparison: bool
) -> None:
    index = Tolerations(tolerations, comparison=comparison)
    assert index.cover(taint) == any(tolerates(toleration, taint, comparison=comparison) for toleration in tolerations)


def test_the_index_compares_each_key_once() -> None:
    class Counted(str):
        comparisons = 0

        def __eq__(self, other: object) -> bool:
            Counted.comparisons += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    tolerations = [Toleration(key=Counted(f"t{number}"), operator="Exists") for number in range(10_000)]
    taints = [Taint(key=f"k{number}", effect="NoSchedule") for number in range(10_000)]
    assert find_untolerated(taints, tolerations, effects=("NoSchedule",), comparison=True) is taints[0]
    index = Tolerations(tolerations, comparison=True)
    assert not any(map(index.cover, taints))
    assert Counted.comparisons < 100_000
