"""`rejoin produce`: its options. Showing them must not import the client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

app: Final = App(name="produce", help="Write lines to a topic, a record for each.", version_flags=[])


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """What can be given on the command line. The texts are those of ``--help``."""

    topic: Annotated[str, Parameter(name=["--topic", "-t"])]
    """The topic to write to."""
    file: Annotated[Path | None, Parameter(name=["--file", "-f"])] = None
    """A file with the lines. The default is the standard input."""
    bootstrap: Annotated[str, Parameter(name=["--bootstrap", "--bootstrap-server"])] = "http://127.0.0.1:9095"
    """Nodes to ask first, several with commas: HOST:PORT speaks Kafka's protocol, http://HOST:PORT HTTP."""
    key_separator: str | None = None
    """What stands before it in a line is the key, what stands behind it the value. \\t is a tab."""
    header_separator: str | None = None
    """What stands before it in a line are headers, as NAME:VALUE,NAME:VALUE. It comes before the key."""
    header: Annotated[list[str] | None, Parameter(name=["--header", "-H"], negative=())] = None
    """A header of every record, as NAME=VALUE; may be given several times."""
    null_marker: str | None = None
    """A key or value that is exactly this text is null."""
    partition: int | None = None
    """Write to this partition. The default is that of the key, or a sticky one without a key."""
    rate: float | None = None
    """Records a second. The default is as fast as they are taken."""
    acks: str | None = None
    """all (in-sync replicas have it), 1 (the leader has it) or 0 (it was sent). The default is all."""
    idempotent: Annotated[bool | None, Parameter(negative="--no-idempotent")] = None
    """Write each record exactly once and in order. The default is yes with --acks all."""
    compression: str | None = None
    """none, gzip, snappy, lz4 or zstd."""
    setting: Annotated[list[str] | None, Parameter(name=["-c", "--setting"], negative=())] = None
    """Any other producer setting, as NAME=VALUE with Kafka's name."""
    progress: Annotated[bool | None, Parameter(negative="--no-progress")] = None
    """Show how far it has come on the standard error. The default is yes on a terminal."""


@app.default
def run(options: ProduceOptions) -> int:
    """Write lines until the input ends. SIGTERM and Ctrl-C stop reading; what was sent may still be stored."""
    from rejoin.client.commands import producing  # noqa: PLC0415 (the client, which --help can do without)

    return producing.run(options)
