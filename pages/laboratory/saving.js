// What leaves the page: files, and its drawings as SVG.

import { save } from "./share.js";
import * as source from "./source.js";
import { SvgPen } from "./svg.js";
import { colour } from "./theme.js";

const $ = id => document.getElementById(id);
const SHARED_MS = 4000;
const SHORTEST_FILM = 6, LONGEST_FILM = 30;
const EXPORTED = { transcript: ["scenario.txt", "text/plain"], journal: ["journal.jsonl", "application/x-ndjson"], pytest: ["test_scenario.py", "text/x-python"] };

/** The drawings as they are, as SVG; animated, time passes in them. `ruler` is a canvas' context, which measures texts. */
export function drawing({ view, player, above, shows, ruler }, animated) {
  const pen = new SvgPen(view.width, above.height(shows()), ruler);
  above.drawWith(pen, shows());
  if (animated) {
    const seconds = Math.max(SHORTEST_FILM, Math.min(LONGEST_FILM, (view.to - view.from) / 1000 / player.speed));
    pen.play(view.left, view.width - 8, seconds, colour("ground"), colour("ink"));
  }
  return pen.text(colour("ground"));
}

/** Connect the choice of what to save. `page`: drawing(animated), run(), and say(problem, where, by). */
export function connectSave(page) {
  $("save").addEventListener("change", async () => {
    const kind = $("save").value, group = $("group").value;
    $("save").value = "";
    try {
      if (kind === "yaml") save("scenario.yaml", $("yaml").value, "application/yaml");
      else if (kind === "svg" || kind === "animation") save("group.svg", page.drawing(kind === "animation"), "image/svg+xml");
      else if (kind) save(EXPORTED[kind][0], await source.exported(page.run(), kind, group), EXPORTED[kind][1]);
      page.unsay("save");
    } catch (problem) {
      page.say(problem.message, null, "save");
    }
  });
}

/** Connect the button that puts a fragment into the address, and says so for a while. */
export function connectShare(fragment) {
  let clearing = 0;
  $("share").addEventListener("click", async () => {
    history.replaceState(null, "", await fragment());
    const said = $("shared");
    try { await navigator.clipboard.writeText(location.href); said.textContent = "The address is copied."; } catch { said.textContent = "The address bar has it."; }
    clearTimeout(clearing);
    clearing = setTimeout(() => { said.textContent = ""; }, SHARED_MS);
  });
}
