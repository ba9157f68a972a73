"""The demo from its start to its end: the scenes, a table of the rebalances with their costs, and their causes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from rejoin.console import VisibleConsole
from rejoin.demo.closing import closing_table
from rejoin.demo.scenes import CLIENT_SCHEMA, PARTITIONS, SETTINGS, TOPIC, Demo, completed
from rejoin.demo.show import DemoScreen
from rejoin.demo.stage import Stage, StageFailed
from rejoin.demo.why import explain
from rejoin.error_lines import refuse
from rejoin.journal.reader import read_journal


def play(out: Path) -> int:
    """Play the demo, with its files in ``out``; 0 when every scene came to its end."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        return refuse(f"--out {out}: {problem.strerror}: {problem.filename}; expected a directory to write to")
    console = VisibleConsole(highlight=False)
    journal = out / "journal"
    for left in (journal, out / "tables"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="rejoin-demo-") as name:
        stage = None
        try:
            stage = Stage(Path(name), TOPIC, PARTITIONS, SETTINGS, journal)
            where = f"http://127.0.0.1:{stage.port}"
            console.print(f"A coordinator runs on {where} for as long as this does; that page shows the same, live.")
            with DemoScreen(console, PARTITIONS) as screen:
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
