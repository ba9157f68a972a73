// The laboratory's page: one instant, drawn everywhere.

import { drawActions } from "./actions.js";
import { Findings, findingsList } from "./findings.js";
import { drawDifference, drawNumbers } from "./kept.js";
import { Lag } from "./lag.js";
import { Lessons } from "./lessons.js";
import { drawGroup, drawLines, drawWords, make, markLine, summary } from "./panel.js";
import * as partitions from "./partitions.js";
import { Player, SPEEDS } from "./player.js";
import { drawLiveActions } from "./live.js";
import { place, placeText, stateOf, status, withTimers } from "./recorded.js";
import { after, Recording } from "./recording.js";
import { drawSettings } from "./settings.js";
import { pack, save, unpack } from "./share.js";
import * as recordings from "./recorded_source.js";
import * as source from "./source.js";
import { SvgPen } from "./svg.js";
import { pointer } from "./pointer.js";
import { colour, refresh } from "./theme.js";
import { clock, setOrigin, span, TimeView } from "./time.js";
import { fit, Track } from "./track.js";

const $ = id => document.getElementById(id);
const OVERVIEW = 34;
const view = new TimeView(), player = new Player();
let recording = new Recording(), scenario = null, text = "", seed = null, run = null, playing = null;
let lessons = null;
let kept = null, dirty = false, wanted = null, asking = false, shown = null, reached = false;

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
  player.toggle(false);
  player.go(at);
  view.follow(at);
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
    if (of === run) { shown = state; drawState(); }
  } catch (problem) {
    if (of === run) say(problem.message);
  } finally {
    asking = false;
    if (wanted !== null) ask();
  }
}

function drawState() {
  if (!shown) return;
  const group = $("group").value;
  drawWords($("words"), shown.at, recording.words(shown, group), recording.justBefore(shown.at), atTheEnd(group));
  drawGroup($("now"), shown, group);
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

function say(problem, where = null) {
  $("problem").textContent = problem;
  $("problem").hidden = !problem;
  if (where) markLine($("yaml"), where);
}

/** Play a scenario. `at`: the instant to show; without it the first thing that happens to the group. */
async function start(newText, newSeed, at = null) {
  if (playing) playing.abort();
  playing = new AbortController();
  const { signal } = playing;
  let isNew = true;
  player.toggle(false);
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
  $("status").textContent = piece.done ? `${span(piece.until)} played, ${recording.requests.length.toLocaleString("en")} requests` : `playing… ${clock(piece.until)}`;
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

function jump(direction) { goTo(recording.nextRebalance(player.at, direction)); }
function step(direction) { goTo(recording.nextMoment(player.at, direction)); }

const KEYS = {
  " ": () => player.toggle(), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
  ".": () => goTo(player.at + 1), ",": () => goTo(player.at - 1), n: () => jump(1), p: () => jump(-1),
  Home: () => goTo(0), End: () => goTo(recording.until),
  "+": () => view.zoom(0.5, player.at), "=": () => view.zoom(0.5, player.at), "-": () => view.zoom(2, player.at), 0: () => view.fit(),
  "]": () => player.faster(1), "[": () => player.faster(-1), a: () => view.pan((view.from - view.to) / 4), d: () => view.pan((view.to - view.from) / 4),
  "?": () => $("keys").showModal(),
};

document.addEventListener("keydown", event => {
  const inText = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.id !== "slider";
  if (inText || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === " " && /^(BUTTON|SUMMARY|A)$/.test(event.target.tagName)) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
});

const BUTTONS = {
  play: KEYS[" "], next: KEYS.ArrowRight, back: KEYS.ArrowLeft, first: KEYS.Home, last: KEYS.End, "next-rebalance": KEYS.n,
  "last-rebalance": KEYS.p, closer: KEYS["+"], wider: KEYS["-"], all: KEYS[0], help: KEYS["?"],
  keep, swap, drop: () => { kept = null; drawKept(); },
  again: () => start($("yaml").value, $("seed").value === "" ? null : Number($("seed").value), player.at),
};
for (const [id, act] of Object.entries(BUTTONS)) $(id).addEventListener("click", act);

$("speed").append(...SPEEDS.map(speed => { const option = make("option", "", `${speed}×`); option.value = speed; return option; }));
$("speed").value = player.speed;
$("speed").addEventListener("change", () => { player.speed = Number($("speed").value); });
$("slider").addEventListener("input", () => goTo(Number($("slider").value)));
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
$("share").addEventListener("click", async () => {
  history.replaceState(null, "", scenario.recorded ? placeText($("group").value, player.at) : "#" + await pack({ text, seed, at: player.at, ...(kept && { kept: { text: kept.text, seed: kept.seed } }) }));
  try { await navigator.clipboard.writeText(location.href); $("action-result").textContent = "The address is copied."; } catch { $("action-result").textContent = "The address has it."; }
});
$("save").addEventListener("change", async () => {
  const kind = $("save").value, group = $("group").value;
  $("save").value = "";
  try {
    if (kind === "yaml") save("scenario.yaml", $("yaml").value, "application/yaml");
    else if (kind === "svg") save("group.svg", drawing(), "image/svg+xml");
    else if (kind === "animation") save("group.svg", drawing(true), "image/svg+xml");
    else if (kind === "transcript") save("scenario.txt", await source.exported(run, kind, group), "text/plain");
    else if (kind === "journal") save("journal.jsonl", await source.exported(run, kind, group), "application/x-ndjson");
    else if (kind === "pytest") save("test_scenario.py", await source.exported(run, kind, group), "text/x-python");
  } catch (problem) {
    say(problem.message);
  }
});

const SHORTEST_FILM = 6, LONGEST_FILM = 30;

/** The drawings as they are, as SVG; animated, time passes in them. */
function drawing(animated = false) {
  const pen = new SvgPen(view.width, above.height(shows()), overviewContext);
  above.drawWith(pen, shows());
  if (animated) {
    const seconds = Math.max(SHORTEST_FILM, Math.min(LONGEST_FILM, (view.to - view.from) / 1000 / player.speed));
    pen.play(view.left, view.width - 8, seconds, colour("ground"), colour("ink"));
  }
  redraw();
  return pen.text(colour("ground"));
}

// -- the pointer

for (const each of [above, below]) for (const canvas of Object.values(each.canvases)) pointer(canvas, view, x => view.time(x), goTo);
pointer(overview, view, x => (x - view.left) / (view.width - 10 - view.left) * view.horizon, goTo);
new ResizeObserver(redraw).observe($("stage"));
addEventListener("scroll", () => { if ($("stage").clientHeight > innerHeight) redraw(); }, { passive: true });
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
  if (!shared && all.some(each => each.name === first.name)) $("gallery").value = first.name;
  if (shared && shared.kept && typeof shared.kept.text === "string") {
    await start(shared.kept.text, shared.kept.seed ?? null);
    keep();
  }
  if (shared) await start(shared.text, shared.seed ?? null, shared.at ?? null);
  else await start(first.text, first.seed);
}

// For tests, and for the console.
window.laboratory = { player, view, drawing, above, below, get kept() { return kept; }, get lessons() { return lessons; }, get recording() { return recording; }, span };
begin().catch(problem => say(problem.message));
