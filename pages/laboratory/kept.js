// Another run beside the one that is shown: what differs between their scenarios, and between their numbers.

import { page } from "./page.js";
import { make } from "./panel.js";
import * as source from "./source.js";

const $ = id => document.getElementById(id);

/** Show the kept run, if there is one, and how it differs from the run above it. */
export function drawKept() {
  const { kept, run } = page;
  $("kept").hidden = !kept;
  if (!kept) return;
  drawDifference($("difference"), run, kept);
  drawNumbers($("numbers"), run.recording, kept.recording);
  if (run.recording.done) source.stateAt(kept.id, 0).catch(() => {});  // the server forgets runs that no page asks for
}

/** The lines that only one of two texts has. */
function onlyIn(text, other) {
  const there = new Set(other.split("\n").map(line => line.trim()));
  return text.split("\n").map(line => line.trim()).filter(line => line && !there.has(line));
}

/** What differs between two scenarios and seeds, as elements. */
function drawDifference(element, now, kept) {
  const parts = [];
  const lines = (label, found) => {
    if (found.length) parts.push(make("p", "", make("span", "soft", `${label} `), ...found.slice(0, 4).flatMap(line => [make("code", "", line), " "]), found.length > 4 ? `and ${found.length - 4} lines more` : ""));
  };
  lines("above:", [...onlyIn(now.text, kept.text), ...(now.seed !== kept.seed ? [`seed: ${now.seed}`] : [])]);
  lines("here:", [...onlyIn(kept.text, now.text), ...(now.seed !== kept.seed ? [`seed: ${kept.seed}`] : [])]);
  if (!parts.length) parts.push(make("p", "soft", "The same scenario and seed, and so the same run. Move a setting, or do something to the group."));
  element.replaceChildren(...parts);
}

/** The numbers in which two runs differ: none before both are played to their end. */
function differences(now, kept) {
  const found = [];
  for (const [group, rows] of Object.entries(now.summary || {})) {
    const others = new Map((kept.summary || {})[group] || []);
    for (const [name, value] of rows) if (others.has(name) && others.get(name) !== value) found.push({ group, name, now: value, kept: others.get(name) });
  }
  return found;
}

function drawNumbers(element, now, kept) {
  const rows = differences(now, kept), several = new Set(rows.map(row => row.group)).size > 1;
  const body = make("tbody", "", ...rows.map(row => make("tr", "", make("th", "", `${several ? row.group + ": " : ""}${row.name}`), make("td", "", row.now), make("td", "", row.kept))));
  body.querySelectorAll("th").forEach(each => { each.scope = "row"; });
  const head = make("tr", "", ...["what differs", "above", "here"].map(text => make("th", "", text)));
  element.replaceChildren(make("thead", "", head), body);
  element.hidden = !rows.length;
}
