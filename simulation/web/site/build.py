"""Builds the folder: fetches Pyodide from npm and two wheels from PyPI, has the sources packed, and adds the page.

``python -m rejoin.simulation.web.site FOLDER`` runs it; it needs Node.js with npm, and pip.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rejoin import pages
from rejoin.simulation.web.server import ASSETS
from rejoin.simulation.web.site.modules import ROOT, data_files, modules_from, others_imported_by

HERE: Final = Path(__file__).parent
LIBRARIES: Final = ("pydantic", "yaml", "typing_extensions", "typing_inspection", "annotated_types", "google_crc32c")
"""Libraries that are, or can be, Python alone: those of this environment are taken."""
PLATFORM: Final = (
    "--platform=pyemscripten_2026_0_wasm32",
    "--python-version=3.14",
    "--implementation=cp",
    "--abi=cp314",
)
POLICY: Final = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
LONGEST_LINE: Final = 1000
"""Longer lines of a program's output are packed code."""
MOST_BYTES: Final = 10_000_000
"""Limit for the bytes that a browser loads before it plays."""


class NotBuilt(Exception):
    """The folder cannot be built here; the text says why and what to do."""


def build(folder: Path) -> dict[str, int]:
    """Build the folder anew. The bytes of each of its files, as they are sent. Raises :class:`NotBuilt`."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotBuilt(
                f"{program} is not installed: install Node.js 20 or newer, or use rejoin lab, which needs none"
            )
    with TemporaryDirectory() as name:
        work = Path(name)
        pyodide, stage, out = work / "node_modules" / "pyodide", work / "stage", work / "out"
        for path in (stage, out):
            path.mkdir()
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / file, work)
        _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], work, "Pyodide cannot be had from npm")
        _stage(stage, work)
        _run(
            ["node", str(HERE / "pack.mjs"), str(pyodide), str(stage), str(out)],
            work,
            "Pyodide cannot pack the sources",
        )
        shutil.rmtree(folder, ignore_errors=True)
        _assemble(folder, pyodide, out)
    return {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}


def _run(command: Sequence[str], folder: Path, problem: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if len(line) < LONGEST_LINE]
        raise NotBuilt("\n".join([f"{problem}:", *said[-20:]]))


def _stage(stage: Path, work: Path) -> None:
    """Lay out all sources as Python looks for them."""
    modules = modules_from()
    for path in [*modules.values(), *data_files()]:
        target = stage / "rejoin" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(HERE / "re2.py", stage)
    for library in LIBRARIES:
        spec = find_spec(library)
        assert spec is not None
        assert spec.origin is not None
        if spec.submodule_search_locations is None:
            shutil.copy(spec.origin, stage)
        else:
            shutil.copytree(
                Path(spec.origin).parent, stage / library, ignore=shutil.ignore_patterns("*.so", "__pycache__")
            )
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *PLATFORM]
    command = [*pip, "--require-hashes", "-r", str(HERE / "wheels.txt"), "-d", str(work / "wheels")]
    _run(command, work, "the wheels for Pyodide cannot be had from the package index")
    for wheel in (work / "wheels").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(stage)
    with zipfile.ZipFile(stage / "empty.zip", "w"):
        pass
    standard = [each for each in others_imported_by(modules) if each.partition(".")[0] in sys.stdlib_module_names]
    (stage / "imports.json").write_text(json.dumps(standard), encoding="utf-8")


def _assemble(folder: Path, pyodide: Path, out: Path) -> None:
    """Put the page, its engine and the packed sources into the folder."""
    assets, engine = folder / "assets", folder / "engine"
    engine.mkdir(parents=True)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    page = pages.render(ASSETS, "page.html").replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}')
    (folder / "index.html").write_text(page, encoding="utf-8")
    shutil.copytree(
        ROOT / "pages" / "laboratory", assets, ignore=shutil.ignore_patterns("*.py", "*.html", "__pycache__")
    )
    for file in ("source.js", "worker.js"):
        shutil.copy(HERE / file, assets)
    shutil.copy(pyodide / "pyodide.mjs", engine)
    for file in ("pyodide.asm.wasm", "pyodide.asm.mjs"):
        (engine / f"{file}.gz").write_bytes(gzip.compress((pyodide / file).read_bytes(), mtime=0))
    for file in ("python_stdlib.zip", "laboratory.zip"):
        shutil.copy(out / file, engine)
    lock = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))
    (engine / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}), encoding="utf-8")
    licence = json.loads((pyodide / "package.json").read_text("utf-8"))["license"]
    (engine / "NOTICE.txt").write_text(
        f"Pyodide ({licence}) and the libraries in laboratory.zip are their authors' work, under their licences.\n",
        encoding="utf-8",
    )
