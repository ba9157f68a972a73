"""Known bugs of librdkafka, which the clients of many languages use. Versions are those of its CHANGELOG."""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.clients.names import RDKAFKA
from rejoin.pipeline.findings.known_bugs.bug import KnownBug
from rejoin.pipeline.findings.known_bugs.happenings import fatal_after_a_late_poll

_RELEASES: Final = "https://github.com/confluentinc/librdkafka/releases/tag/v"
_ISSUES: Final = "https://github.com/confluentinc/librdkafka/issues/"

RDKAFKA_BUGS: Final[tuple[KnownBug, ...]] = (
    KnownBug(
        "a bug of sessions, fixed in librdkafka 1.8.0",
        RDKAFKA,
        "the session ends though heartbeats are answered",
        since="1.6.0",
        fixed=("1.8.0",),
        sign="session-during-rebalance",
        shows="a session ended whose last heartbeat had been answered with a rebalance",
        does="answers that announce a rebalance do not prolong the session, so a rebalance that takes longer than "
        "session.timeout.ms throws the member out",
        cure="Until then, raise session.timeout.ms above the longest rebalance.",
        setting="session.timeout.ms",
        link=f"{_RELEASES}1.8.0",
    ),
    KnownBug(
        "a bug of timed commits, fixed in librdkafka 1.7.0",
        RDKAFKA,
        "the timer commits with an old generation",
        since="",
        fixed=("1.7.0",),
        sign="timed-commit-of-old-generation",
        shows="a commit of the timer was refused, as its generation was over",
        does="the timer commits in the middle of rebalances, too",
        cure="The commit when partitions are revoked is not affected.",
        link=f"{_RELEASES}1.7.0",
    ),
    KnownBug(
        "librdkafka #4059",
        RDKAFKA,
        "a commit during a cooperative rebalance loses the assignment",
        since="1.6.0",
        fixed=("2.10.0",),
        sign="lost-by-a-commit",
        shows="a consumer gave up all its partitions as lost, as a commit had an old generation",
        does="the second JoinGroup of a cooperative rebalance raises the generation while a commit is on its way, "
        "which is no reason to give up anything",
        link=f"{_ISSUES}4059",
    ),
    KnownBug(
        "librdkafka #3024",
        RDKAFKA,
        "the roundrobin assignor ends the process",
        since="1.5.0",
        fixed=("1.5.2",),
        sign="roundrobin-assert",
        shows="an assertion of the roundrobin assignor failed",
        does="some combinations of members and partitions end the process of the leader; the next leader ends likewise",
        cure="Until then, set partition.assignment.strategy to range.",
        setting="partition.assignment.strategy",
        link=f"{_ISSUES}3024",
    ),
    KnownBug(
        "a failed assertion, fixed in librdkafka 1.9.0",
        RDKAFKA,
        "metadata of another member ends the process",
        since="",
        fixed=("1.9.0",),
        sign="join-response-assert",
        shows="an assertion failed as the answer to a JoinGroup was read",
        does="a leader that gets member metadata which it cannot read ends its process",
        cure="Look for a member of another library, or with an assignor of its own, in the group.",
        link=f"{_RELEASES}1.9.0",
    ),
    KnownBug(
        "a failed assertion, fixed in librdkafka 1.7.0",
        RDKAFKA,
        "the process ends with an assertion as partitions are given up",
        since="1.6.0",
        fixed=("1.7.0",),
        sign="started-assert",
        shows="an assertion about a partition that had not been started failed",
        does="the process ends before it leaves the group, so that its partitions wait for a whole session",
        link=f"{_RELEASES}1.7.0",
    ),
    KnownBug(
        "librdkafka #5541",
        RDKAFKA,
        "a late poll is fatal in the consumer protocol",
        since="2.12.0",
        fixed=("2.15.0",),
        sign=fatal_after_a_late_poll,
        shows="a member did not poll in time, and its next heartbeat was refused as an invalid request",
        does="the member leaves before it has given up its partitions, and its way back ends in a fatal error",
        cure="Until then, create a new consumer after the fatal error, or use group.protocol=classic.",
        setting="group.protocol",
        link=f"{_ISSUES}5541",
    ),
)
