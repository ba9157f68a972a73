"""The tables of ``rejoin groups``, without a coordinator."""

from __future__ import annotations

from rejoin.client.admin import GroupDescription
from rejoin.client.commands.groups import tables
from rejoin.client.core.effects import Endpoint


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
