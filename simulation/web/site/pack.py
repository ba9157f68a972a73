"""Packs what the laboratory needs as bytecode; the browser's own Python, which has to run it, does the compiling.

It runs in Pyodide (see ``pack.mjs``). ``/stage`` has the sources; ``/out`` gets two archives: the part of the standard
library that is in use after the worker has answered all kinds of questions, and the laboratory with its libraries.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import marshal
import sys
import warnings
import zipfile
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType
from typing import Any

STAGE, OUT = Path("/stage"), Path("/out")
LIBRARY = "/lib/python314.zip/"
ASKED = (
    "eager_scale_out",
    "regex_begins_to_match",
    "consume_transform_produce",
    "zombie_with_the_same_transactional_id",
)
"""The scenarios that are played."""
ALSO = ("linecache", "textwrap", "tokenize", "traceback", "_colorize")
"""Modules that only errors need."""
ENCODINGS = ("ascii", "cp437", "idna", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "utf_32")


def ask_everything() -> None:
    """Have the worker import all that it can need."""
    worker = importlib.import_module("rejoin.simulation.web.worker").LaboratoryWorker()

    def ask(question: str, *arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(worker.answer(question, json.dumps(arguments)))
        return found

    for question in ("start", "gallery", "lessons"):
        ask(question)
    ask("play", "groups: [", None)
    for name in ASKED:
        text = ask("galleryText", name)["value"]["text"]
        head = ask("play", text, None)["value"]
        while ask("nextPiece", head["run"])["value"] is not None:
            pass
        group = head["groups"][0]
        ask("stateAt", head["run"], head["horizon"] // 2)
        ask("lag", head["run"], group, 0, head["horizon"], 20)
        for kind in ("transcript", "pytest", "journal"):
            ask("exported", head["run"], kind, group)
        ask("withEvent", text, 1000, f"crash: {{who: {group}-1}}")
        ask("withValue", text, head["controls"][group][0]["path"], "1s")


def import_standard_library() -> None:
    """Import what the sources name of the standard library, as far as a browser has it."""
    named = json.loads((STAGE / "imports.json").read_text())
    for name in [*named, *ALSO, *(f"encodings.{each}" for each in ENCODINGS)]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def bytecode(code: CodeType) -> bytes:
    """A compiled module that is never compared with a source (PEP 552)."""
    return MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def write(archive: str, files: dict[str, bytes]) -> None:
    """Write an archive that is the same each time."""
    with zipfile.ZipFile(OUT / archive, "w", zipfile.ZIP_DEFLATED) as written:
        for name, data in sorted(files.items()):
            written.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, compresslevel=9)


def standard_library() -> dict[str, bytes]:
    """The modules of the standard library that are in use, as the archive that Python starts from has them."""
    files = {}
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is not None and (spec.origin or "").startswith(LIBRARY):
            files[f"{spec.origin.removeprefix(LIBRARY)}c"] = bytecode(spec.loader.get_code(name))
    return files


def laboratory() -> dict[str, bytes]:
    """All of the package that was staged, the parts of its libraries that are in use, and their extension modules."""
    used = {getattr(each, "__file__", None) for each in sys.modules.values()}
    files = {}
    for path in STAGE.rglob("*"):
        name = str(path.relative_to(STAGE))
        if path.suffix == ".py" and (str(path) in used or name.startswith("rejoin/")):
            files[f"{name}c"] = bytecode(compile(path.read_bytes(), name, "exec", dont_inherit=True))
        elif path.suffix == ".yaml" or (path.suffix == ".so" and str(path) in used):
            files[name] = path.read_bytes()
    return files


if __name__ == "__main__":
    sys.path.insert(0, str(STAGE))
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    ask_everything()
    import_standard_library()
    write("python_stdlib.zip", standard_library())
    write("laboratory.zip", laboratory())
