"""`rejoin assign`: what an assignor would do, step by step. It needs no server."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

app = App(name="assign", help="Show what each member reads under an assignor, and what moves when the group changes.")


@app.default
def assign(
    *,
    topics: str,
    members: str,
    assignor: str = "range",
    then: Annotated[list[str] | None, Parameter(negative=())] = None,
    compare: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Show what each member reads under an assignor, and what moves when the group changes.

    Parameters
    ----------
    topics
        Topics with their partition counts: orders:12,clicks:6
    members
        Members in the order they join: a,b,c. A member of some topics only: a:orders+clicks
    assignor
        range, roundrobin, sticky, cooperative-sticky, the name of an entry point, or module:Class.
    then
        A later step; may be given several times: leave:b, join:d, join:d:orders+clicks,
        subscribe:a:clicks, grow:orders:18.
    compare
        Show Kafka's four assignors side by side.
    as_json
        Print JSON.
    """
    from rejoin.client.commands import assigning  # noqa: PLC0415 (the assignors, which --help can do without)

    return assigning.run(topics, members, assignor, then or [], compare=compare, as_json=as_json)
