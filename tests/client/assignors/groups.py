"""Small groups for tests, and hypothesis strategies that draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from rejoin.client.assignors import Assignments, ClusterView, MemberSubscription, Partition
from rejoin.client.assignors.stickiness.user_data import encode_sticky_user_data
from rejoin.protocol.embedded.consumer_protocol import Subscription
from rejoin.protocol.types import TopicPartition

NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")
STICKY = ("sticky", "cooperative-sticky")


def member(
    *topics: str,
    owned: Sequence[Partition] = (),
    generation: int = -1,
    user_data: bytes | None = None,
    rack: str | None = None,
    instance: str | None = None,
) -> MemberSubscription:
    """A member with these topics."""
    held = tuple(TopicPartition(topic, number) for topic, number in owned)
    return MemberSubscription(Subscription(topics, user_data, held, generation, rack), instance)


def claiming(assignor: str, topics: Sequence[str], owned: Sequence[Partition], generation: int) -> MemberSubscription:
    """A member that says, in the way of this assignor, that it held these partitions."""
    if assignor == "sticky":
        return member(*topics, generation=generation, user_data=encode_sticky_user_data(owned, generation))
    return member(*topics, owned=owned, generation=generation)


def all_partitions(counts: Mapping[str, int]) -> list[Partition]:
    """Every partition there is."""
    return [(topic, number) for topic, count in counts.items() for number in range(count)]


def owners(assignments: Assignments) -> dict[Partition, str]:
    """Partition → member."""
    return {partition: member_id for member_id, given in assignments.items() for partition in given}


topic_counts = st.dictionaries(
    st.sampled_from([f"t{number}" for number in range(8)]), st.integers(0, 9), min_size=1, max_size=5
)
member_ids = st.lists(
    st.one_of(
        st.sampled_from([f"consumer-{number}" for number in range(20)]), st.text("abAB-", min_size=1, max_size=4)
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


@st.composite
def equal_groups(draw: st.DrawFn) -> tuple[ClusterView, dict[str, MemberSubscription]]:
    """Members that all want all topics."""
    counts = draw(topic_counts)
    return ClusterView(counts), {member_id: member(*sorted(counts)) for member_id in draw(member_ids)}


@st.composite
def differing_groups(draw: st.DrawFn) -> tuple[ClusterView, dict[str, MemberSubscription]]:
    """Members that want some of the topics each, perhaps none, some of them static."""
    counts = draw(topic_counts)
    wanted = st.lists(st.sampled_from(sorted(counts)), unique=True)
    return ClusterView(counts), {
        member_id: member(*draw(wanted), instance=draw(st.sampled_from([None, None, f"i-{number}"])))
        for number, member_id in enumerate(draw(member_ids))
    }
