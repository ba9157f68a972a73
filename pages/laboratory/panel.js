// The group in this instant: its state, its members with their timers, what is parked, and the log.

import { stateDiagram } from "./diagram.js";
import { UNNAMED } from "./recording.js";
import { tasksNow } from "./tasks_now.js";
import { ofOwner } from "./theme.js";
import { clock, span } from "./time.js";

export const make = (tag, className, ...children) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  // Names come from scenarios and stay text.
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
};

const partitionsOf = topics => Object.entries(topics || {}).map(([topic, indexes]) => `${topic} ${indexes.join(" ")}`).join(", ");

/** A timer that counts down: what is left of its whole length. */
function timer(name, due, at, whole) {
  if (due === null || due === undefined) return null;
  const left = Math.max(0, due - at);
  const fill = make("i");
  fill.style.width = `${Math.min(100, left / Math.max(1, whole) * 100)}%`;
  const row = make("div", `timer ${name === "heartbeat" ? name : left < whole * 0.25 ? "low" : ""}`, make("span", "", name), make("b", "", fill), make("em", "", left ? span(left) : "due"));
  row.title = `${name}: fires at ${clock(due, true)}`;
  return row;
}

function swatch(number) {
  const mark = make("i", "swatch");
  mark.style.background = ofOwner(number);
  return mark;
}

function memberCard(name, process, view, at, names, isKnown) {
  const member = process.member, known = view && member && view.memberId === member.member_id;
  const generation = member ? member.generation : -1;
  const head = make("div", "head", swatch(names.numberOf(name)), make("strong", "", name));
  if (view && view.isLeader) head.append(make("span", "chip leader", "leader"));
  if (view && view.groupInstanceId) head.append(make("span", "chip", "static"));
  const parked = known && view.awaitingJoin ? "JoinGroup parked" : known && view.awaitingSync ? "SyncGroup parked" : "";
  if (parked) head.append(make("span", "chip busy", parked));
  const state = !process.isUp ? "process is down" : member.state.toLowerCase().replaceAll("_", " ") + (process.isClosing ? ", closing" : "");
  head.append(make("span", "soft", state));
  const card = make("li", process.isUp ? "" : "down", head);
  if (member && generation > 0) card.append(make("div", "soft", `${names.generation} ${generation}${partitionsOf(process.owned) ? ` · owns ${partitionsOf(process.owned)}` : " · owns nothing"}`));
  if (view && !known) card.append(make("div", "bad", process.isUp ? "The coordinator still has an earlier member of this process." : "The coordinator does not know that it is down."));
  if (!view && isKnown && process.isUp && process.owned && Object.keys(process.owned).length) {
    card.append(make("div", "bad", "The coordinator has removed it, or it has left; its application does not know yet."));
  }
  if (view) card.append(timer("session", view.sessionExpiresAt, at, view.sessionTimeoutMs) || "");
  if (member) {
    if (view) card.append(timer("max.poll", member.poll_expires_at, at, view.rebalanceTimeoutMs) || "");
    card.append(timer("heartbeat", member.heartbeat_at, at, view ? Math.max(1000, view.sessionTimeoutMs / 9) : 5000) || "");
  }
  return card;
}

/** A member of which no process is left, while its client is another member by now. */
function ghostCard(member, at) {
  const head = make("div", "head", make("strong", "", member.clientId), make("span", "chip", "ghost"), make("span", "soft", "its former member"));
  return make("li", "down", head, timer("session", member.sessionExpiresAt, at, member.sessionTimeoutMs));
}

const SHOWN_MEMBERS = 40;

/** Draw the state of a group into an element. */
export function drawGroup(element, state, group, recording) {
  const found = state.groups[group];
  if (!found) return;
  const first = found.led[0], view = first && first.group, at = state.at;
  const unit = recording.unitOf(group);
  const names = { generation: unit, numberOf: name => recording.byName.get(name)?.number };
  const parts = [];
  const current = view ? view.state : first && !first.isLoading ? "Empty" : "";
  parts.push(stateDiagram(current, view ? view.previousState : "", recording.kindOf(group)));
  const properties = make("dl", "properties");
  const property = (name, value) => { if (value !== null && value !== undefined && value !== "") properties.append(make("dt", "", name), make("dd", "", value)); };
  property("coordinator", first ? `${first.node === UNNAMED ? "a broker that is not named" : first.node}${first.epoch === undefined ? "" : `, leader epoch ${first.epoch}`}${first.isLoading ? ", loading" : ""}` : "none");
  for (const other of found.led.slice(1)) property("zombie", `${other.node}, leader epoch ${other.epoch}`);
  if (view) {
    property(unit === "epoch" ? "group epoch" : unit, `${view.generation}`);
    property("assignor", view.protocol);
    const clients = new Map(view.members.map(each => [each.memberId, each.clientId]));
    property("leader", clients.get(view.leader));
    property("in this state", span(at - view.stateSince));
    property("awaited", view.pendingMembers.length ? `${view.pendingMembers.length} that were given a member id` : "");
    for (const [name, due] of Object.entries(view.deadlines)) {
      if (/^(join|sync|initial)/.test(name)) property(`${name.split(" ")[0]} timer`, `${span(due - at)}, fires at ${clock(due)}`);
    }
  }
  parts.push(properties, ...tasksNow(recording, group, view, at), make("h3", "", "Members"), memberList(state, view, group, at, names));
  if (found.log) parts.push(make("h3", "", `Log of the group: ${found.log.count} records`), logList(found.log));
  element.replaceChildren(...parts);
}

function memberList(state, view, group, at, names) {
  const known = view ? view.members : [], list = make("ul", "members");
  const processes = Object.entries(state.processes).filter(([, each]) => each.group === group);
  const ids = new Map(processes.map(([name, each]) => [name, each.isUp && each.member ? each.member.member_id : null]));
  const own = name => known.find(each => each.clientId === name && each.memberId === ids.get(name));
  const former = known.filter(each => ids.has(each.clientId) && own(each.clientId) && each.memberId !== ids.get(each.clientId));
  for (const [name, process] of processes.slice(0, SHOWN_MEMBERS)) {
    const member = own(name) || known.find(each => each.clientId === name);
    list.append(memberCard(name, process, member, at, names, !!view));
  }
  for (const member of former.slice(0, SHOWN_MEMBERS)) list.append(ghostCard(member, at));
  if (processes.length > SHOWN_MEMBERS) list.append(make("li", "soft", `and ${processes.length - SHOWN_MEMBERS} more`));
  if (!processes.length) list.append(make("li", "soft", "The group has no member."));
  return list;
}

function logList(log) {
  const list = make("ol", "log");
  for (const [number, at, key, value] of [...log.last].reverse()) {
    list.append(make("li", key.startsWith("offset") ? "soft" : "", make("time", "", clock(at)), make("span", "", key), make("span", "", value)));
    list.lastChild.title = `record ${number} at ${clock(at, true)}`;
  }
  return list;
}

/** The sentences for an instant. */
export function drawWords(element, at, sentences, just, done) {
  const texts = sentences.map(text => make("p", "", text));
  for (const line of just) {
    texts.push(make("p", "just", make("time", "", at === line.at ? "now" : `${span(at - line.at)} ago`), line.text.replace(/^\* /, "")));
  }
  element.replaceChildren(...texts);
  element.dataset.at = at;
  if (done) element.append(done);
}

/** The lines of the run around an instant; the last one that has happened is marked. */
export function drawLines(element, lines, index, go) {
  const from = Math.max(0, Math.min(index - 12, lines.length - 60));
  const items = lines.slice(from, from + 60).map((line, offset) => {
    const button = make("button", "", make("time", "", clock(line.at, true)), make("span", "", line.text));
    button.type = "button";
    button.addEventListener("click", () => go(line.at));
    const item = make("li", `${line.kind === "ScenarioAction" || line.text.startsWith("*") ? "action" : ""}${from + offset > index ? " later" : ""}`, button);
    if (from + offset === index) { item.classList.add("current"); item.setAttribute("aria-current", "true"); }
    return item;
  });
  element.replaceChildren(...items);
  const current = element.querySelector(".current");
  if (current) element.scrollTop = current.offsetTop - element.clientHeight / 2;
}

/** The numbers of a run that are not nothing, and the answer to its question. */
export function summary(rows, answer) {
  const table = make("table", "summary");
  for (const [name, value] of rows) {
    if (value === "0" || value === "0.0" || value === "none") continue;
    table.append(make("tr", "", make("th", "", name), make("td", "", value)));
  }
  return make("div", "", make("p", "answer", answer), table);
}

/** Mark a line of a text area, and bring it into sight. */
export function markLine(area, number) {
  const lines = area.value.split("\n"), before = lines.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
  area.setSelectionRange(before, before + (lines[number - 1] || "").length);
  area.scrollTop = (number - 4) * parseFloat(getComputedStyle(area).lineHeight);
}

/** A name that may be broken where its parts meet (dots, dashes, slashes, and before capitals), and nowhere else. */
export function breakable(text) {
  const parts = text.split(/(?<=[./_:,-])(?=\w)|(?<=[a-z])(?=[A-Z])/);
  return parts.flatMap((part, index) => (index ? [make("wbr"), part] : [part]));
}
