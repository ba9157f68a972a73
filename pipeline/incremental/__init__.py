"""Tables of a stream of events: each step costs what it brings, and not what came before.

    events of a step ──> rows of this step: with the events that are still needed, by the functions of a report
                          ├─ settled: appended to their table once and for all, when their group is quiet
                          └─ open: written again with the next step

A group is quiet when nothing befell it for two minutes, and for longer than its sessions. Of all its events only those
are kept then that later rows depend on (:mod:`still_needed`): of the members that are there, of what they own, and of
the last rebalances. A group that never rests for so long keeps all of its events, but for records and commits.
"""
