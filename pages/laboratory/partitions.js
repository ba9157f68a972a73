// Partitions × time: who owned what, hatched where no consumer did, rebalances behind it; and the strip of the whole run.

import { after } from "./searching.js";
import { colour, hatch, inkOn, ofOwner, ofState } from "./theme.js";
import { clock } from "./time.js";

const AXIS = 20;
const TOP = 16;

export function layout(recording) {
  const rows = recording.sortedPartitions();
  const rowHeight = Math.max(2, Math.min(20, Math.floor(380 / Math.max(1, rows.length))));
  return { rows, rowHeight, top: TOP, height: TOP + rows.length * rowHeight + AXIS };
}

/** Draw what is between two heights of the drawing. */
export function draw(c, recording, view, plan, { top, bottom: below, lag = null }) {
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  const bottom = plan.top + plan.rows.length * plan.rowHeight;
  c.save();
  c.beginPath();
  c.rect(view.left, 0, view.width - view.left - 8, plan.height);
  c.clip();
  rebalances(c, recording, view, bottom);
  const unowned = hatch(c, colour("hatch"), colour("none"), 5);
  const first = Math.max(0, Math.floor((top - plan.top) / plan.rowHeight)), last = Math.ceil((below - plan.top) / plan.rowHeight);
  plan.rows.slice(first, Math.max(0, last)).forEach((partition, offset) => {
    const y = plan.top + (first + offset) * plan.rowHeight;
    row(c, recording, view, plan, partition, y, unowned);
    if (lag) commits(c, view, lag.commits(partition.topic, partition.index), y, plan.rowHeight);
  });
  axis(c, view, bottom);
  c.restore();
  c.textAlign = "right";
  c.fillStyle = colour("soft");
  const every = Math.ceil(12 / plan.rowHeight), several = recording.groups.size > 1;
  c.fillText("rebalances", view.left - 10, 8);
  c.fillStyle = colour("ink");
  plan.rows.forEach((partition, index) => {
    if (index % every || index < first || index > last) return;
    const name = `${several && !partition.topic.startsWith(`${partition.group}-`) ? partition.group + " " : ""}${partition.topic}-${partition.index}`;
    c.fillText(name, view.left - 10, plan.top + (index + 0.5) * plan.rowHeight, view.left - 14);
  });
  c.textAlign = "left";
}

function rebalances(c, recording, view, bottom) {
  let free = 0;
  for (const each of recording.rebalances) {
    if (each.start > view.to || Math.min(each.end, recording.until) < view.from) continue;
    const x = view.x(each.start), width = Math.max(1, view.x(Math.min(each.end, recording.until)) - x);
    c.fillStyle = colour("busy");
    c.globalAlpha = 0.8;
    c.fillRect(x, 1, Math.max(2, width), 3);
    c.globalAlpha = 0.13;
    c.fillRect(x, 0, width, bottom);
    c.globalAlpha = 1;
    const left = Math.max(x, view.left) + 2;
    if (left > free) {
      c.fillStyle = colour("busy");
      c.fillText(each.cause, left, 10);
      free = left + c.measureText(each.cause).width + 8;
    }
  }
}

function row(c, recording, view, plan, partition, y, unowned) {
  const from = Math.max(view.left, view.x(partition.since)), high = plan.rowHeight - (plan.rowHeight > 5 ? 1 : 0);
  const until = recording.until, to = Math.min(view.width - 8, view.x(until));
  if (to <= from) return;
  c.fillStyle = unowned;
  c.fillRect(from, y, to - from, high);
  const { held } = partition;
  // A partition may have two owners for a moment, so the parts before the first on the screen count, too.
  let index = Math.max(0, after(held, view.from, each => each.start) - 3);
  for (; index < held.length && held[index].start <= view.to; index++) {
    const part = held[index], end = Math.min(part.end, until);
    if (end < view.from) continue;
    owned(c, recording, view, part, end, y, high);
  }
  overlaps(c, recording, view, held, y, high, recording.shares.isShared(partition.group));
}

/** The commits of a partition: marks, of those that are closer than two pixels only the first. */
function commits(c, view, times, y, high) {
  c.fillStyle = colour("ink");
  let free = -Infinity;
  for (let index = after(times, view.from, each => each); index < times.length && times[index] <= view.to; index++) {
    const x = view.x(times[index]);
    if (x < free) continue;
    c.fillRect(x, y + high * 0.7, 1, Math.max(1, high * 0.3 - 1));
    free = x + 2;
  }
}

/** A second owner, as a strip below: a member of a share group; else a process that lost the partition and does not know it. */
function overlaps(c, recording, view, held, y, high, isShared) {
  for (let index = 1; index < held.length; index++) {
    const next = held[index];
    for (const part of held.slice(Math.max(0, index - 3), index)) {
      const end = Math.min(part.end, next.end, recording.until);
      if (part.client === next.client || end <= next.start || end < view.from || next.start > view.to) continue;
      const x = Math.max(view.left, view.x(next.start)), width = Math.max(1, view.x(end) - x), top = y + high * 0.76;
      c.fillStyle = ofOwner(recording.byName.get(part.client)?.number);
      c.fillRect(x, top, width, high * 0.24);
      if (isShared) continue;
      c.fillStyle = colour("bad");
      c.fillRect(x, top - 1, width, Math.max(1, high * 0.08));
    }
  }
}

function owned(c, recording, view, part, end, y, high) {
  const member = recording.byName.get(part.client);
  const x = Math.max(view.left, view.x(part.start)), to = Math.min(view.width - 8, view.x(end));
  c.fillStyle = ofOwner(member?.number);
  c.fillRect(x, y, Math.max(1, to - x), high);
  if (high >= 8) name(c, part.client, member, x, to - x, y + high / 2 + 0.5, high);
  c.fillStyle = colour("card");
  if (x > view.left) c.fillRect(x - 0.5, y, 1, high);
}

/** The owner's name, or its number within the group, where there is room for it. */
function name(c, client, member, x, room, y, high) {
  if (room < 12) return;
  c.font = high < 11 ? "9px system-ui, sans-serif" : "11px system-ui, sans-serif";
  const prefix = `${member?.group}-`, texts = client.startsWith(prefix) ? [client, client.slice(prefix.length)] : [client];
  const text = texts.find(each => c.measureText(each).width < room - 8);
  c.fillStyle = inkOn(member?.number);
  if (text) c.fillText(text, x + 4, y);
}

/** The marks of time below a drawing. */
export function axis(c, view, bottom) {
  c.font = "11px system-ui, sans-serif";
  const { every, found } = view.ticks();
  c.fillStyle = colour("soft");
  for (const at of found) {
    const x = view.x(at);
    c.fillRect(x, bottom, 1, 4);
    c.textAlign = x < view.left + 30 ? "left" : x > view.width - 40 ? "right" : "center";
    c.fillText(clock(at, every < 1000), x, bottom + 12);
  }
  c.textAlign = "left";
}

/** The whole run in a strip: states of the groups, what was done from outside, and the part that is on the screen. */
export function drawOverview(c, recording, view, height) {
  const left = view.left, right = view.width - 10, x = at => left + at / view.horizon * (right - left);
  c.clearRect(0, 0, view.width, height);
  c.fillStyle = colour("none");
  c.fillRect(left, 6, right - left, height - 12);
  for (const group of recording.groups.values()) {
    for (const parts of group.byNode.values()) {
      for (const part of parts.list) {
        if (part.state === "Dead" || part.state === "DOWN" || part.state === "Empty") continue;
        c.fillStyle = ofState(part.state);
        c.globalAlpha = part.state === "Stable" ? 0.25 : 0.8;
        c.fillRect(x(part.start), 6, Math.max(part.state === "Stable" ? 0.5 : 1.5, x(Math.min(part.end, recording.until)) - x(part.start)), height - 12);
      }
    }
  }
  c.globalAlpha = 1;
  c.fillStyle = colour("ink");
  for (const line of recording.lines) {
    if (line.kind !== "ScenarioAction") continue;
    const at = x(line.at);
    c.beginPath();
    c.moveTo(at - 4, 0); c.lineTo(at + 4, 0); c.lineTo(at, 6);
    c.fill();
  }
  c.fillStyle = colour("ground");
  c.globalAlpha = 0.6;
  c.fillRect(left, 6, x(view.from) - left, height - 12);
  c.fillRect(x(view.to), 6, right - x(view.to), height - 12);
  c.globalAlpha = 1;
  c.strokeStyle = colour("accent");
  c.strokeRect(x(view.from) + 0.5, 5.5, x(view.to) - x(view.from) - 1, height - 11);
  c.fillStyle = colour("soft");
  c.font = "11px system-ui, sans-serif";
  c.textAlign = "right";
  c.textBaseline = "middle";
  c.fillText("whole run", left - 10, height / 2);
  c.textAlign = "left";
}
