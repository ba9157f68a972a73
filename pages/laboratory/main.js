// The laboratory's page: one instant, drawn everywhere.

import { drawActions } from "./actions.js";
import { connect } from "./controls.js";
import { Findings, findingsList } from "./findings.js";
import { drawDifference, drawNumbers } from "./kept.js";
import { Lag } from "./lag.js";
import { Lessons } from "./lessons.js";
import { drawGroup, drawLines, drawWords, make, markLine, summary } from "./panel.js";
import * as partitions from "./partitions.js";
import { Player } from "./player.js";
import { drawLiveActions } from "./live.js";
import { place, placeText, stateOf, status, withTimers } from "./recorded.js";
import { after, Recording } from "./recording.js";
import { drawSettings } from "./settings.js";
import { connectSave, connectShare, drawing } from "./saving.js";
import { pack, unpack } from "./share.js";
import * as recordings from "./recorded_source.js";
import * as source from "./source.js";
import { pointer } from "./pointer.js";
import { refresh } from "./theme.js";
import { clock, setOrigin, span, TimeView } from "./time.js";
import { fit, Track } from "./track.js";

const $ = id => document.getElementById(id);
const OVERVIEW = 34;
const view = new TimeView(), player = new Player();
let recording = new Recording(), scenario = null, text = "", seed = null, run = null, playing = null;
let lessons = null;
let kept = null, dirty = false, wanted = null, asking = false, shown = null, reached = false, following = false, pending = null, saidBy = "";

const overview = $("overview"), overviewContext = overview.getContext("2d");
const track = name => new Track($(`${name}lanes`), $(`${name}partitions`), $(name ? `${name}lag` : "lag-chart"), view, new Lag(source.lag, redraw));
const findings = new Findings(source.findings, () => { if (shown) drawState(); });
const above = track(""), below = track("kept-");

// -- drawing

/** Draw with the next frame. */
function redraw() {
  if (dirty) return;
  dirty = true;
  requestAnimationFrame(drawAll);
}

/** What is drawn of a run. */
function shows() {
  const mostLag = Math.max(1, above.lag.most, kept ? below.lag.most : 0);
  return { requests: $("requests").checked, minor: $("minor").checked, group: $("lag").checked ? $("group").value : null, mostLag };
}

function drawAll() {
  dirty = false;
  const width = $("stage").clientWidth;
  if (!width) return;
  view.width = width;
  view.left = width < 560 ? 92 : 150;
  Object.assign(above, { recording, run });
  fit(overview, overviewContext, width, OVERVIEW);
  partitions.drawOverview(overviewContext, recording, view, OVERVIEW);
  above.draw(shows());
  if (kept) below.draw(shows());
  cursor();
}

/** Where the instant is: lines over the drawings, which are not drawn anew for it. */
function cursor() {
  const x = view.x(player.at), inside = x >= view.left - 1 && x <= view.width - 9;
  $("head").style.transform = `translateX(${x}px)`;
  $("head").hidden = !inside;
  $("kept-head").style.transform = `translateX(${x}px)`;
  $("kept-head").hidden = !inside;
  const behind = $("lag").checked ? above.lag.at(player.at) : "";
  $("lag-now").hidden = !$("lag").checked;
  $("lag-now").textContent = behind ? `${$("group").value}: ${behind}` : recording.done ? "" : "The lag is drawn when the run is played to its end.";
  $("veil").style.left = `${Math.max(view.left, Math.min(view.width, x))}px`;
  $("overveil").style.left = `${view.left + player.at / view.horizon * (view.width - 10 - view.left)}px`;
  $("overhead").style.transform = `translateX(${view.left + player.at / view.horizon * (view.width - 10 - view.left)}px)`;
  $("clock").textContent = clock(player.at, true);
  const slider = $("slider");
  slider.max = Math.max(1, recording.until);
  slider.value = player.at;
  slider.setAttribute("aria-valuetext", clock(player.at, true));
}

// -- the instant

player.limit = () => recording.until;
player.isGrowing = isBeingPlayed;
player.onMove = at => {
  if (player.playing) view.follow(at);
  cursor();
  drawEvents(at);
  wanted = at;
  ask();
};
player.onToggle = isPlaying => {
  $("play").textContent = isPlaying ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", isPlaying);
  $("speed").value = player.speed;
};
view.onChange = redraw;

let line = -2;
function drawEvents(at) {
  const index = after(recording.lines, at, each => each.at) - 1;
  if (index === line) return;
  line = index;
  drawLines($("lines"), recording.lines, index, goTo);
}

function goTo(at) {
  following = false;
  player.toggle(false);
  player.go(at);
  view.follow(at);
}

/** Go to the end; while the run is still being played, go along with what is played until it is there. */
function toEnd() {
  goTo(recording.until);
  following = isBeingPlayed();
  if (following) $("status").textContent = progress();
}

function isBeingPlayed() { return !!scenario && !scenario.recorded && !recording.done; }

/** What the header says while a run is being played: how far it is, and which instant is shown then. */
function progress() {
  const then = following ? ", then the end is shown" : pending !== null && !reached ? `, then ${clock(pending)} is shown` : "";
  return `playing… ${clock(recording.until)}${then}`;
}

/** Ask for the state of the instant; of many that are wanted in between only the last. */
async function ask() {
  if (scenario && scenario.recorded) { showRecorded(); return; }
  if (asking || wanted === null || run === null) return;
  asking = true;
  const at = wanted, of = run;
  wanted = null;
  try {
    const state = await source.stateAt(of, at);
    if (of === run) { shown = state; drawState(); unsay("state"); }
  } catch (problem) {
    if (of === run) say(problem.message, null, "state");
  } finally {
    asking = false;
    if (wanted !== null) ask();
  }
}

function drawState() {
  if (!shown) return;
  const group = $("group").value;
  drawWords($("words"), shown.at, recording.words(shown, group), recording.justBefore(shown.at), atTheEnd(group));
  drawGroup($("now"), shown, group, recording);
  document.body.dataset.at = shown.at;
}

/** At the end of the run: what it says in numbers, the answer to its question, and what the rules find. */
function atTheEnd(group) {
  if (!recording.done || shown.at < recording.until || !recording.summary[group]) return null;
  const parts = summary(recording.summary[group], scenario.answer), found = findings.of(run, group);
  if (found) parts.append(findingsList(found));
  return parts;
}

// -- runs

/** Show a problem, until what it is `by` succeeds. */
function say(problem, where = null, by = "play") {
  saidBy = by;
  $("problem").textContent = problem;
  $("problem").hidden = !problem;
  if (where) markLine($("yaml"), where);
}

function unsay(by) { if (saidBy === by) say("", null, by); }

/** Play a scenario. `at`: the instant to show; without it the first thing that happens to the group. */
async function start(newText, newSeed, at = null) {
  if (playing) playing.abort();
  playing = new AbortController();
  const { signal } = playing;
  let isNew = true;
  player.toggle(false);
  following = false;
  pending = at;
  say("");
  $("status").textContent = "playing…";
  document.body.dataset.done = "no";
  try {
    await source.play(newText, newSeed, head => {
      isNew = scenario === null || at === null;
      text = newText; seed = head.seed; run = head.run; scenario = head;
      recording = new Recording();
      shown = null; line = -2; reached = false;
      describe(isNew);
      drawKept();
    }, piece => add(piece, at, isNew), signal);
    finished(at);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    $("status").textContent = "";
    say(problem.message, problem.line);
  }
}

function add(piece, at, isNew) {
  recording.add(piece);
  const target = at === null ? firstInstant() : at;
  if (!reached && target !== null && piece.until >= target) {
    reached = true;
    player.go(target);
    if (!isNew) view.follow(target);
  }
  if (following) { player.go(recording.until); view.follow(recording.until); }
  $("status").textContent = piece.done ? `${span(piece.until)} played, ${recording.requests.length.toLocaleString("en")} requests` : progress();
  const group = $("group").value;
  if (![...$("group").options].length && scenario) fillGroups(group);
  redraw();
}

function firstInstant() {
  const action = recording.lines.find(each => each.kind === "ScenarioAction");
  return action ? action.at : recording.done ? (recording.rebalances[0] || { start: 0 }).start : null;
}

function finished(at) {
  recording.done = true;
  if (!reached) player.go(at === null ? (recording.rebalances[0] || { start: 0 }).start : at);
  redraw();
  line = -2;
  drawEvents(player.at);
  wanted = player.at;
  ask();
  drawActions($("actions"), about(), addEvent);
  drawKept();
  document.body.dataset.done = "yes";
}

function about() {
  return {
    members: recording.actors.filter(each => each.kind === "consumer").map(each => each.name),
    groups: scenario.groups,
    topics: scenario.topics,
    count: group => recording.actors.filter(each => each.group === group && (each.up.at(player.at) || {}).isUp).length,
  };
}

function describe(isNew) {
  view.horizon = scenario.horizon;
  if (isNew) { view.from = 0; view.to = scenario.horizon; }
  $("question").textContent = scenario.question || scenario.title;
  $("answer").hidden = !scenario.answer;
  $("answer").open = false;
  $("answer").querySelector("p").textContent = scenario.answer;
  $("seed").value = seed;
  $("yaml").value = text;
  fillGroups();
}

function fillGroups() {
  const before = $("group").value;
  $("group").replaceChildren(...scenario.groups.map(name => make("option", "", name)));
  if (scenario.groups.includes(before)) $("group").value = before;
  $("group").parentElement.hidden = scenario.groups.length < 2;
  fillSettings();
}

function fillSettings() { drawSettings($("settings"), scenario.controls[$("group").value] || [], setValue); }

async function setValue(control, value) {
  try {
    const changed = await source.withValue(text, control.path, value);
    await start(changed.text, seed, player.at);
  } catch (problem) {
    say(problem.message, problem.line);
    fillSettings();
  }
}

// -- another run beside it

/** Keep the run that is shown; others are compared with it. */
function keep() {
  kept = { text, seed, run, scenario, recording };
  Object.assign(below, { recording, run });
  drawKept();
  redraw();
}

function drawKept() {
  $("kept").hidden = !kept;
  if (!kept) return;
  drawDifference($("difference"), { text, seed }, kept);
  drawNumbers($("numbers"), recording, kept.recording);
  if (recording.done) source.stateAt(kept.run, 0).catch(() => {});  // the server forgets runs that nobody looks at
}

/** Show the run that was kept, and keep the one that was shown. */
function swap() {
  const before = { text, seed, run, scenario, recording };
  ({ text, seed, run, scenario, recording } = kept);
  kept = before;
  Object.assign(below, { recording: kept.recording, run: kept.run });
  shown = null; line = -2;
  describe(false);
  finished(player.at);
}

async function addEvent(action) {
  try {
    const at = player.at, changed = await source.withEvent(text, at, action);
    const said = changed.text.split("\n").find(each => each.includes(action)) || action;
    await start(changed.text, seed, at);
    $("action-result").textContent = `Added to the scenario: ${said.trim()}`;
  } catch (problem) {
    say(problem.message, problem.line);
  }
}

// -- groups that were recorded, not played

const LIVE_MS = 300000, LOOK_AGAIN_MS = 2000, ONLY_PLAYED = new Set(["transcript", "pytest", "journal"]);

/** Show what was recorded: `first` has the groups, where time begins, and whether it goes on. */
async function beginRecorded(first) {
  const asked = place(location.hash);
  document.body.classList.add("recorded");
  $("as-list").hidden = !first.live;
  $("made").hidden = false;
  $("scenario").hidden = first.live;
  $("yaml").readOnly = true;
  for (const option of [...$("save").options]) if (ONLY_PLAYED.has(option.value)) option.remove();
  setOrigin(first.origin);
  scenario = { ...first, horizon: LIVE_MS, question: first.title, answer: "", controls: {}, topics: {} };
  seed = ""; text = "";
  describe(true);
  if (first.live) setInterval(lookForGroups, LOOK_AGAIN_MS);
  const group = first.groups.includes(asked.group) ? asked.group : first.groups[0];
  if (group === undefined) { $("status").textContent = first.live ? "No group yet. Start a consumer and watch." : "No group is in it."; return; }
  $("group").value = group;
  await openGroup((asked.group ?? group) === group ? asked.at : null);
}

/** A running coordinator has other groups than before. */
async function lookForGroups() {
  const first = await source.start().catch(() => null);
  if (!first || first.groups.join() === scenario.groups.join()) return;
  const isFirst = !scenario.groups.length;
  scenario.groups = first.groups;
  fillGroups();
  if (isFirst) { setOrigin(first.origin); openGroup(null); }
}

/** Read what was recorded of the chosen group. */
async function openGroup(at) {
  if (playing) playing.abort();
  playing = new AbortController();
  const { signal } = playing;
  recording = new Recording();
  shown = null; line = -2; reached = false;
  view.horizon = view.to = LIVE_MS; view.from = 0;
  say("");
  document.body.dataset.done = "no";
  drawLiveActions($("actions"), scenario, $("group").value, recording, recordings.control, text => { $("action-result").textContent = text; });
  try {
    await recordings.recorded($("group").value, piece => { if (!signal.aborted) addRecorded(piece, at); }, signal);
    $("status").textContent = status(recording, false);
  } catch (problem) {
    if (!scenario.live && !signal.aborted) say(problem.message);
  }
  if (!scenario.live || signal.aborted) return;
  $("status").textContent = "away, trying again";
  setTimeout(() => { if (!signal.aborted) openGroup(null); }, LOOK_AGAIN_MS);
}

function addRecorded(piece, at) {
  const isLive = scenario.live, follows = player.at >= recording.until, isAtEnd = view.to >= view.horizon;
  if ("origin" in piece) setOrigin(piece.origin);
  if ("scenario" in piece) $("yaml").value = piece.scenario;
  recording.add(piece);
  const length = Math.max(LIVE_MS, view.to - view.from);
  view.horizon = Math.max(1000, recording.until);
  if (isAtEnd) Object.assign(view, { from: isLive ? Math.max(0, view.horizon - length) : 0, to: view.horizon });
  if (!reached) {
    reached = true;
    const begin = isLive ? recording.until : at ?? (recording.rebalances[0] || { start: 0 }).start;
    player.go(begin);
    if (at !== null && !isLive) view.show(begin - LIVE_MS / 2, begin + LIVE_MS / 2);
  } else if (isLive && follows && !player.playing) player.go(recording.until);
  $("status").textContent = status(recording, isLive);
  redraw();
  document.body.dataset.done = "yes";
}

/** Show an instant; what only a running coordinator knows is asked for at the newest. */
async function showRecorded() {
  const group = $("group").value, at = player.at;
  wanted = null;
  shown = stateOf(recording, group, at);
  if (scenario.live && at === recording.until && !asking) {
    asking = true;
    const now = await recordings.groupNow(group).catch(() => null);
    asking = false;
    if (now && at === player.at) shown = withTimers(stateOf(recording, group, at), group, now, scenario.origin);
  }
  drawState();
}

// -- controls

connect({
  player, view, goTo, toEnd, recording: () => recording,
  buttons: {
    keep, swap, drop: () => { kept = null; drawKept(); },
    again: () => start($("yaml").value, $("seed").value === "" ? null : Number($("seed").value), player.at),
  },
});

$("group").addEventListener("change", () => {
  if (scenario.recorded) { openGroup(null); return; }
  drawState(); fillSettings(); redraw();
});
for (const name of ["minor", "requests", "lag"]) $(name).addEventListener("change", redraw);
$("gallery").addEventListener("change", () => { lessons.leave(); openScenario($("gallery").value); });

/** Play a scenario of the gallery. */
async function openScenario(name) {
  const found = await source.galleryText(name);
  scenario = null;
  $("gallery").value = name;
  await start(found.text, null);
}
connectShare(async () => {
  if (scenario.recorded) return placeText($("group").value, player.at);
  return "#" + await pack({ name: $("gallery").value, text, seed, at: player.at, ...(kept && { kept: { text: kept.text, seed: kept.seed } }) });
});

/** The drawings as SVG; the canvases lend their ruler, so they are drawn anew. */
function asSvg(animated = false) {
  redraw();
  return drawing({ view, player, above, shows, ruler: overviewContext }, animated);
}
connectSave({ drawing: asSvg, run: () => run, say, unsay });

// -- the pointer

for (const each of [above, below]) for (const canvas of Object.values(each.canvases)) pointer(canvas, view, x => view.time(x), goTo);
pointer(overview, view, x => (x - view.left) / (view.width - 10 - view.left) * view.horizon, goTo);
new ResizeObserver(redraw).observe($("stage"));
/** Draw anew where the window shows what was not drawn. */
function look() { if (above.isStale || (kept && below.isStale)) redraw(); }
addEventListener("scroll", look, { passive: true });
addEventListener("resize", redraw);
new ResizeObserver(look).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { refresh(); redraw(); drawState(); });

// -- the beginning

async function begin() {
  const first = await source.start();
  if (first.recorded) { await beginRecorded(first); return; }
  const shared = await unpack(location.hash);
  const [all, chapters] = await Promise.all([source.gallery(), source.lessons()]);
  lessons = new Lessons(chapters, { open: openScenario, goTo, show: (from, to) => view.show(from, to), redraw, recording: () => recording, groups: () => scenario.groups });
  $("gallery").replaceChildren(...all.map(each => { const option = make("option", "", each.title); option.value = each.name; option.title = each.question; return option; }));
  $("gallery").selectedIndex = -1;
  const name = shared ? shared.name : first.name;
  if (all.some(each => each.name === name)) $("gallery").value = name;
  else {
    const own = make("option", "", shared ? "a shared run" : "a scenario of your own");
    own.value = "";
    own.disabled = true;
    $("gallery").prepend(own);
    $("gallery").value = "";
  }
  if (shared && shared.kept && typeof shared.kept.text === "string") {
    await start(shared.kept.text, shared.kept.seed ?? null);
    keep();
  }
  if (shared) await start(shared.text, shared.seed ?? null, shared.at ?? null);
  else await start(first.text, first.seed);
}

// For tests, and for the console.
window.laboratory = { player, view, drawing: asSvg, above, below, get kept() { return kept; }, get lessons() { return lessons; }, get recording() { return recording; }, span };
begin().catch(problem => say(problem.message));
