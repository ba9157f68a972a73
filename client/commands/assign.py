"""`rejoin assign`: what an assignor would do, step by step. It needs no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from rejoin.error_lines import refuse

app = App(name="assign", help="Show what an assignor assigns, and what moves when the group changes.")


@app.default
def assign(
    *,
    topics: Annotated[str | None, Parameter(metavar="TOPIC:PARTITIONS,...")] = None,
    members: Annotated[str, Parameter(metavar="MEMBER,...")],
    streams: Annotated[Path | None, Parameter(metavar="TOPOLOGY")] = None,
    assignor: Annotated[str, Parameter(metavar="ASSIGNOR")] = "range",
    then: Annotated[list[str] | None, Parameter(negative=(), metavar="STEP")] = None,
    compare: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Show what an assignor assigns, and what moves when the group changes.

    Parameters
    ----------
    topics
        Topics of consumers with their numbers of partitions, such as orders:12,clicks:6.
    members
        Members in the order in which they join, such as a,b,c. a:orders+clicks subscribes to two topics only.
        With --streams, a@one,b@one are two members of the process one.
    streams
        A topology of Kafka Streams in YAML or JSON: subtopologies by name, each with tasks and stateful, and standbys.
        The broker's assignor of tasks is shown.
    assignor
        range, roundrobin, sticky, cooperative-sticky, the name of an entry point, or module:Class.
    then
        A change of the group: leave:b, join:d, join:d:orders+clicks, subscribe:a:clicks or grow:orders:18. May be given
        several times, in order. With --streams: leave:b, join:c@two, grow:SUBTOPOLOGY:TASKS or standbys:1.
    compare
        Show Kafka's four assignors side by side.
    as_json
        Print JSON.
    """
    if (streams is None) == (topics is None) or (streams is not None and (compare or assignor != "range")):
        return refuse("give either --topics or --streams; --assignor and --compare go with --topics")
    if topics is None or streams is not None:
        from rejoin.client.commands.streams import assigning as tasks  # noqa: PLC0415 (the assignor, as below)

        assert streams is not None, "one of the two is given"
        return tasks.run(streams, members, then or [], as_json=as_json)
    from rejoin.client.commands import assigning  # noqa: PLC0415 (the assignors, which --help can do without)

    return assigning.run(topics, members, assignor, then or [], compare=compare, as_json=as_json)
