"""What must hold of a page in every window: drawings that do not depend on what was drawn before, and whole words."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.simulation.web.browser import Page


class Window(NamedTuple):
    """A size of a window, in light or dark."""

    width: int
    height: int
    dark: bool = False


WINDOWS: Final = (Window(1_440, 1_000), Window(1_440, 500, dark=True), Window(390, 844), Window(390, 844, dark=True))

SETTLED: Final = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
SEEN: Final = """(() => [...document.querySelectorAll("canvas")].filter(each => each.offsetParent && each.width).map(
  canvas => {
  const box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
  const top = Math.max(0, Math.ceil(-box.top)), bottom = Math.min(box.height, Math.floor(innerHeight - box.top));
  if (bottom <= top) return 0;
  const strip = [0, Math.round(top * ratio), canvas.width, Math.round((bottom - top) * ratio)];
  const pixels = canvas.getContext("2d").getImageData(...strip).data;
  let hash = 7;
  for (const each of new Uint32Array(pixels.buffer)) hash = (Math.imul(hash, 31) + each) | 0;
  return hash;
}))()"""
"""A hash of the pixels of each canvas, as far as it is within the window."""
DRAWN_ANEW: Final = """(() => {
  for (const each of document.querySelectorAll("canvas")) if (each.id) each.width = 0;
  if (window.laboratory) laboratory.view.onChange();
  else if (typeof charts !== "undefined") for (const each of charts.values()) each.draw();
})()"""
OUTSIDE: Final = """(() => {
  const found = [];
  for (const track of window.laboratory ? [laboratory.above, laboratory.below] : []) {
    for (const [name, { top, bottom }] of Object.entries(track.strips)) {
      const canvas = track.canvases[name];
      if (!canvas.offsetParent || !canvas.width) continue;
      const ratio = canvas.width / canvas.getBoundingClientRect().width, context = canvas.getContext("2d");
      for (const [from, to] of [[0, Math.floor(top * ratio)], [Math.ceil(bottom * ratio), canvas.height]]) {
        if (to <= from) continue;
        const pixels = new Uint32Array(context.getImageData(0, from, canvas.width, to - from).data.buffer);
        if (pixels.some(each => each)) found.push(`${canvas.id} from ${from} to ${to}`);
      }
    }
  }
  return found;
})()"""
"""Parts of drawings that lie out of sight, and are not empty: the next frames would be drawn over them."""
BROKEN: Final = r"""(() => {
  const found = [], range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const left = "script, style, svg, textarea, option";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!parent.checkVisibility({ visibilityProperty: true }) || parent.closest(left)) continue;
    for (const { index, 0: word } of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = new Set([...range.getClientRects()].filter(each => each.width).map(each => Math.round(each.top)));
      if (lines.size > 1 && word.length < 30) found.push(`${word} in ${node.data.trim().slice(0, 60)}`);
    }
  }
  return found;
})()"""
"""Words that begin on one line and end on another."""


async def complaints(page: Page, address: str, ready: str) -> list[str]:
    """What is wrong with a page in any window: it is scrolled and resized before its drawings are compared."""
    found = []
    for window in WINDOWS:
        name = f"{window.width}x{window.height}{' dark' if window.dark else ''}"
        await page.resize(window.width, window.height, dark=window.dark)
        if window is WINDOWS[0]:
            await page.open(address)
            await page.wait_for(ready)
        await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        await page.evaluate(SETTLED)
        # A live page may move while it is looked at; what is drawn wrong is wrong the second time, too.
        if await _misdrawn(page):
            found += [f"{name}: {each}" for each in await _misdrawn(page)]
        found += [f"{name}: broken word {each}" for each in await page.evaluate(BROKEN)]
        if (wide := await page.evaluate("document.documentElement.scrollWidth")) > window.width:
            found.append(f"{name}: {wide} wide")
    return [*found, *page.problems]


async def _misdrawn(page: Page) -> list[str]:
    """How drawings depend on what was drawn before: frames over one another, then scrolled, and nothing else."""
    found = []
    await page.evaluate("scrollTo(0, 0)")
    for _ in range(2):
        await page.evaluate("window.laboratory && laboratory.view.zoom(0.9, laboratory.player.at)")
        await page.evaluate(SETTLED)
    for down in (0, 450):
        await page.evaluate(f"scrollTo(0, {down})")
        await page.evaluate(SETTLED)
        found += [f"drawn out of sight, {down} down: {each}" for each in await page.evaluate(OUTSIDE)]
        seen = await page.evaluate(SEEN)
        await page.evaluate(DRAWN_ANEW)
        await page.evaluate(SETTLED)
        if seen != await page.evaluate(SEEN):
            found.append(f"another drawing than a whole new one, {down} down")
    return found
