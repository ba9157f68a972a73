"""The command line of ``rejoin demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

app: Final = App(name="demo", help="Show a group forming, growing, crashing and restarting.")

_OUT: Final = Path("out") / "demo"


@app.default
def run(*, out: Annotated[Path, Parameter(metavar="DIR")] = _OUT) -> int:
    """Show a group forming, growing, crashing and restarting, with real processes, live in the terminal.

    Parameters
    ----------
    out
        Directory for the journals, the report's page and its tables. Those of an earlier demo are replaced.
    """
    from rejoin.demo.play import play  # noqa: PLC0415 (rich and the pipeline, which --help can do without)

    return play(out)
