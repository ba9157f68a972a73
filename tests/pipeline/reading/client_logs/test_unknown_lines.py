"""Lines that no known version of a client prints: those about a group are in the quarantine, for every client."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from rejoin.journal.kafka_logs.clients import names
from rejoin.journal.kafka_logs.clients.details import DETAILS
from rejoin.pipeline.reading.client_logs import families
from rejoin.pipeline.reading.coverage import Coverage
from rejoin.pipeline.reading.log_files import read_file

TIME: Final = "2025-03-09 07:05:03,250"
LAYOUTS: Final = {
    names.JAVA: TIME + " INFO [Consumer clientId=c-1, groupId=bills] {} (org.apache.kafka.clients.Any)",
    names.RDKAFKA: "%7|1741503903.250|ANY|c-1#consumer-1| [thrd:main]: {}",
    names.KAFKA_PYTHON: TIME + " INFO kafka.coordinator.consumer: {}",
    names.AIOKAFKA: TIME + " INFO aiokafka.consumer.group_coordinator: {}",
    names.KAFKAJS: '{{"level":"INFO","timestamp":"2025-03-09T07:05:03.250Z","logger":"kafkajs",'
    '"message":"[Consumer] {}","groupId":"bills"}}',
    names.FRANZ_GO: TIME + " [INFO] {}; group: bills",
    names.SARAMA: "[sarama] 2025/03/09 07:05:03 client/coordinator {}",
    names.BROD: TIME + " [info] Group member (bills,coor=#PID<0.1.0>,cb=#PID<0.2.0>,generation=3):\n{}",
    names.SMALLRYE: TIME + " INFO SRMSG19999: {}",
    names.STREAMS: TIME + " INFO stream-thread [bills-0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f-StreamThread-1] {}",
    names.SPRING: TIME + " INFO o.s.k.l.KafkaMessageListenerContainer : {}",
    names.RUBY: TIME + " INFO [bills] {{orders: 0}}: Joining group `bills`, and {}",
}
"""A line of each client, in a layout in which it says which client wrote it."""
OF_A_GROUP: Final = (
    "the group dances until the moon is full",
    "a rebalance of the purple kind has come",
    "generation 4 is no good, says the coordinator",
)
OF_NOTHING: Final = "sleeping between two batches of mangoes"
OF_NO_GROUP: Final = LAYOUTS | {
    names.FRANZ_GO: TIME + " [INFO] {}; broker: 4",
    names.SARAMA: "[sarama] 2025/03/09 07:05:03 consumer/broker/4 {}",
    names.BROD: TIME + " [info] client bills: {}",
    names.RUBY: TIME + " INFO [bills] {{orders: 0}}: {}",
}
"""Lines in a layout that does not name a group, for clients that have such lines."""


def read(log: Path, text: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The broken lines of a file, and the file's counts."""
    log.write_text(text)
    rows = list(read_file(str(log)))
    broken = [row | orjson.loads(row["body"]) for row in rows if row["what"] == "broken"]
    return broken, orjson.loads(rows[-1]["body"])


def test_every_family_has_a_layout() -> None:
    assert set(LAYOUTS) == set(families.FAMILIES)
    assert set(DETAILS) <= set(LAYOUTS)


@pytest.mark.parametrize("text", OF_A_GROUP)
@pytest.mark.parametrize("family", LAYOUTS)
def test_an_unknown_line_about_a_group_is_in_the_quarantine(family: str, text: str, tmp_path: Path) -> None:
    line = LAYOUTS[family].format(text)
    broken, counts = read(tmp_path / "app.log", f"{TIME} INFO starting\n{line}\n")
    assert [(row["line"], row["file"]) for row in broken] == [(2, str(tmp_path / "app.log"))]
    assert "line about its group that no known version prints" in broken[0]["reason"]
    assert text in broken[0]["text"]
    assert (counts["broken"], counts["statements"]) == (1, 0)


@pytest.mark.parametrize("family", LAYOUTS)
def test_an_unknown_line_about_something_else_is_not(family: str, tmp_path: Path) -> None:
    broken, counts = read(tmp_path / "app.log", OF_NO_GROUP[family].format(OF_NOTHING) + "\n")
    assert (broken, counts["broken"], counts["statements"]) == ([], 0, 0)
    assert counts["other"] + counts["continuations"] == counts["lines"]


def test_the_coverage_sentence_counts_what_the_quarantine_has(tmp_path: Path) -> None:
    """All clients in one file: known lines, unknown ones about groups, and others."""
    lines = [layout.format(text) for layout in LAYOUTS.values() for text in OF_A_GROUP]
    lines += [layout.format(OF_NOTHING) for layout in OF_NO_GROUP.values()]
    broken, counts = read(tmp_path / "app.log", "\n".join(lines) + "\n")
    coverage = Coverage()
    coverage.add_files([counts])
    assert coverage.not_known == len(broken) == len(LAYOUTS) * len(OF_A_GROUP)
    assert len({row["line"] for row in broken}) == len(broken)
    assert f"{len(broken)} not known" in coverage.sentences()[0]
    # brod's text is below the line with its group.
    assert coverage.lines - coverage.used - coverage.not_known == len(OF_NO_GROUP) + len(OF_A_GROUP)
