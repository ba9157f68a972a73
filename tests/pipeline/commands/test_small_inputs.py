"""A small input gets its answer at once: nothing is imported that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.paths import ROOT

LOG: Final = str(ROOT / "tests" / "golden" / "public-logs" / "java-late-and-back.log")
PROGRAM: Final = """
import json, sys
from rejoin.__main__ import main

for line in json.loads(sys.argv[1]):
    try:
        main(line)
    except SystemExit as end:
        print(json.dumps([end.code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
OF_MUCH_DATA: Final = {"pyspark", "py4j", "pandas", "aiohttp", "asyncio", "uvicorn"}
OF_PAGES_AND_TABLES: Final = {"pyarrow", "numpy", "jinja2", "rich"}


def test_a_small_log_is_explained_without_what_is_for_much_data(tmp_path: Path) -> None:
    lines = [["why", "bills", LOG], ["report", LOG, "--out", str(tmp_path / "out")]]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(lines)],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    (_, by_why), (_, by_report) = found = [
        json.loads(each) for each in ended.stdout.splitlines() if each.startswith("[")
    ]
    assert [code for code, _ in found] == [0, 0], ended.stderr
    assert not (OF_MUCH_DATA | OF_PAGES_AND_TABLES).intersection(by_why)
    assert not OF_MUCH_DATA.intersection(by_report)
