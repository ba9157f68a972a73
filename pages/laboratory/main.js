// The page of the laboratory: one instant of one run, drawn everywhere.

import { drop, keep, swap } from "./comparing.js";
import { connect } from "./controls.js";
import { connectPlayer, drawState, goTo, toEnd } from "./instant.js";
import { Lessons } from "./lessons.js";
import { chosenGroup, page } from "./page.js";
import { make } from "./panel.js";
import { fillSettings, start } from "./playing.js";
import { say, unsay } from "./problem.js";
import { placeText } from "./recorded.js";
import { beginRecorded, openGroup } from "./recorded_groups.js";
import { connectSave, connectShare } from "./saving.js";
import { pack, unpack } from "./share.js";
import * as source from "./source.js";
import { above, asSvg, below, connectStage, redraw } from "./stage.js";
import { refresh } from "./theme.js";
import { span } from "./time.js";

const $ = id => document.getElementById(id);
const { player, view } = page;
const recording = () => page.run.recording;

connectPlayer();
connectStage(goTo);
connect({
  player, view, goTo, toEnd, recording,
  buttons: {
    keep, swap, drop,
    again: () => start($("yaml").value, $("seed").value === "" ? null : Number($("seed").value), player.at),
  },
});
connectShare(async () => {
  const { run, kept } = page;
  if (run.isRecorded) return placeText(chosenGroup(), player.at);
  const beside = kept && { kept: { text: kept.text, seed: kept.seed } };
  return "#" + await pack({ name: $("gallery").value, text: run.text, seed: run.seed, at: player.at, ...beside });
});
connectSave({ drawing: asSvg, run: () => page.run.id, say, unsay });
$("group").addEventListener("change", () => {
  if (page.run.isRecorded) { openGroup(); return; }
  drawState(); fillSettings(); redraw();
});
$("gallery").addEventListener("change", () => { page.lessons.leave(); openScenario($("gallery").value); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { refresh(); redraw(); drawState(); });

/** Play a scenario of the gallery. */
async function openScenario(name) {
  const found = await source.galleryText(name);
  $("gallery").value = name;
  await start(found.text, null);
}

/** Fill the list of scenarios, and choose one of them, or an entry for a scenario that is not in the gallery. */
function fillGallery(all, name, otherwise) {
  const option = (value, text, title) => Object.assign(make("option", "", text), { value, title });
  $("gallery").replaceChildren(...all.map(each => option(each.name, each.title, each.question)));
  if (all.some(each => each.name === name)) $("gallery").value = name;
  else {
    $("gallery").prepend(Object.assign(option("", otherwise, ""), { disabled: true }));
    $("gallery").value = "";
  }
}

async function begin() {
  const first = await source.start();
  if (first.recorded) { await beginRecorded(first); return; }
  const shared = await unpack(location.hash);
  const [all, chapters] = await Promise.all([source.gallery(), source.lessons()]);
  page.lessons = new Lessons(chapters, { open: openScenario, goTo, show: (from, to) => view.show(from, to), redraw, recording, groups: () => page.run.scenario.groups });
  fillGallery(all, shared ? shared.name : first.name, shared ? "a shared run" : "a scenario of your own");
  if (shared && shared.kept && typeof shared.kept.text === "string") {
    await start(shared.kept.text, shared.kept.seed ?? null);
    keep();
  }
  if (shared) await start(shared.text, shared.seed ?? null, shared.at ?? null);
  else await start(first.text, first.seed);
}

// For tests, and for the console.
window.laboratory = { player, view, drawing: asSvg, above, below, get kept() { return page.kept; }, get lessons() { return page.lessons; }, get recording() { return recording(); }, span };
begin().catch(problem => say(problem.message));
