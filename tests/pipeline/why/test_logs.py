"""``rejoin why GROUP FILE`` of logs: a consumer's own log is enough for what the consumer says of itself."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Final

import pytest

from rejoin.pipeline.commands.parser import report, why
from rejoin.pipeline.why import logs
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.logs import LARGEST
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import GroupStory, SourceProblem
from tests.paths import GOLDEN
from tests.pipeline.reading.peeling.wrappers import WRAPPERS

LATE: Final = "java-late-and-back.log"
LOGS: Final = GOLDEN / "public-logs"
CASES: Final = {
    f"{row['file']} {row['group']}": row for row in map(json.loads, (LOGS / "expected.jsonl").read_text().splitlines())
}
"""Logs in the forms in which people post them: what must and what must not be said of each."""


def story_of(path: Path, text: str, group: str = "bills") -> GroupStory:
    log = path / "app.log"
    log.write_text(text)
    return open_source(log).story(group)


@pytest.mark.parametrize("name", CASES)
def test_a_consumers_own_log_is_enough(name: str) -> None:
    case = CASES[name]
    found = open_source(LOGS / case["file"]).story(case["group"]).findings
    assert [row["finding"] for row in found][:1] == ([case["finding"]] if case["finding"] else [])
    said = " ".join(str(row[part]) for row in found for part in ("title", "text", "setting", "advice"))
    assert not [words for words in case["says"] if words not in said]
    assert not [words for words in case["never"] if words in said]


@pytest.mark.parametrize("wrapper", ["kubectl --prefix", "Markdown", "docker's JSON", "Datadog's CSV", "grep -n"])
def test_lines_in_a_wrapper_say_the_same(wrapper: str, tmp_path: Path) -> None:
    text = (LOGS / LATE).read_text()
    wrapped = "".join(f"{WRAPPERS[wrapper](line, nth)}\n" for nth, line in enumerate(text.splitlines()))
    titles = [[row["title"] for row in story_of(tmp_path, each).findings] for each in (text, wrapped)]
    assert titles[0] == titles[1]


def test_the_newest_line_may_be_the_first(tmp_path: Path) -> None:
    text = (LOGS / LATE).read_text()
    turned = "".join(f"{line}\n" for line in reversed(text.splitlines()))
    assert story_of(tmp_path, turned).findings[0]["text"] == story_of(tmp_path, text).findings[0]["text"]


def test_how_many_lines_were_used_is_noted(tmp_path: Path) -> None:
    late = (LOGS / LATE).read_text().splitlines()[0]
    read = story_of(tmp_path, f"starting\n{late}\n2025-03-09 07:06:00.000 INFO App - x\n").read
    assert read == ["3 lines: 1 used, 2 of other components"]


def test_what_was_concluded_about_a_file_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (LOGS / LATE).read_text().splitlines(keepends=True)
    log = tmp_path / "turned.log"
    log.write_text("".join(reversed(lines)))
    assert why(str(log)) == 0
    first = " ".join(capsys.readouterr().out.split("group ")[0].split())
    assert first.startswith(f"read {len(lines)} lines: {len(lines)} used; the log of 1 member; turned.log: the newest")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("INFO:kafka.coordinator:(Re-)joining group parcels", "no times"),
        ("Mar  9 07:05:03 host app[1]: (Re-)joining group parcels", "no year"),
        ("2025-03-09 07:05:03,000 INFO (Re-)joining group parcels", "1 by the text alone, inferred"),
    ],
)
def test_times_and_lines_that_are_guessed_are_named(line: str, said: str, tmp_path: Path) -> None:
    assert said in "; ".join(story_of(tmp_path, f"{line}\n", "parcels").read)


def test_members_that_a_leader_lists_and_whose_log_is_not_there_are_counted(tmp_path: Path) -> None:
    about = "INFO [Consumer clientId=b-1, groupId=bills] "
    logger = " (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
    given = ", ".join(
        f"b-{n}-{n}a1f2e0c-7d1c-4b7e-9a51-0c7d53b1f6e{n}=Assignment(partitions=[t-{n}])" for n in (1, 2, 3)
    )
    joined = (
        "Successfully joined group with generation Generation{generationId=4, "
        "memberId='b-1-1a1f2e0c-7d1c-4b7e-9a51-0c7d53b1f6e1', protocol='range'}"
    )
    text = "".join(
        f"[2025-03-09 07:05:0{nth},000] {about}{said}{logger}\n"
        for nth, said in enumerate(
            ("(Re-)joining group", joined, f"Finished assignment for group at generation 4: {{{given}}}")
        )
    )
    assert story_of(tmp_path, text).read == ["3 lines: 3 used; 1 of at least 3 members has its log"]


@pytest.mark.parametrize("text", ["2025-03-09 07:05:03 INFO nothing at all\n", "\x00\x01\n", "group\n"])
def test_a_log_without_a_group_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(SourceProblem, match=r"nothing about consumer groups in there \(1 line: 0 used"):
        story_of(tmp_path, text)


def test_more_than_this_process_should_read_is_for_a_report(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    with log.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(SourceProblem, match=r"128 MB of logs; expected at most 128 MB\. First run rejoin report"):
        open_source(log)


def test_more_lines_about_groups_than_this_process_should_read_are_for_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (LOGS / LATE).read_text()
    monkeypatch.setattr(logs, "MOST_LINES", len(text.splitlines()))
    assert story_of(tmp_path, text).findings
    with pytest.raises(SourceProblem, match=r"more than 5 lines about groups\. Give a part of the log; or run rejoin"):
        story_of(tmp_path, text + text)


def test_the_path_alone_is_enough_where_there_is_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert why(str(LOGS / LATE)) == 0
    assert "b-1 did not poll in time" in capsys.readouterr().out


def test_of_several_groups_one_has_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "app.log"
    text = (LOGS / LATE).read_text()
    log.write_text(text + text.replace("groupId=bills", "groupId=mails"))
    assert why(str(log)) == 2
    assert f"{log}: has 2 groups (bills, mails); name one: rejoin why GROUP {log}" in capsys.readouterr().err


def test_a_log_may_come_on_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("bills", Path("-")), ("-",)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((LOGS / LATE).read_bytes())))
        assert why(*arguments) == 0
        assert "b-1 did not poll in time" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "x\n2025-03-09 07:05:03,000 INFO the consumer went home\n",
            "line 2 of app.log: '2025-03-09 07:05:03,000 INFO the",
        ),
        ("2025-03-09 07:05:03,000 INFO the consumer went home\n", "begins with a time, as log4j"),
        ('{"words":"the consumer went home"}\n', "looks like JSON"),
        ("a,b,c\n1,2,the consumer went home\n", "nearest known layout is CSV"),
        ("a|b|the consumer went home\n", "looks like fields with |"),
        ("<p>the consumer went home</p>\n", "looks like HTML or XML"),
        ("a=1 b=2 c=consumer\n", "looks like key=value pairs"),
        ("host-1 07:05:03 the consumer went home\n", "has a time, but other text before it"),
        ("the consumer went home\n", "begins with no known time; the nearest known layout is"),
        ("2025-03-09 07:05:03 INFO nothing at all\n", "No line could be a client's. The first is line 1 of app.log"),
    ],
)
def test_a_refusal_names_the_line_that_could_be_a_clients_and_its_layout(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SourceProblem) as refused:
        story_of(tmp_path, text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "[Consumer clientId=b-1, groupId=bills] Successfully joined group with generation {}",
        "[Consumer clientId=b-1, groupId=bills] Setting newly assigned partitions [bills-2, bills-{}]",
        "[Consumer clientId=b-1, groupId=bills] Setting offset for partition bills-2 to the committed offset {}",
    ],
)
@pytest.mark.parametrize("digits", [11, 19, 30, 400])
def test_a_number_that_is_too_large_spoils_its_line_alone(text: str, digits: int, tmp_path: Path) -> None:
    begins, ends = "[2025-03-09 07:05:00,000] INFO", f"({CONSUMER_COORDINATOR})\n"
    joining = f"{begins} [Consumer clientId=b-1, groupId=bills] (Re-)joining group {ends}"
    (tmp_path / "app.log").write_text(f"{joining}{begins} {text.format('9' * digits)} {ends}")
    assert [group.group_id for group in open_source(tmp_path / "app.log").groups()] == ["bills"]
    assert report([tmp_path / "app.log"], out=tmp_path / "out") == 0


CONSUMER_COORDINATOR: Final = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"


def test_a_known_line_that_says_nothing_of_a_group_is_not_called_unknown(tmp_path: Path) -> None:
    line = (
        "2023-05-04 02:10:40.511 INFO  o.a.k.s.p.internals.TaskManager - stream-thread "
        "[pays-91c7be02-4f0d-4e6a-b1a7-2d5b60a1c3f4-StreamThread-2] task [0_1] Suspended RUNNING\n"
    )
    with pytest.raises(SourceProblem) as refused:
        story_of(tmp_path, line)
    assert "(1 line: 1 used). The lines that are used are those of a known client" in str(refused.value)
    assert "no known client" not in str(refused.value)


def test_a_file_of_several_layouts_is_read_whole(tmp_path: Path) -> None:
    lines = (
        "[2025-03-09 07:05:00,000] INFO [Consumer clientId=b-1, groupId=bills] (Re-)joining group "
        "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)",
        json.dumps(
            {
                "@timestamp": "2025-03-09T07:05:02.000Z",
                "level": "INFO",
                "logger_name": "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator",
                "message": "[Consumer clientId=b-1, groupId=bills] Successfully joined group with generation 7",
            }
        ),
        "%4|1741503904.000|MAXPOLL|b-2#consumer-1| [thrd:main]: Application maximum poll interval (45000ms) exceeded "
        "by 120ms (adjust max.poll.interval.ms for long-running message processing): leaving group",
    )
    log = tmp_path / "app.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    source = open_source(log)
    stories = [source.story(each.group_id) for each in source.groups()]
    assert stories[0].read[0].startswith("3 lines: 3 used")
    assert {row["generation_to"] for story in stories for row in story.rebalances} == {7}
    assert "max-poll-exceeded" in {row["finding"] for story in stories for row in story.findings}


def test_what_was_recognised_by_its_text_alone_is_inferred(tmp_path: Path) -> None:
    line = "2025-03-09 07:05:03,000 WARNING Heartbeat session expired, marking coordinator dead\n"
    line += "2025-03-09 07:05:03,000 WARNING Heartbeat: local member_id was not recognized; "
    line += "this consumer needs to re-join\n"
    found = story_of(tmp_path, line, "?").findings
    assert {row["confidence"] for row in found} == {"inferred"}
    late = story_of(tmp_path, (LOGS / "librdkafka-without-its-facility.log").read_text(), "?").findings[0]
    assert (late["confidence"], late["title"][:9]) == ("inferred", "Probably:")


def test_share_consumers_logs_alone_say_who_came_and_went() -> None:
    story = open_source(GOLDEN / "share-group-logs" / "billing-1.log").story("billing")
    so_far = [line for line in answer(story) if line.startswith("so far")]
    assert so_far == ["so far   1 member joined 2 times, up to epoch 5, and 1 left; share groups have no rebalances"]
