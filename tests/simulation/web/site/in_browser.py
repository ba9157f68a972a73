"""``python -m tests.simulation.web.site.in_browser FOLDER``: opens a built folder in a headless Chromium, prints how
long it takes to load and to play, and compares the journals of the gallery with those that are made here."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from rejoin.simulation.scenario.gallery import GALLERY, names
from rejoin.simulation.scenario.reading import read_scenario
from rejoin.simulation.web.session import journal_of
from tests.simulation.web.browser import Page, browser
from tests.simulation.web.opened import DONE

JOURNAL = """(async () => {
  const source = await import("./assets/source.js"), stop = new AbortController();
  const { text } = await source.galleryText(NAME);
  let run = null;
  await source.play(text, null, head => { run = head; stop.abort(); }, () => {}, stop.signal).catch(() => {});
  const began = performance.now();
  const journal = new TextEncoder().encode(await source.exported(run.run, "journal", run.groups[0]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", journal));
  return [[...digest].map(byte => byte.toString(16).padStart(2, "0")).join(""), performance.now() - began];
})()"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Requests are not printed."""


async def _look(folder: Path, address: str) -> int:
    with TemporaryDirectory() as profile:
        async with browser(Path(profile)) as page:
            await page.open(address)
            await page.wait_for(DONE)
            if page.problems:
                print("\n".join(page.problems), file=sys.stderr)
                return 1
            foreign = [each for each in page.addresses if not each.startswith((address, "data:", "blob:"))]
            if foreign:
                print(f"it asked for {', '.join(foreign)}", file=sys.stderr)
                return 1
            times = await page.evaluate("import('./assets/source.js').then(source => source.times)")
            loaded, imported, first = (times[key] / 1000 for key in ("load_ms", "import_ms", "first_piece_ms"))
            print(f"Python is loaded after {loaded:.1f} s, and imports for {imported:.1f} s")
            print(f"the first piece of a run is drawn {first:.1f} s after that", flush=True)
            return await _compare(page)


async def _compare(page: Page) -> int:
    """Compare the journals of all scenarios, and print how long both took."""
    same, there, here = 0, 0.0, 0.0
    for name in names():
        began = perf_counter()
        text = (GALLERY / f"{name}.yaml").read_text("utf-8")
        expected = journal_of(text, read_scenario(GALLERY / f"{name}.yaml").seed)
        took = perf_counter() - began
        digest, milliseconds = await page.evaluate(JOURNAL.replace("NAME", repr(name)))
        equal = digest == hashlib.sha256(expected.encode()).hexdigest()
        same, there, here = same + equal, there + milliseconds / 1000, here + took
        result = "the same" if equal else "ANOTHER"
        seconds = f"{milliseconds / 1000:5.1f} s  here {took:5.1f} s"
        print(f"{name:48} {len(expected):>11,} bytes {seconds}  {result}", flush=True)
    print(f"{same} of {len(names())} journals are the same; the browser took {there / here:.1f} times as long")
    return 0 if same == len(names()) else 1


def main(arguments: list[str]) -> int:
    """Serve the folder on this machine meanwhile."""
    folder = Path(arguments[0])
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return asyncio.run(_look(folder, f"http://127.0.0.1:{server.server_port}/"))
        finally:
            server.shutdown()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
