"""The journal of a proxy as the laboratory shows it."""

from __future__ import annotations

from pathlib import Path

from rejoin.simulation.commands.actions import recording_of
from tests.proxy.lives import life


async def test_the_laboratory_draws_the_groups_of_a_proxys_journal(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        member = await one.member("app")
        await member.send_join()
        await one.broker.wait_for_group("g", waiting=1)
        await one.broker.advance_to_next()
        await member.joined()
        await member.sync({member.member_id: {"orders": [0, 1]}})
    recording = recording_of(one.seen)
    assert recording.groups == ["g"]
    piece = recording.piece("g")
    assert [row[3] for row in piece["groups"]][-1] == "Stable"
    assert {(row[2], row[3], row[4]) for row in piece["owners"]} == {("orders", 0, "app"), ("orders", 1, "app")}
