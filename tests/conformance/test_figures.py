"""The figures in the documents are those of the recordings, and of the replay."""

from __future__ import annotations

import gzip

import pytest

from rejoin.conform.recordings.reading import SETS, read_set
from tests import paths
from tests.conform.mutations import MUTATIONS
from tests.conformance.golden import PATHS, recordings
from tests.conformance.groups.test_recorded_groups import SCRIPTS
from tests.conformance.members.test_moving_lives import LIVES
from tests.conformance.transactions.recorded_scripts import RECORDED, scripts_of
from tests.conformance.transactions.test_recorded_brokers import SCRIPTS as SCRIPTS_OF_THREE
from tests.docs.texts import TEXTS

PAGE = TEXTS["docs/conformance.md"]


def test_the_number_of_scripts_and_requests_is_that_of_the_recordings() -> None:
    requests = sum(len(played.exchanges) for played in recordings())
    assert PAGE.startswith(f"# Compared with a real Kafka\n\n{len(PATHS)} scripts ({requests:,} requests) were played")
    assert f"replays {len(PATHS)} recordings" in TEXTS["COVERAGE.md"]
    assert f"- {len(PATHS)} scripts recorded" in TEXTS["README.md"]
    (version,) = {played.kafka for played in recordings()}
    for name in ("docs/conformance.md", "COVERAGE.md", "README.md"):
        assert f"Apache Kafka {version}" in TEXTS[name]


def test_the_number_of_scripts_about_transactions_is_that_of_the_recordings() -> None:
    count = sum(len(list(scripts_of(path))) for path in RECORDED)
    of_three = len(SCRIPTS_OF_THREE)
    words = f"- {count} scripts about producers and transactions, {of_three} of them on three brokers"
    assert words in " ".join(TEXTS["README.md"].split())


def test_the_number_of_scripts_of_consumer_groups_is_that_of_the_recordings() -> None:
    random = sum(name.startswith("moves-") for name in SCRIPTS)
    words = f"{len(SCRIPTS)} scripts of consumer groups, {random} of them random migrations, and {len(LIVES)} groups"
    assert f"- {words} that Java" in " ".join(TEXTS["README.md"].split())


@pytest.mark.parametrize(
    ("recording", "claim"),
    [
        ("coordinator.jsonl.gz", "- {} random sequences recorded on Apache Kafka's coordinator"),
        ("consumer-groups.jsonl.gz", "coordinator, and {} with groups of KIP-848"),
        ("assignors.jsonl.gz", "give the {} recorded answers of Kafka's own classes"),
    ],
)
def test_the_number_of_sequences_and_answers_is_that_of_the_recordings(recording: str, claim: str) -> None:
    with gzip.open(paths.GOLDEN / recording) as lines:
        count = sum(1 for _ in lines)
    assert claim.format(f"{count:,}") in " ".join(TEXTS["README.md"].split())


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    _, _, below = TEXTS[page].partition(f"\n## {heading}\n")
    lines = [line for line in below.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_the_results_of_judged_brokers_add_up() -> None:
    played = sum(script.unplayable is None for name in SETS for script in read_set(name))
    rows = rows_of("docs/conform.md", "Results")
    assert [name.split(" ")[0] for name, *_ in rows] == ["Apache", "Rejoin", "kfake", "mock", "Tansu"]
    for _, *counts, not_applicable in rows:
        *sets, (equal, of) = (tuple(map(int, count.split(" of "))) for count in counts)
        assert len(sets) == len(SETS)
        assert (equal, of) == (sum(each for each, _ in sets), sum(each for _, each in sets))
        assert of + int(not_applicable) == played


def test_each_broken_rule_is_found_by_a_script_that_exists() -> None:
    names = {script.full_name for of_set in SETS for script in read_set(of_set)}
    rows = rows_of("docs/conform.md", "Broken rules")
    assert [rule for rule, *_ in rows] == [mutation.words for mutation in MUTATIONS]
    assert {script.strip("`") for _, script, _ in rows} <= names
