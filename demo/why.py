"""The end of the demo: the pipeline reads the journals and says why the groups rebalanced."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

SHOWN = 6


def explain(journal: Path, out: Path, console: Console) -> None:
    """Print the findings and where the page is; without the pipeline's packages say so and go on."""
    console.print()
    console.print(Rule("[bold]Why did they rebalance?", align="left", style="dim"))
    try:
        from rejoin.pipeline.report.console import brief  # noqa: PLC0415
        from rejoin.pipeline.report.run import PAGE, make_report  # noqa: PLC0415 - the demo runs without the pipeline, too
    except ImportError as missing:
        console.print(f"This part needs the pipeline: {missing}")
        return
    with console.status("report") as status:
        report = make_report([journal], out, on_step=lambda what: status.update(f"report: {what}"))
    console.print("[italic]The journals of the coordinator and of all consumers, through the pipeline:")
    brief(report, console, SHOWN)
    console.print()
    for name, what in (("page", out / PAGE), ("again", f"rejoin report {journal} --out {out}")):
        # To be copied whole, so it is never folded.
        console.print(Text(f"{name:<7}{what}"), soft_wrap=True)
