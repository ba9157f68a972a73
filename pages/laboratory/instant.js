// The instant that is shown: its state and its events, asked of the engine or read from what was recorded.

import { Findings, findingsList } from "./findings.js";
import { chosenGroup, page } from "./page.js";
import { drawGroup, drawLines, drawWords, summary } from "./panel.js";
import { say, unsay } from "./problem.js";
import { stateOf, withTimers } from "./recorded.js";
import * as recordings from "./recorded_source.js";
import { after } from "./searching.js";
import { shareStates, showWindows } from "./shares_now.js";
import * as source from "./source.js";
import { drawCursor } from "./stage.js";

const $ = id => document.getElementById(id);
const { player, view } = page;
const findings = new Findings(source.findings, drawState);
let wanted = null, asking = false;

export function goTo(at) {
  page.run.following = false;
  player.toggle(false);
  player.go(at);
  view.follow(at);
}

/** Go to the end; while the run is still being played, go along with it until it is there. */
export function toEnd() {
  const { run } = page;
  goTo(run.recording.until);
  run.following = run.isBeingPlayed;
  if (run.following) $("status").textContent = run.progress;
}

/** List the events up to an instant. */
export function drawEvents(at) {
  const { run } = page, { lines } = run.recording, index = after(lines, at, each => each.at) - 1;
  if (index === run.line) return;
  run.line = index;
  drawLines($("lines"), lines, index, goTo);
}

/** Show the state of an instant; of many that are wanted in quick succession only the last is asked for. */
export function show(at) {
  wanted = at;
  ask();
}

async function ask() {
  if (page.run.isRecorded) { showRecorded(); return; }
  if (asking || wanted === null || page.run.id === null) return;
  asking = true;
  const at = wanted, { run } = page;
  wanted = null;
  try {
    const state = await source.stateAt(run.id, at);
    if (run === page.run) { run.shown = state; drawState(); unsay("state"); }
  } catch (problem) {
    if (run === page.run) say(problem.message, null, "state");
  } finally {
    asking = false;
    if (wanted !== null) ask();
  }
}

/** Show an instant; what only a running coordinator knows is asked for at the newest. */
async function showRecorded() {
  const { run } = page, { recording, scenario } = run, group = chosenGroup(), at = player.at;
  wanted = null;
  run.shown = stateOf(recording, group, at);
  if (scenario.live && at === recording.until && !asking) {
    asking = true;
    const [now, shares] = await Promise.all([recordings.groupNow(group).catch(() => null), shareStates(recording, group)]);
    asking = false;
    if (now && at === player.at) run.shown = withTimers(stateOf(recording, group, at), group, now, scenario.origin);
    if (shares && at === player.at) run.shown.groups[group].shares = shares;
  }
  drawState();
}

export function drawState() {
  const { recording, shown } = page.run, group = chosenGroup();
  if (!shown) return;
  drawWords($("words"), shown.at, recording.words(shown, group), recording.justBefore(shown.at), atTheEnd(group));
  drawGroup($("now"), shown, group, recording);
  showWindows(page, group, shown);
  document.body.dataset.at = shown.at;
}

/** At the end of the run: what it says in numbers, the answer to its question, and what the rules find. */
function atTheEnd(group) {
  const { recording, scenario, shown, id } = page.run;
  if (!recording.done || shown.at < recording.until || !recording.summary[group]) return null;
  const parts = summary(recording.summary[group], scenario.answer), found = findings.of(id, group);
  if (found) parts.append(findingsList(found));
  return parts;
}

/** Let the player move the instant. */
export function connectPlayer() {
  player.limit = () => page.run.recording.until;
  player.isGrowing = () => page.run.isBeingPlayed;
  player.onMove = at => {
    if (player.playing) view.follow(at);
    drawCursor();
    drawEvents(at);
    show(at);
  };
  player.onToggle = isPlaying => {
    $("play").textContent = isPlaying ? "Pause" : "Play";
    $("play").setAttribute("aria-pressed", isPlaying);
    $("speed").value = player.speed;
  };
}
