// Tasks × time: a block for each process of an application, with the epochs of its members, and the tasks that it has.

import { axis } from "./partitions.js";
import { after } from "./searching.js";
import { colour, hatch, inkOn, ofOwner } from "./theme.js";
import { span } from "./time.js";

const TOP = 18, MARKS = 18, EPOCHS = 13, GAP = 7, AXIS = 20, RIGHT = 8;
const FONT = "11px system-ui, sans-serif", SMALL = "10px system-ui, sans-serif";
const FADED = 0.3;

export function layout(recording) {
  const groups = recording.tasks.all, slots = groups.flatMap(group => group.processes).reduce((sum, each) => sum + each.slots.length, 0);
  const rowHeight = Math.max(3, Math.min(15, Math.floor(620 / Math.max(1, slots)))), parts = [];
  let y = TOP;
  for (const group of groups) {
    if (group.marks.length) {
      parts.push({ group, top: y });
      y += MARKS;
    }
    for (const process of group.processes) {
      if (!process.slots.length) continue;
      parts.push({ process, top: y });
      y += EPOCHS + process.slots.length * rowHeight + GAP;
    }
  }
  return { parts, rowHeight, several: groups.length > 1, height: groups.length ? y + AXIS : 0 };
}

/** Draw what is between two heights of the drawing. */
export function draw(c, recording, view, plan, { top, bottom }) {
  c.font = FONT;
  c.textBaseline = "middle";
  c.textAlign = "left";
  c.fillStyle = colour("soft");
  c.fillText("tasks by process", view.left, 9);
  for (const part of plan.parts) {
    const high = part.group ? MARKS : EPOCHS + part.process.slots.length * plan.rowHeight + GAP;
    if (part.top + high < top || part.top > bottom) continue;
    name(c, view, plan, part);
    c.save();
    c.beginPath();
    c.rect(view.left, part.top, view.width - view.left - RIGHT, high);
    c.clip();
    if (part.group) marks(c, recording, view, part); else block(c, recording, view, plan, part);
    c.restore();
  }
  axis(c, view, plan.height - AXIS + 2);
}

function name(c, view, plan, { group, process, top }) {
  c.textAlign = "right";
  c.fillStyle = colour(group ? "soft" : "ink");
  if (group) c.fillText(plan.several ? `${group.name}: topology` : "topology", view.left - 10, top + 8, view.left - 14);
  else c.fillText(process.name, view.left - 10, top + EPOCHS + process.slots.length * plan.rowHeight / 2, view.left - 14);
  c.textAlign = "left";
}

/** A bar between two instants, as far as it is on the screen; null where it is not. */
function box(recording, view, start, end) {
  const until = Math.min(end, recording.until);
  if (until < view.from || start > view.to || until < start) return null;
  const x = Math.max(view.left, view.x(start));
  return [x, Math.max(1, Math.min(view.width - RIGHT, view.x(until)) - x)];
}

/** The first of some texts that fits. */
function fitting(c, texts, room) { return texts.find(each => c.measureText(each).width < room - 7) ?? ""; }

const SAID = { topics: text => [`created: ${text}`, "internal topics created"], "no topics": text => [`not created: ${text}`, "internal topics not created"], shutdown: text => [text, "shutdown"] };

/** From when to when the topology could not run, with the reason; and what became of its internal topics. */
function marks(c, recording, view, { group, top }) {
  const y = top + 1, high = MARKS - 5, all = group.marks;
  c.fillStyle = colour("none");
  c.fillRect(view.left, y, Math.max(0, Math.min(view.width - RIGHT, view.x(recording.until)) - view.left), high);
  let free = -Infinity;
  const labels = [];
  all.forEach((mark, index) => {
    if (mark.what === "ready") return;
    const next = all.slice(index + 1).find(each => mark.what === "not ready" ? each.what === "ready" || each.what === "not ready" : each.at > mark.at);
    const found = box(recording, view, mark.at, mark.what === "not ready" ? next?.at ?? Infinity : mark.at);
    if (!found) return;
    const [x, width] = found;
    c.fillStyle = mark.what === "topics" ? colour("good") : colour("bad");
    if (mark.what === "not ready") {
      c.globalAlpha = FADED;
      c.fillRect(x, y, width, high);
      c.globalAlpha = 1;
    }
    c.fillRect(x, y, 2, high);
    const texts = mark.what === "not ready" ? [`not ready: ${mark.text}`, "not ready"] : SAID[mark.what](mark.text);
    labels.push({ x, width, texts, isBar: mark.what === "not ready" });
  });
  c.fillStyle = colour("ink");
  labels.forEach(({ x, width, texts, isBar }, index) => {
    const following = labels.slice(index + 1).find(each => each.x > x + 2), room = isBar ? width : (following?.x ?? view.width - RIGHT) - x;
    const text = x + 5 < free ? "" : fitting(c, texts, room);
    if (!text) return;
    c.fillText(text, x + 5, y + high / 2 + 0.5);
    free = x + 5 + c.measureText(text).width;
  });
}

function block(c, recording, view, plan, { process, top }) {
  epochs(c, recording, view, process, top);
  const begin = top + EPOCHS, high = plan.rowHeight - (plan.rowHeight > 5 ? 1 : 0);
  c.fillStyle = colour("none");
  c.fillRect(view.left, begin, Math.max(0, Math.min(view.width - RIGHT, view.x(recording.until)) - view.left), process.slots.length * plan.rowHeight - 1);
  process.slots.forEach((slot, index) => {
    // A slot has one task at a time, so only one can reach into the screen from before it.
    for (let at = Math.max(0, after(slot, view.from, each => each.start) - 1); at < slot.length && slot[at].start <= view.to; at++) {
      task(c, recording, view, slot[at], begin + index * plan.rowHeight, high);
    }
  });
}

/** The epochs of the process's members, from the instants at which they reach them. */
function epochs(c, recording, view, process, top) {
  c.font = SMALL;
  const unit = recording.unitOf(process.group), found = [];
  for (const thread of process.threads) {
    let before = null;
    for (const part of recording.byName.get(thread)?.members.between(view.from, view.to) ?? []) {
      const isNew = part.generation > 0 && part.state !== "UNJOINED" && part.generation !== before;
      before = part.generation;
      if (!isNew) continue;
      found.push({ x: Math.max(view.left, view.x(part.start)), text: `${unit} ${part.generation}` });
    }
  }
  c.fillStyle = colour("soft");
  found.sort((a, b) => a.x - b.x).forEach(({ x, text }, index) => {
    c.fillRect(x, top + 2, 1, EPOCHS - 3);
    const room = (found[index + 1]?.x ?? Infinity) - x;
    if (c.measureText(text).width + 8 < room) c.fillText(text, x + 4, top + EPOCHS / 2);
  });
  c.font = FONT;
}

function task(c, recording, view, bar, y, high) {
  const found = box(recording, view, bar.start, bar.end), number = recording.byName.get(bar.thread)?.number;
  if (!found) return;
  const [x, width] = found, until = Math.min(bar.end, recording.until), runsAt = Math.min(bar.runsAt, until);
  c.fillStyle = ofOwner(number);
  if (bar.role !== "active") {
    c.globalAlpha = FADED;
    c.fillRect(x, y, width, high);
    c.globalAlpha = 1;
    if (bar.role === "warmup") { c.fillStyle = hatch(c, ofOwner(number), null, 4); c.fillRect(x, y, width, high); }
    else c.fillRect(x, y + high - 2, width, 2);
    label(c, [`${bar.task} ${bar.role === "warmup" ? "warm-up" : "standby"}`, bar.task], x, width, y, high, colour("ink"), bar.role === "warmup");
    return;
  }
  c.fillRect(x, y, width, high);
  const restoring = runsAt > bar.start ? box(recording, view, bar.start, runsAt) : null;
  if (restoring) {
    c.fillStyle = hatch(c, colour("card"), null, 5);
    c.fillRect(...[restoring[0], y, restoring[1], high]);
    c.strokeStyle = colour("busy");
    c.strokeRect(restoring[0] + 0.5, y + 0.5, Math.max(0, restoring[1] - 1), high - 1);
    label(c, [`${bar.task} restoring, ${span(runsAt - bar.start)}`, `${bar.task} restoring`, bar.task], restoring[0], restoring[1], y, high, colour("ink"), true);
  }
  const from = restoring ? restoring[0] + restoring[1] : x;
  label(c, [bar.task], from, x + width - from, y, high, inkOn(number));
  c.fillStyle = colour("card");
  if (x > view.left) c.fillRect(x - 0.5, y, 1, high);
}

/** A label where there is room; on stripes it has its own ground. */
function label(c, texts, x, width, y, high, ink, isStriped = false) {
  if (high < 8) return;
  c.font = high < 11 ? "9px system-ui, sans-serif" : FONT;
  const text = fitting(c, texts, isStriped ? width - 24 : width);
  if (text && isStriped) {
    c.fillStyle = colour("card");
    c.fillRect(x + 3, y + 1, c.measureText(text).width + 4, high - 2);
  }
  c.fillStyle = ink;
  if (text) c.fillText(text, x + 5, y + high / 2 + 0.5);
  c.font = FONT;
}
