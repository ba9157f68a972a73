// Groups that were recorded, not played: by a journal, or by a coordinator that still runs.

import { drawLiveActions, liveShareActions } from "./live.js";
import { beginReading, chosenGroup, page } from "./page.js";
import { describe, fillGroups } from "./playing.js";
import { say } from "./problem.js";
import { place, status } from "./recorded.js";
import * as recordings from "./recorded_source.js";
import { Run } from "./run.js";
import { stepShare } from "./share_steps.js";
import * as source from "./source.js";
import { redraw } from "./stage.js";
import { setOrigin } from "./time.js";

const $ = id => document.getElementById(id);
const LIVE_MS = 300000, LOOK_AGAIN_MS = 2000, ONLY_PLAYED = new Set(["transcript", "pytest", "journal"]);
const { player, view } = page;

/** Show what was recorded: `first` has the groups, where time begins, and whether it goes on. */
export async function beginRecorded(first) {
  const asked = place(location.hash);
  document.body.classList.add("recorded");
  $("as-list").hidden = !first.live;
  $("made").hidden = false;
  $("scenario").hidden = first.live;
  $("yaml").readOnly = true;
  for (const option of [...$("save").options]) if (ONLY_PLAYED.has(option.value)) option.remove();
  setOrigin(first.origin);
  page.run = new Run({ ...first, horizon: LIVE_MS, question: first.title, answer: "", controls: {}, topics: {} });
  describe(true);
  if (first.live) setInterval(lookForGroups, LOOK_AGAIN_MS);
  const group = first.groups.includes(asked.group) ? asked.group : first.groups[0];
  if (group === undefined) { $("status").textContent = first.live ? "No group yet. Start a consumer and watch." : "No group is in it."; return; }
  $("group").value = group;
  await openGroup((asked.group ?? group) === group ? asked.at : null);
}

/** A running coordinator has other groups than before. */
async function lookForGroups() {
  const first = await source.start().catch(() => null), { scenario } = page.run;
  if (!first || first.groups.join() === scenario.groups.join()) return;
  const isFirst = !scenario.groups.length;
  scenario.groups = first.groups;
  fillGroups();
  if (isFirst) { setOrigin(first.origin); openGroup(); }
}

/** Read what was recorded of the chosen group, and show `at` of it. */
export async function openGroup(at = null) {
  const signal = beginReading(), { scenario } = page.run, run = page.run = new Run(scenario, "", at);
  view.horizon = view.to = LIVE_MS; view.from = 0;
  say("");
  document.body.dataset.done = "no";
  drawLiveActions($("actions"), scenario, chosenGroup(), recordings.control, text => { $("action-result").textContent = text; });
  page.windows.offer(scenario.control === true ? liveShareActions(chosenGroup(), recordings.control) : [], stepShare);
  try {
    await recordings.recorded(chosenGroup(), piece => { if (!signal.aborted) add(run, piece); }, signal);
    $("status").textContent = status(run.recording, false);
  } catch (problem) {
    if (!scenario.live && !signal.aborted) say(problem.message);
  }
  if (!scenario.live || signal.aborted) return;
  $("status").textContent = "away, trying again";
  setTimeout(() => { if (!signal.aborted) openGroup(); }, LOOK_AGAIN_MS);
}

function add(run, piece) {
  const { recording } = run, isLive = run.scenario.live, follows = player.at >= recording.until, isAtEnd = view.to >= view.horizon;
  if ("origin" in piece) setOrigin(piece.origin);
  if ("scenario" in piece) $("yaml").value = piece.scenario;
  recording.add(piece);
  const length = Math.max(LIVE_MS, view.to - view.from);
  view.horizon = Math.max(1000, recording.until);
  if (isAtEnd) Object.assign(view, { from: isLive ? Math.max(0, view.horizon - length) : 0, to: view.horizon });
  if (!run.reached) {
    run.reached = true;
    const begin = isLive ? recording.until : run.begin ?? run.firstRebalance;
    player.go(begin);
    if (run.begin !== null && !isLive) view.show(begin - LIVE_MS / 2, begin + LIVE_MS / 2);
  } else if (isLive && follows && !player.playing) player.go(recording.until);
  $("status").textContent = status(recording, isLive);
  redraw();
  document.body.dataset.done = "yes";
}
