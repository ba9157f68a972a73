"""Which client libraries a group's members use, and what each of them calls the way to go.

The request log has the library's name (KIP-511), and a member id begins with the client.id, which libraries fill with
their own name where the application sets none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.pipeline.findings.formatting import span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import MemberSession

_SHORTEST: Final = {
    False: ("group.min.session.timeout.ms", 6_000),
    True: ("group.consumer.min.session.timeout.ms", 45_000),
}
"""By whether members speak the consumer protocol: what bounds a shorter session timeout, and Kafka's default of it."""

JAVA: Final = "java"
LIBRDKAFKA: Final = "librdkafka"
KAFKA_PYTHON: Final = "kafka-python"
AIOKAFKA: Final = "aiokafka"

_SOFTWARE: Final = (
    ("apache-kafka-java", JAVA),
    ("rdkafka", LIBRDKAFKA),
    ("confluent-kafka", LIBRDKAFKA),
    ("aiokafka", AIOKAFKA),
    ("kafka-python", KAFKA_PYTHON),
)
_MEMBER_IDS: Final = (
    ("rdkafka-", LIBRDKAFKA),
    ("aiokafka-", AIOKAFKA),
    ("kafka-python-", KAFKA_PYTHON),
    ("consumer-", JAVA),
)


def family(session: MemberSession) -> str | None:
    """The library of a member; None where neither the request log nor its member id shows it."""
    software = (session.software or "").lower()
    named = next((name for words, name in _SOFTWARE if words in software), None)
    return named or next((name for begin, name in _MEMBER_IDS if session.member_id.startswith(begin)), None)


def families(history: GroupHistory) -> set[str]:
    """The libraries of a group's members, as far as they are known."""
    return {name for session in history.sessions if (name := family(session)) is not None}


def cooperative_assignor(history: GroupHistory) -> str | None:
    """Setting for cooperative rebalances, as the group's clients call it; None where they cannot."""
    known = families(history)
    if known == {AIOKAFKA}:
        return None
    if known == {JAVA}:
        return "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    return "cooperative-sticky"


def how_to_become_cooperative(history: GroupHistory, listed: bool) -> str:
    """The way from an eager assignor to a cooperative one. ``listed``: all members list it already."""
    eager = sorted({each.protocol for each in history.rebalances if history.is_eager(each) and each.protocol})
    known = families(history)
    java = (
        f"One rolling restart without {' and '.join(eager)} in partition.assignment.strategy is enough: all members "
        "list cooperative-sticky already."
        if listed
        else "That takes two rolling restarts: first add CooperativeStickyAssignor behind the present assignor, then "
        "take the old one away. Custom listeners must be ready for onPartitionsLost and for a revocation of some "
        "partitions only."
    )
    rdkafka = (
        "librdkafka refuses eager and cooperative assignors in one group, so there is no rolling way: stop all "
        "members, and start them again with cooperative-sticky alone."
    )
    if not known:
        return f"With Java clients: {java[0].lower()}{java[1:]} With librdkafka: {rdkafka} {CONSUMER_PROTOCOL}"
    ways = [text for name, text in ((JAVA, java), (LIBRDKAFKA, rdkafka)) if name in known]
    if KAFKA_PYTHON in known:
        ways.append("kafka-python has its CooperativeStickyAssignor since 3.0: change over as with Java clients.")
    if AIOKAFKA in known:
        ways.append("aiokafka has no cooperative assignor.")
    return f"{' '.join(ways)} {CONSUMER_PROTOCOL}"


CONSUMER_PROTOCOL: Final = (
    "With brokers and clients that have it (Kafka 4.0 and later), group.protocol=consumer is the other way: the broker "
    "then assigns, and members change over one by one."
)


def go_on_meanwhile(history: GroupHistory) -> str:
    """Advice on letting the other members continue during a rebalance; empty where they already do."""
    if history.is_cooperative or history.uses_consumer_protocol:
        return ""
    assignor = cooperative_assignor(history)
    if assignor is None:
        return ""
    return f" With {assignor.rsplit('.', 1)[-1]} the others go on meanwhile."


def session_timeout(history: GroupHistory) -> str:
    """The setting of the session timeout: the consumer's own, or the broker's for the consumer protocol."""
    return "group.consumer.session.timeout.ms" if history.uses_consumer_protocol else "session.timeout.ms"


def session_bound(history: GroupHistory) -> str:
    """Where the session timeout is set, and what bounds it."""
    if history.uses_consumer_protocol:
        return (
            "members of the consumer protocol cannot set it themselves: it is the broker's, or the group's "
            "consumer.session.timeout.ms, within group.consumer.max.session.timeout.ms"
        )
    return "group.max.session.timeout.ms of the broker must allow it"


def least_session(history: GroupHistory) -> str:
    """Setting that bounds session timeouts from below."""
    minimum, least = _SHORTEST[history.uses_consumer_protocol]
    heartbeats = "" if history.uses_consumer_protocol else ", nor three times heartbeat.interval.ms"
    return f"not below {minimum}, {least} by default{heartbeats}"


def shortest_already(history: GroupHistory, timeouts: Iterable[int]) -> str:
    """A sentence where the session timeout is one that brokers take by default and no shorter one; else empty."""
    known = max(timeouts, default=0)
    minimum, least = _SHORTEST[history.uses_consumer_protocol]
    if not 0 < known <= least:
        return ""
    return (
        f"{session_timeout(history)} is {span(known)} already: a shorter one would need a lower {minimum} of the "
        f"broker, too ({least} by default)."
    )


SURVIVING_ID: Final = (
    "a name that stays the same over restarts (in Kubernetes the ordinal of a StatefulSet; the name of a Deployment's "
    "pod changes with each rollout: then nothing is saved, and each partition waits a whole session for a member that "
    "never comes back)"
)
"""Names that are fit for group.instance.id."""
