"""`rejoin assign`: what an assignor would do, step by step. It needs no server."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

app = App(name="assign", help="Show what an assignor assigns, and what moves when the group changes.")


@app.default
def assign(
    *,
    topics: Annotated[str, Parameter(metavar="TOPIC:PARTITIONS,...")],
    members: Annotated[str, Parameter(metavar="MEMBER,...")],
    assignor: Annotated[str, Parameter(metavar="ASSIGNOR")] = "range",
    then: Annotated[list[str] | None, Parameter(negative=(), metavar="STEP")] = None,
    compare: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Show what an assignor assigns, and what moves when the group changes.

    Parameters
    ----------
    topics
        Topics with their numbers of partitions, such as orders:12,clicks:6.
    members
        Members in the order in which they join, such as a,b,c. a:orders+clicks subscribes to two topics only.
    assignor
        range, roundrobin, sticky, cooperative-sticky, the name of an entry point, or module:Class.
    then
        A change of the group: leave:b, join:d, join:d:orders+clicks, subscribe:a:clicks or grow:orders:18. May be given
        several times, in order.
    compare
        Show Kafka's four assignors side by side.
    as_json
        Print JSON.
    """
    from rejoin.client.commands import assigning  # noqa: PLC0415 (the assignors, which --help can do without)

    return assigning.run(topics, members, assignor, then or [], compare=compare, as_json=as_json)
