"""Tables of a stream of events. The cost of a step depends on its new events, not on earlier ones.

    events of a step ──> rows of this step: with the events that are still needed, by the functions of a report
                          ├─ settled: appended to their table once and for all, when their group is inactive
                          └─ open: written again with the next step

A group is inactive when it had no event for two minutes, and for longer than its sessions. Then only those of its
events are kept on which later rows depend (:mod:`still_needed`): events of its present members, of their partitions,
and of the last rebalances. A group that is never inactive keeps all events, except for records and commits.
"""
