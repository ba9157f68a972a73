// Playing scenarios: a run begins, its pieces come, and the scenario is changed while one looks at it.

import { drawActions, shareActions } from "./actions.js";
import { drawEvents, show } from "./instant.js";
import { drawKept } from "./kept.js";
import { beginReading, chosenGroup, page } from "./page.js";
import { make } from "./panel.js";
import { say } from "./problem.js";
import { Run } from "./run.js";
import { drawSettings } from "./settings.js";
import { stepShare } from "./share_steps.js";
import * as source from "./source.js";
import { redraw } from "./stage.js";
import { span } from "./time.js";

const $ = id => document.getElementById(id);
const { player, view } = page;

/** Play a scenario. `at`: the instant to show; without it the first thing that happens to the group. */
export async function start(text, seed, at = null) {
  const signal = beginReading();
  let run = null, isNew = true;
  player.toggle(false);
  page.run.following = false;
  say("");
  $("status").textContent = "playing…";
  document.body.dataset.done = "no";
  try {
    await source.play(text, seed, head => {
      isNew = at === null || page.run.scenario === null;
      page.run = run = new Run(head, text, at);
      describe(isNew);
      drawKept();
    }, piece => add(run, piece, isNew), signal);
    run.recording.done = true;
    if (run !== page.run) return;
    if (!run.reached) player.go(run.firstInstant);
    showWhole();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    $("status").textContent = "";
    say(problem.message, problem.line);
  }
}

function add(run, piece, isNew) {
  const { recording } = run;
  recording.add(piece);
  redraw();
  if (run !== page.run) return;
  const target = run.firstInstant;
  if (!run.reached && target !== null && piece.until >= target) {
    run.reached = true;
    player.go(target);
    if (!isNew) view.follow(target);
  }
  if (run.following) { player.go(recording.until); view.follow(recording.until); }
  $("status").textContent = piece.done ? `${span(piece.until)} played, ${recording.requests.length.toLocaleString("en")} requests` : run.progress;
}

/** Show the run, which is played to its end, and what can be done to its groups. */
export function showWhole() {
  redraw();
  page.run.line = null;
  drawEvents(player.at);
  show(player.at);
  drawActions($("actions"), about(), addEvent);
  page.windows.offer(shareActions(chosenGroup(), addEvent, () => $("action-result").textContent), stepShare);
  drawKept();
  document.body.dataset.done = "yes";
}

/** The members, groups and topics that actions can be about. */
function about() {
  const { recording, scenario } = page.run;
  return {
    members: recording.actors.filter(each => each.kind === "consumer").map(each => each.name),
    groups: scenario.groups,
    topics: scenario.topics,
    count: group => recording.actors.filter(each => each.group === group && (each.up.at(player.at) || {}).isUp).length,
  };
}

/** Show the scenario of the run: its question, its text, its groups. */
export function describe(isNew) {
  const { scenario, seed, text } = page.run;
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

export function fillGroups() {
  const before = chosenGroup(), { groups } = page.run.scenario;
  $("group").replaceChildren(...groups.map(name => make("option", "", name)));
  if (groups.includes(before)) $("group").value = before;
  $("group").parentElement.hidden = groups.length < 2;
  fillSettings();
}

export function fillSettings() { drawSettings($("settings"), page.run.scenario.controls[chosenGroup()] || [], setValue); }

async function setValue(control, value) {
  const { text, seed } = page.run;
  try {
    const changed = await source.withValue(text, control.path, value);
    await start(changed.text, seed, player.at);
  } catch (problem) {
    say(problem.message, problem.line);
    fillSettings();
  }
}

async function addEvent(action, at = player.at) {
  const { text, seed } = page.run;
  try {
    const changed = await source.withEvent(text, at, action);
    const said = changed.text.split("\n").find(each => each.includes(action)) || action;
    await start(changed.text, seed, at);
    $("action-result").textContent = `Added to the scenario: ${said.trim()}`;
  } catch (problem) {
    say(problem.message, problem.line);
  }
}
