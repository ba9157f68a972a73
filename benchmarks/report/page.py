"""How large the report's page is, and how soon it is there: 200 partitions, 1,000 rebalances, 20 consumers, eager.

Everything is given up and given out again in every rebalance, so there are 200,000 intervals of ownership. Writing is
what comes behind the tables; the browser's times are those of headless Chromium, where there is one: until the document
is loaded, and one drawing of the whole chart.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import aiohttp
from rich.table import Table

from benchmarks import printer
from rejoin.pipeline.report.data import GroupReport, Intervals, Report
from rejoin.pipeline.report.page import render

PARTITIONS: Final = 200
REBALANCES: Final = 1_000
CONSUMERS: Final = 20
ROUNDS: Final = 5
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_BEGIN: Final = 1_772_496_000_000
_WAIT_S: Final = 60.0
_LOADED: Final = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
_IS_THERE: Final = "document.readyState === 'complete' && location.protocol === 'file:'"
_DRAW: Final = """(() => { const chart = charts.get(0) || show(sections[0]), began = performance.now();
  chart.draw(); return performance.now() - began; })()"""


def sample(partitions: int = PARTITIONS, rebalances: int = REBALANCES, consumers: int = CONSUMERS) -> GroupReport:
    """A group in which a quarter of the partitions moves in each rebalance, one a minute."""
    dice = random.Random(1)
    owners = [f"orders-app-{number + 1}" for number in range(consumers)]
    owner_of = [partition % consumers for partition in range(partitions)]
    since = [_BEGIN] * partitions
    held: list[tuple[int, int, int, int]] = []
    rows: list[dict[str, Any]] = []
    balance: list[dict[str, Any]] = []
    stops: list[tuple[int, int, int]] = []
    at = _BEGIN
    for number in range(rebalances):
        at += dice.randrange(30_000, 90_000)
        took = dice.randrange(200, 3_500)
        held += [(partition, owner_of[partition], since[partition], at) for partition in range(partitions)]
        since = [at + took] * partitions
        for partition in dice.sample(range(partitions), partitions // 4):
            owner_of[partition] = dice.randrange(consumers)
        stops += [(at, consumers, consumers), (at + took, 0, 0)]
        loads = [owner_of.count(owner) for owner in range(consumers)]
        if balance:
            balance[-1]["until_ms"] = at
        balance.append(
            {
                "at_ms": at + took,
                "until_ms": None,
                "least": min(loads),
                "most": max(loads),
                "partitions": partitions,
                "members": consumers,
            }
        )
        rows.append(_rebalance(dice, number, at, took, owners, partitions))
    end = at + 60_000
    held += [(partition, owner_of[partition], since[partition], end) for partition in range(partitions)]
    intervals, closed = Intervals.of(held).reduced()
    return GroupReport(
        "run",
        "orders-app",
        _BEGIN,
        end,
        rebalances=rows,
        owners=owners,
        partitions=[("orders", partition, _BEGIN) for partition in range(partitions)],
        owned=intervals,
        closed_ms=closed,
        stops=stops,
        lag=[(_BEGIN + (end - _BEGIN) * step // 400, dice.randrange(5_000)) for step in range(400)],
        balance=balance,
        counts={"members": consumers},
    )


def _rebalance(
    dice: random.Random, number: int, at: int, took: int, owners: list[str], partitions: int
) -> dict[str, Any]:
    return {
        "prepared_at_ms": at,
        "ended_at_ms": at + took,
        "cause": dice.choice(("join-new", "leave", "session-expiry", "rejoin-leader")),
        "who": dice.choice(owners),
        "outcome": "completed",
        "moved": partitions // 4,
        "regained": 0,
        "stopped_ms": took * len(owners),
        "generation_to": number + 1,
        "client_reason": "",
        "unavailable_ms": took,
    }


async def _in_browser(browser: str, page: Path, folder: Path) -> tuple[float, float]:
    """Ms until the document is loaded, and to draw the chart once."""
    process = await asyncio.create_subprocess_exec(
        browser,
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--window-size=1280,1000"),
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(_WAIT_S):
            while (found := re.search(rb"ws://([^/]+)/", await process.stderr.readline())) is None:
                pass
        address = found[1].decode()
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://{address}/json") as answer:
                tab = next(each for each in await answer.json() if each["type"] == "page")
            async with http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:

                async def call(number: int, method: str, **parameters: Any) -> dict[str, Any]:
                    await socket.send_json({"id": number, "method": method, "params": parameters})
                    while True:
                        said = json.loads((await socket.receive()).data)
                        if said.get("id") == number:
                            return dict(said["result"])

                async def value(expression: str) -> Any:
                    said = await call(1, "Runtime.evaluate", expression=expression, returnByValue=True)
                    return said["result"]["value"]

                await call(1, "Page.navigate", url=page.as_uri())
                async with asyncio.timeout(_WAIT_S):
                    while not await value(_IS_THERE):  # noqa: ASYNC110 - asking is simpler than hearing events
                        await asyncio.sleep(0.05)
                return float(await value(_LOADED)), float(await value(_DRAW))
    finally:
        process.terminate()
        await process.wait()


def main() -> None:
    """Measure and print."""
    group = sample()
    took = []
    for _ in range(ROUNDS):
        began = perf_counter()
        text = render(Report("Why did my group rebalance?", [group]))
        took.append((perf_counter() - began) * 1_000)
    table = Table(title=f"The page of {PARTITIONS} partitions x {REBALANCES:,} rebalances")
    for column in ("what", "found"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("intervals of ownership", f"{len(group.owned):,}")
    table.add_row("page, kB", f"{len(text.encode()) / 1_000:,.0f}")
    table.add_row("to write it, ms", f"{median(took):,.0f}")
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        table.add_row("in a browser", "there is no Chromium here")
    else:
        with tempfile.TemporaryDirectory() as name:
            page = Path(name, "report.html")
            page.write_text(text, encoding="utf-8")
            rounds = [asyncio.run(_in_browser(browser, page, Path(name, f"profile{n}"))) for n in range(3)]
        table.add_row("until it is loaded (DOMContentLoaded), ms", f"{median(loaded for loaded, _ in rounds):,.0f}")
        table.add_row("to draw the chart once, ms", f"{median(drawn for _, drawn in rounds):,.0f}")
    printer().print(table)


if __name__ == "__main__":
    main()
