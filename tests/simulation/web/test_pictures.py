"""The laboratory's drawings of ten scenarios, at fixed instants, against what was looked at and found right.

Compared are mean colours of cells, so that fonts do not matter. ``pytest --rewrite`` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.paths import ROOT
from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.opened import Opened
from tests.suite.long_runs import in_long_runs

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]

PICTURES: Final = ROOT / "tests" / "golden" / "laboratory" / "pictures.json"
INSTANTS: Final = {
    "cold_start": (0, 30_000),
    "eager_scale_out": (175_000, 285_000),
    "cooperative_scale_out": (175_000, 200_000),
    "static_restart_between_cooperative_rebalances": (0, 900_000),
    "static_id_used_twice": (0, 600_000),
    "coordinator_failover_in_mid_rebalance": (0, 600_000),
    "stuck_handler_holds_up_a_rebalance": (110_000, 640_000),
    "heartbeats_while_the_leader_assigns": (0, 60_000),
    "member_that_never_acknowledges_a_revocation": (0, 600_000),
    "zombie_with_the_same_transactional_id": (0, 120_000),
}
"""What is on the screen of each scenario: from, to (ms)."""
LIKE_OTHERS: Final = (
    "cooperative_scale_out",
    "static_restart_between_cooperative_rebalances",
    "static_id_used_twice",
    "stuck_handler_holds_up_a_rebalance",
)
"""Scenarios in which nothing is drawn that the others lack: members that come, go and wait, and their partitions."""
CELL: Final = (32, 8)
"""Pixels of a cell."""
NEAR: Final = 28
"""Two cells are alike if no part of their colours (0 to 255) differs by more: a letter is less than that."""
MOST_UNLIKE: Final = 0.01
"""At most this share of the cells may be unlike."""
CELLS: Final = """(() => [document.getElementById("lanes"), document.getElementById("partitions")].map(canvas => {
  const scale = canvas.width / canvas.clientWidth, cell = [WIDE, HIGH].map(each => Math.round(each * scale));
  const small = document.createElement("canvas"), context = small.getContext("2d");
  small.width = Math.floor(canvas.width / cell[0]);
  small.height = Math.floor(canvas.height / cell[1]);
  const source = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const ground = [245, 246, 248], rows = [];
  for (let y = 0; y < small.height; y++) {
    let row = "";
    for (let x = 0; x < small.width; x++) {
      const sum = [0, 0, 0];
      for (let j = 0; j < cell[1]; j++) for (let i = 0; i < cell[0]; i++) {
        const at = ((y * cell[1] + j) * canvas.width + x * cell[0] + i) * 4, alpha = source[at + 3] / 255;
        for (let part = 0; part < 3; part++) sum[part] += source[at + part] * alpha + ground[part] * (1 - alpha);
      }
      row += sum.map(each => Math.floor(each / cell[0] / cell[1] / 16).toString(16)).join("");
    }
    rows.push(row);
  }
  return rows;
}))()"""

Picture = list[list[str]]
"""For each canvas its rows of cells: three hexadecimal digits each, red, green and blue in steps of 16."""


def unlike(seen: Picture, known: Picture) -> float:
    """The share of cells that are unlike; 1 where the drawings have another size."""
    if [[len(row) for row in rows] for rows in seen] != [[len(row) for row in rows] for rows in known]:
        return 1.0
    pairs = [
        (ours[at : at + 3], theirs[at : at + 3])
        for rows, expected in zip(seen, known, strict=True)
        for ours, theirs in zip(rows, expected, strict=True)
        for at in range(0, len(ours), 3)
    ]
    far = sum(any(abs(int(a, 16) - int(b, 16)) * 16 > NEAR for a, b in zip(*pair, strict=True)) for pair in pairs)
    return far / len(pairs)


def drawn(opened: Opened, name: str) -> Picture:
    first, last = INSTANTS[name]
    opened.choose(name)
    opened.value(f"laboratory.view.show({first}, {last})")
    opened.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    cells: Picture = opened.value(CELLS.replace("WIDE", str(CELL[0])).replace("HIGH", str(CELL[1])))
    return cells


@pytest.fixture(scope="module")
def pictures(opened: Opened) -> Any:
    opened.run(opened.page.resize(1_400, 2_400))
    opened.open()
    opened.value("document.querySelectorAll('aside details').forEach(each => { each.open = false; })")
    return json.loads(PICTURES.read_text()) if PICTURES.exists() else {}


@pytest.mark.parametrize(
    "name", in_long_runs(*LIKE_OTHERS, always=[each for each in INSTANTS if each not in LIKE_OTHERS])
)
def test_the_drawing_is_what_it_was(
    opened: Opened, pictures: dict[str, Picture], name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    seen = drawn(opened, name)
    if request.config.getoption("--rewrite"):
        pictures[name] = seen
        PICTURES.parent.mkdir(exist_ok=True)
        PICTURES.write_text(json.dumps(pictures, indent=0) + "\n")
        return
    (tmp_path / f"{name}.png").write_bytes(opened.run(opened.page.screenshot()))
    assert unlike(seen, pictures[name]) <= MOST_UNLIKE, f"look at {tmp_path}/{name}.png"


def test_another_colour_a_missing_lane_and_another_scenario_are_seen(pictures: dict[str, Picture]) -> None:
    lanes, partitions = known = pictures["eager_scale_out"]
    red = [[row.replace(row[90:93], "c11") for row in lanes], partitions]
    middle = len(lanes) // 2
    gone = [[*lanes[:middle], *(["fff" * (len(row) // 3) for row in lanes[middle : middle + 5]]), *lanes[middle + 5 :]]]
    assert unlike(known, known) == 0
    assert unlike(red, known) > MOST_UNLIKE
    assert unlike([*gone, partitions], known) > MOST_UNLIKE
    assert unlike(pictures["cooperative_scale_out"], known) > MOST_UNLIKE
