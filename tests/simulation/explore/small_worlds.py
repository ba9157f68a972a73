"""A small world of each kind of group."""

from __future__ import annotations

from typing import Final

from rejoin.simulation.explore.world import world_from
from rejoin.simulation.scenario.model import Scenario

_GROUP: Final = "topics: [t], consumers: 2, poll: 100h, metadata_max_age: 100h"
_TOPIC: Final = "topics: {t: {partitions: 2}}"
_FINITE: Final = "topics: {t: {partitions: 1, records_per_second: 1, until: 2s}, u: {partitions: 1}}"

WORLDS: Final = {
    "classic": f"""
{_TOPIC}
groups: {{g: {{{_GROUP}, commit: none}}}}
events: [{{at: 0, crash: {{who: g-1}}}}]
explore: {{faults: 1, lost_answers: true, lost_requests: true}}
""",
    "static": f"""
{_TOPIC}
groups: {{g: {{{_GROUP}, commit: none, static: true}}}}
events: [{{at: 0, crash: {{who: g-1, down: 1s}}}}]
explore: {{faults: 2, after: 10s}}
""",
    "stable": f"""
{_TOPIC}
groups: {{g: {{{_GROUP}, commit: none}}}}
events: [{{at: 0, stop: {{who: g-1, down: 1s}}}}]
explore: {{faults: 1, after: 20s, lost_requests: true}}
""",
    "consumer": f"""
{_TOPIC}
groups: {{g: {{{_GROUP}, commit: none, protocol: consumer}}}}
events: [{{at: 0, crash: {{who: g-1}}}}]
explore: {{faults: 1, lost_answers: true}}
""",
    "migrating": f"""
{_TOPIC}
groups: {{g: {{{_GROUP}, commit: none}}}}
events: [{{at: 0, deploy: {{group: g, every: 1s, down: 1s, protocol: consumer, count: 1}}}}]
explore: {{faults: 1, after: 20s}}
""",
    "share": f"""
topics: {{t: {{partitions: 1}}}}
producers: {{p: {{topics: [t], records_per_second: 1, until: 2s}}}}
groups: {{g: {{{_GROUP}, protocol: share, commit: after, processing: 10ms}}}}
explore: {{faults: 1, lost_answers: true}}
""",
    "share failover": """
topics: {t: {partitions: 1}}
producers: {p: {topics: [t], records_per_second: 1, until: 1s, idempotence: false}}
groups: {g: {topics: [t], consumers: 1, protocol: share, commit: after, processing: 1s, start: {after: 1s}}}
coordinator: {nodes: 2, settings: {share.coordinator.snapshot.update.records.per.snapshot: 1}}
events: [{at: 0, move: {topic: __share_group_state}}]
explore: {faults: 1, after: 7s, appends: true}
""",
    "streams": f"""
{_TOPIC}
groups:
  g:
    {{{_GROUP}, protocol: streams, streams: {{commit_interval: 100h, subtopologies: [{{writes: w}}, {{reads: w}}]}}}}
events: [{{at: 0, crash: {{who: g-1, down: 1s}}}}]
explore: {{faults: 1}}
""",
    "transactions": f"""
{_FINITE}
groups: {{g: {{{_GROUP}, commit: transaction, processing: 20ms, transform: {{to: u}}}}}}
readers: {{r: {{topics: u, isolation: read_committed}}}}
explore: {{faults: 1, lost_answers: true}}
""",
    "crash": f"""
{_FINITE}
groups: {{g: {{{_GROUP}, commit: transaction, transform: {{to: u, linger: 0, transaction_timeout: 5s}}}}}}
readers: {{r: {{topics: u, isolation: read_committed}}}}
coordinator: {{nodes: 2}}
events:
- {{at: 0, crash: {{who: g-1, down: 0}}}}
- {{at: 0, move: {{topic: __transaction_state}}}}
explore: {{faults: 2, after: 3001ms}}
""",
    "producer": """
topics: {t: {partitions: 1}}
groups: {}
producers: {p: {topics: [t], records_per_second: 1000, until: 2ms, batch_size: 1, linger: 0}}
coordinator: {nodes: 2}
events: [{at: 0, move: {topic: t}}]
explore: {faults: 2, lost_requests: true, lost_answers: true}
""",
    "growing": f"""
{_TOPIC}
groups: {{g: {{{_GROUP.replace("100h", "7s", 2).replace("poll: 7s", "poll: 100h")}}}}}
events: [{{at: 0, grow: {{topic: t, to: 3}}}}]
explore: {{faults: 1, after: 10s}}
""",
    "failover": f"""
{_TOPIC}
groups: {{g: {{{_GROUP}, commit: none}}}}
coordinator: {{nodes: 2}}
events: [{{at: 0, failover: {{group: g, zombie: 1s}}}}]
explore: {{faults: 1}}
""",
    "appends": f"""
{_TOPIC}
groups: {{g: {{{_GROUP}, commit: none}}}}
explore: {{faults: 1, appends: true, failing_appends: true, slow: true}}
""",
}


def small_world(name: str) -> Scenario:
    """A world by its name."""
    return world_from(WORLDS[name], name)
