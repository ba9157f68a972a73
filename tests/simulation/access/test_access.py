"""ACLs and quotas in a scenario: the one of docs/scenarios.md, as it stands there."""

from __future__ import annotations

import re

import pytest

from rejoin.journal.events.base import Event
from rejoin.journal.events.simulation import ConsumerFailed, ConsumerStarted
from rejoin.simulation.kernel import Actor, SelectiveListener
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import BadScenario, scenario_from
from tests.docs.texts import TEXTS

(TEXT,) = re.findall(r"(?s)```yaml\n(.*?)```", TEXTS["docs/scenarios.md"].partition("## Denials and quotas")[2])


def test_members_are_refused_while_the_acl_is_there_and_the_producer_sends_less_often() -> None:
    seen: list[tuple[int, Event]] = []

    def on_event(_: Actor, event: Event, now: int) -> None:
        seen.append((now, event))

    kinds = [ConsumerFailed, ConsumerStarted]
    _, summary = play(scenario_from(TEXT), 1, listeners=[SelectiveListener(on_event, kinds)])
    failed = [at for at, event in seen if isinstance(event, ConsumerFailed)]
    assert len(failed) == 8, "two members, and three times after a restart"
    assert 120_000 < min(failed) <= max(failed) < 240_000
    started = [at for at, event in seen if isinstance(event, ConsumerStarted)]
    assert len([at for at in started if at > 240_000]) == 2
    producer = summary.producers["shop"]
    assert producer.requests < 3_600 / 2, "without a quota each of its 3,600 records goes alone"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    authorizer.class.name: org.apache.kafka.metadata.authorizer.StandardAuthorizer\n", "", "an authorizer"),
        ("deny User:app:READ:group=orders-app", "deny User:app:FLY:group=orders-app", "'FLY'"),
        ("producer_byte_rate=200", "producer_byte_rate=many", "no limit"),
    ],
)
def test_mistakes_are_reported(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(BadScenario, match=message):
        scenario_from(TEXT.replace(old, new, 1))
