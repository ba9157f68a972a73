"""The records of consumer groups, of all key types and their tombstones, through ``rejoin log``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from rejoin.coordinator.commands.log.command import dump, export, import_, verify
from rejoin.coordinator.storage.codec import decode
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from tests.coordinator.commands.log.logs import Run
from tests.coordinator.storage.helpers import Sqlite
from tests.protocol.test_consumer_group_records import KAFKAS, entry_of

CONSUMER_GROUPS: Final = {3, 4, 5, 6, 7, 8, 16}


def filled(folder: Path) -> None:
    """Make a log of the records that Kafka's converters have seen."""

    async def fill() -> None:
        store = Sqlite(folder)
        await store.start()
        epoch = await store.elect(0)
        for kafkas in KAFKAS:
            (record,) = decode(OFFSETS_TOPIC, [entry_of(kafkas)])
            assert await store.append(0, epoch, record) is ErrorCode.NONE
        await store.close()

    asyncio.run(fill())


def as_dumped(kafkas: dict[str, Any]) -> Any:
    """A record as Kafka's formatter of groups prints it."""
    value = kafkas["value"]
    return {
        "key": {"version": kafkas["type"], "data": kafkas["key"]},
        "value": None if value is None else {"version": kafkas["version"], "data": value},
    }


def test_a_copy_of_consumer_groups_has_all_their_records(tmp_path: Path, run: Run) -> None:
    assert {each["type"] for each in KAFKAS} >= CONSUMER_GROUPS
    assert {each["type"] for each in KAFKAS if each["value"] is None} >= CONSUMER_GROUPS
    filled(tmp_path / "data")
    exported = run(export, data=tmp_path / "data")[1]
    (tmp_path / "export").write_text(exported)
    code, said, _ = run(import_, str(tmp_path / "export"), data=tmp_path / "copy")
    assert code == 0
    assert said.startswith(f"{len(KAFKAS)} records from")
    assert run(verify, data=tmp_path / "copy")[0] == 0
    assert run(export, data=tmp_path / "copy")[1] == exported
    dumped = run(dump, data=tmp_path / "copy")[1]
    assert [json.loads(line) for line in dumped.splitlines()] == [as_dumped(each) for each in KAFKAS]
