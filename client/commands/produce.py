"""`rejoin produce`: its options. Showing them must not import the client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.client.commands.server_option import DEFAULT_SERVER

app: Final = App(name="produce", help="Write lines to a topic, one record for each.", version_flags=[])


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """Options of the command line. The texts are those of ``--help``."""

    topic: Annotated[str, Parameter(name=["--topic", "-t"], metavar="TOPIC")]
    """Topic to write to."""
    file: Annotated[Path | None, Parameter(name=["--file", "-f"], metavar="FILE")] = None
    """File with the lines. The default is the standard input."""
    bootstrap: Annotated[str, Parameter(name=["--bootstrap-server", "--bootstrap"], metavar="SERVER")] = DEFAULT_SERVER
    """Where to connect: HOST:PORT for Kafka's protocol, http://HOST:PORT for HTTP. Separate several with commas."""
    key_separator: Annotated[str | None, Parameter(metavar="TEXT")] = None
    """Text between the key and the value of a line. \\t is a tab."""
    header_separator: Annotated[str | None, Parameter(metavar="TEXT")] = None
    """Text after the headers of a line, which are NAME:VALUE,NAME:VALUE and stand before the key."""
    header: Annotated[list[str] | None, Parameter(name=["--header", "-H"], negative=(), metavar="NAME=VALUE")] = None
    """A header of every record; may be given several times."""
    null_marker: Annotated[str | None, Parameter(metavar="TEXT")] = None
    """A key or value that equals this text is null."""
    partition: Annotated[int | None, Parameter(metavar="N")] = None
    """Partition to write to. The default follows from the key; without a key, it is a sticky one."""
    rate: Annotated[float | None, Parameter(metavar="N")] = None
    """Records a second. The default is as fast as possible."""
    acks: Annotated[str | None, Parameter(metavar="ACKS")] = None
    """Which records count as stored: all (the replicas in sync have them), 1 (the leader has them) or 0 (they were
    sent). The default is all."""
    idempotent: Annotated[bool | None, Parameter(negative="--no-idempotent")] = None
    """Write each record exactly once and in order. The default is yes with --acks all."""
    compression: Annotated[str | None, Parameter(metavar="CODEC")] = None
    """none, gzip, snappy, lz4 or zstd."""
    setting: Annotated[list[str] | None, Parameter(name=["-c", "--setting"], negative=(), metavar="NAME=VALUE")] = None
    """Any other setting of a producer, by Kafka's name; may be given several times."""
    progress: Annotated[bool | None, Parameter(negative="--no-progress")] = None
    """Show the progress on the standard error. The default is yes on a terminal."""


@app.default
def run(options: ProduceOptions) -> int:
    """Write lines until the input ends. After SIGTERM or Ctrl-C, records that were sent may still be stored."""
    from rejoin.client.commands import producing  # noqa: PLC0415 (the client, which --help can do without)

    return producing.run(options)
