"""The tables of ``rejoin groups``, without a coordinator."""

from __future__ import annotations

from rejoin.client.admin.admin import GroupDescription, MemberDescription
from rejoin.client.commands.groups import tables
from rejoin.client.core.effects import Endpoint
from rejoin.protocol.types import TopicPartition


def test_a_table_has_no_control_characters() -> None:
    name = "\x1b[2Jgroup\r\n"
    group = GroupDescription(name, "Stable", "range", Endpoint(1, "127.0.0.1", 9095), ())
    for text in (
        tables.state(group),
        tables.member_state(GroupDescription(name, "Dead", "", group.coordinator, ()))[0],
    ):
        assert text is not None
        assert "\\x1b[2Jgroup\\r\\n" in text
        assert all(line.isprintable() for line in text.split("\n"))


def consumer_group(*members: MemberDescription, assignor: str = "uniform") -> GroupDescription:
    return GroupDescription("g", "Reconciling", assignor, Endpoint(1, "127.0.0.1", 9095), members, 12, 11)


def member(name: str, has: tuple[int, ...], target: tuple[int, ...], *, upgraded: bool) -> MemberDescription:
    def of(topic: str, partitions: tuple[int, ...]) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(topic, partition) for partition in partitions)

    return MemberDescription(
        f"{name}-id", None, name, "/127.0.0.1", of("t", has), of("u", target) + of("t", target), 10, upgraded
    )


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_members_of_a_consumer_group_have_epochs_and_targets_as_in_4() -> None:
    group = consumer_group(member("a", (10, 2), (2,), upgraded=True), member("b", (), (), upgraded=True))
    assert trimmed(tables.members(group, verbose=True)) == [
        "",
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     "
        "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT",
        "g               a-id            /127.0.0.1      a               2               "
        "10              t:2,10               11              t:2;u:2",
        "g               b-id            /127.0.0.1      b               0               "
        "10              -                    11              -",
    ]
    assert trimmed(tables.members(group, verbose=False))[1].endswith("#PARTITIONS")


def test_in_a_mixed_group_it_is_shown_who_is_upgraded() -> None:
    group = consumer_group(member("a", (0,), (0,), upgraded=True), member("b", (1,), (1,), upgraded=False))
    lines = trimmed(tables.members(group, verbose=True))
    assert [line.split()[-1] for line in lines[1:]] == ["UPGRADED", "true", "false"]


def test_the_state_of_a_consumer_group_has_its_epochs_as_in_4() -> None:
    assert trimmed(tables.state(consumer_group(assignor=""), verbose=True)) == [
        "",
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                GROUP-EPOCH     "
        "TARGET-ASSIGNMENT-EPOCH   #MEMBERS",
        "g               127.0.0.1:9095  (1)       -                    Reconciling          12              "
        "11                        0",
    ]
    assert trimmed(tables.state(consumer_group())) == [
        "",
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS",
        "g               127.0.0.1:9095  (1)       uniform              Reconciling          0",
    ]


def test_offsets_have_leader_epochs_where_they_were_committed() -> None:
    rows = [
        tables.OffsetRow("g", TopicPartition("t", 0), 5, 12, None, 3),
        tables.OffsetRow("g", TopicPartition("t", 1), None, 9, None),
    ]
    assert trimmed(tables.offsets(rows, epochs=True)) == [
        "",
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH    CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     HOST            CLIENT-ID",
        "g               t               0          3               5               12              7               "
        "-               -               -",
        "g               t               1          -               -               9               -               "
        "-               -               -",
    ]
