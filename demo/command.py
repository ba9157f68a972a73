"""``rejoin demo``: the five scenes, a table of the rebalances with their costs, and their causes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter
from rich.console import Console

from rejoin.demo.closing import closing_table
from rejoin.demo.scenes import CLIENT_SCHEMA, PARTITIONS, SETTINGS, TOPIC, Demo, completed
from rejoin.demo.show import Screen
from rejoin.demo.stage import Stage, StageFailed
from rejoin.demo.why import explain
from rejoin.journal.reader import read_journal

app: Final = App(name="demo", help="Show a group forming, growing, crashing and restarting.")

KEPT: Final = Path("out") / "demo"


@app.default
def run(*, out: Annotated[Path, Parameter(metavar="DIR")] = KEPT) -> int:
    """Show a group forming, growing, crashing and restarting, with real processes, live in the terminal.

    Parameters
    ----------
    out
        Directory for the journals, the report's page and its tables. Those of an earlier demo are replaced.
    """
    console = Console(highlight=False)
    journal = out / "journal"
    for left in (journal, out / "tables"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="rejoin-demo-") as name:
        stage = None
        try:
            stage = Stage(Path(name), TOPIC, PARTITIONS, SETTINGS, journal)
            where = f"http://127.0.0.1:{stage.port}"
            console.print(f"A coordinator runs on {where} for as long as this does; that page shows the same, live.")
            with Screen(console, PARTITIONS) as screen:
                Demo(stage, screen).play()
        except StageFailed as problem:
            console.print(f"[red]The demo stopped: {problem}")
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            if stage is not None:
                stage.stop()
    clients = sorted(read_journal(journal, CLIENT_SCHEMA, source="client"), key=lambda row: row.envelope.at_ms)
    console.print()
    console.print(closing_table(completed(journal), clients))
    try:
        explain(journal, out, console)
    except KeyboardInterrupt:
        return 130
    return 0
