// The swimlanes: a lane for each node and each member, requests as arrows between them.

import { isGone } from "./recorded.js";
import { FATE, UNNAMED } from "./recording.js";
import { colour, hatch, inkOn, ofOwner, ofState } from "./theme.js";
import { span } from "./time.js";

const FONT = "11px system-ui, sans-serif";
const OUTSIDE = 22;
const QUEUE = 4;
const MOST_QUEUED = 14;
const MOST_ARROWS = 6000;

/** How high everything is, and where each lane begins. */
export function layout(recording) {
  const shown = recording.actors.filter(actor => actor.kind !== "client" || recording.actors.length < 60);
  const nodes = shown.filter(actor => actor.kind === "node");
  const others = shown.filter(actor => actor.kind !== "node");
  const groups = [...recording.groups.values()];
  const nodeHeight = 26 + 15 * Math.max(1, Math.min(3, groups.length)) + QUEUE * Math.min(MOST_QUEUED, others.length);
  const laneHeight = Math.max(9, Math.min(40, Math.floor(440 / Math.max(1, others.length))));
  const top = new Map();
  let y = OUTSIDE;
  for (const node of nodes) { top.set(node.name, y); y += nodeHeight; }
  for (const other of others) { top.set(other.name, y); y += laneHeight; }
  return { nodes, others, groups, nodeHeight, laneHeight, top, height: y + 4 };
}

/** Draw what is between two heights of the drawing: `options.top` and `options.bottom`. */
export function draw(c, recording, view, plan, options) {
  c.font = FONT;
  c.textBaseline = "middle";
  outside(c, recording, view);
  for (const node of plan.nodes) drawNode(c, recording, view, plan, node);
  c.save();
  c.beginPath();
  c.rect(view.left, 0, view.width - view.left - 8, plan.height);
  c.clip();
  for (const member of plan.others) {
    const y = plan.top.get(member.name);
    if (y + plan.laneHeight >= options.top && y <= options.bottom) drawMember(c, recording, view, plan, member);
  }
  drawRequests(c, recording, view, plan, options);
  c.restore();
  names(c, view, plan);
}

// -- lanes

/** What the scenario does: a mark, and words where there is room for them. */
function outside(c, recording, view) {
  const actions = [];
  for (const line of recording.lines) {
    if (line.kind !== "ScenarioAction" || line.at < view.from || line.at > view.to) continue;
    const last = actions[actions.length - 1], text = line.text.replace(/^\* /, "");
    if (last && last.at === line.at) last.text += ` · ${text}`; else actions.push({ at: line.at, text });
  }
  let free = 0, mark = 0;
  actions.forEach((line, index) => {
    const x = view.x(line.at), next = actions.slice(index + 1).find(other => other.at > line.at);
    c.fillStyle = colour("ink");
    c.beginPath();
    c.moveTo(x - 4, OUTSIDE - 8); c.lineTo(x + 4, OUTSIDE - 8); c.lineTo(x, OUTSIDE - 2);
    c.fill();
    const room = (next ? view.x(next.at) : view.width) - x - 14, { text } = line;
    const wide = c.measureText(text).width, isLeft = wide > room && x - 14 - wide > Math.max(free, mark + 4, view.left);
    mark = x;
    if (isLeft) { c.fillText(text, x - 7 - wide, OUTSIDE - 6); free = x + 6; return; }
    const fitting = wide <= room ? text : shortened(c, text, room);
    if (x > free && fitting) {
      c.fillText(fitting, x + 7, OUTSIDE - 6);
      free = x + 7 + c.measureText(fitting).width;
    }
  });
  c.textAlign = "right";
  c.fillStyle = colour("soft");
  c.fillText("from outside", view.left - 10, OUTSIDE - 6, view.left - 14);
  c.textAlign = "left";
}

/** As many words as there is room for, or none. */
function shortened(c, text, room) {
  let words = text.split(" ");
  while (words.length > 2) {
    words = words.slice(0, -1);
    if (c.measureText(words.join(" ") + "…").width <= room) return words.join(" ") + "…";
  }
  return "";
}

function names(c, view, plan) {
  c.textAlign = "right";
  for (const node of plan.nodes) {
    c.fillStyle = colour("ink");
    c.font = "600 12px system-ui, sans-serif";
    c.fillText(node.name, view.left - 10, plan.top.get(node.name) + 13, view.left - 14);
    c.font = FONT;
    c.fillStyle = colour("soft");
    const role = node.name === UNNAMED ? "broker not known" : plan.groups.some(group => group.byNode.has(node.name)) ? "coordinator" : "node";
    c.fillText(role, view.left - 10, plan.top.get(node.name) + 28, view.left - 14);
  }
  c.fillStyle = colour("ink");
  c.font = "12px system-ui, sans-serif";
  const every = Math.ceil(12 / plan.laneHeight);
  plan.others.forEach((member, index) => {
    if (index % every === 0) {
      c.fillText(member.name, view.left - 10, plan.top.get(member.name) + plan.laneHeight / 2, view.left - 14);
    }
  });
  c.textAlign = "left";
}

/** A bar between two instants, as far as it is on the screen. */
function bar(view, part, until) {
  const from = Math.max(view.left, view.x(part.start));
  const to = Math.min(view.width - 8, view.x(Math.min(part.end, until)));
  return [from, Math.max(1, to - from)];
}

function label(c, text, x, width, y, ink) {
  if (width < 24) return;
  const shown = c.measureText(text).width < width - 8 ? text : "";
  if (!shown) return;
  c.fillStyle = ink;
  c.fillText(shown, x + 5, y);
}

function drawNode(c, recording, view, plan, node) {
  const y = plan.top.get(node.name), until = recording.until;
  c.fillStyle = colour("card");
  c.fillRect(0, y, view.width - 8, plan.nodeHeight - 6);
  c.strokeStyle = colour("line");
  c.strokeRect(0.5, y + 0.5, view.width - 9, plan.nodeHeight - 7);
  c.save();
  c.beginPath();
  c.rect(view.left, y, view.width - view.left - 8, plan.nodeHeight);
  c.clip();
  plan.groups.slice(0, 3).forEach((group, index) => {
    const parts = group.byNode.get(node.name);
    if (!parts) return;
    for (const part of parts.between(view.from, view.to)) {
      if (part.state === "Dead" || part.state === "DOWN") continue;
      const [x, width] = bar(view, part, until), top = y + 4 + index * 15;
      c.fillStyle = ofState(part.state);
      c.globalAlpha = part.state === "Empty" ? 0.18 : part.state === "Stable" ? 0.22 : 0.38;
      c.fillRect(x, top, width, 13);
      c.globalAlpha = 1;
      const name = plan.groups.length > 1 ? `${group.name} ` : "";
      const lasts = part.end === Infinity || part.state === "Stable" ? "" : `, ${span(part.end - part.start)}`;
      const texts = [`${name}${part.state}${lasts} · ${recording.unitOf(group.name)} ${part.generation}`, `${name}${part.state}${lasts}`, part.state];
      const text = texts.find(each => c.measureText(each).width < width - 8);
      if (text) label(c, text, x, width, top + 6, colour("ink"));
    }
  });
  for (const part of node.up.between(view.from, view.to)) {
    if (part.isUp) continue;
    const [x, width] = bar(view, part, until);
    c.fillStyle = hatch(c, colour("bad"), colour("card"));
    c.globalAlpha = 0.5;
    c.fillRect(x, y + 1, width, plan.nodeHeight - 8);
    c.globalAlpha = 1;
    tag(c, "node is down", x, width, y + plan.nodeHeight - 16, colour("bad"));
  }
  drawSpells(c, view, node, y + plan.nodeHeight - 16, until, 9);
  c.restore();
}

const SPELLS = { paused: "process stands still (GC)", stuck: "handler hangs", cut: "cut off from the nodes" };

function drawSpells(c, view, actor, y, until, height) {
  for (const spell of actor.spells) {
    if (spell.end < view.from || spell.start > view.to || spell.end <= spell.start) continue;
    const [x, width] = bar(view, spell, until);
    const ink = spell.what === "stuck" ? colour("busy") : spell.what === "cut" ? colour("bad") : colour("soft");
    c.fillStyle = hatch(c, ink, null, 5);
    c.fillRect(x, y, width, height);
    c.strokeStyle = ink;
    c.strokeRect(x + 0.5, y + 0.5, Math.max(0, width - 1), height - 1);
    tag(c, SPELLS[spell.what], x, width, y + height / 2, ink);
  }
}

/** A label on its own ground, so that it can be read on stripes. */
function tag(c, text, x, width, y, ink) {
  const wide = c.measureText(text).width;
  if (wide > width - 10) return;
  c.fillStyle = colour("card");
  c.fillRect(x + 4, y - 7, wide + 6, 14);
  c.fillStyle = ink;
  c.fillText(text, x + 7, y);
}

const MEMBER_LABELS = {
  PREPARING_REBALANCE: "waits: JoinGroup", COMPLETING_REBALANCE: "waits: SyncGroup", RECONCILING: "reconciling",
  ACKNOWLEDGING: "acknowledging", JOINING: "joining", FENCED: "fenced", LEAVING: "leaving", UNJOINED: "not a member", STALE: "stale",
};

function drawMember(c, recording, view, plan, member) {
  const y = plan.top.get(member.name), high = plan.laneHeight, until = recording.until;
  const thick = Math.max(5, Math.min(15, high - 12)), middle = y + high / 2;
  c.fillStyle = colour("line");
  c.fillRect(view.left, middle, view.width, 1);
  for (const part of member.members.between(view.from, view.to)) {
    const [x, width] = bar(view, part, until);
    if (part.state === "DOWN") {
      c.fillStyle = colour("ground");
      c.fillRect(x, middle - thick / 2, width, thick);
      c.strokeStyle = colour("soft");
      c.setLineDash([2, 4]);
      c.beginPath();
      c.moveTo(x, middle);
      c.lineTo(x + width, middle);
      c.stroke();
      c.setLineDash([]);
      if (width > 34) tag(c, "down", x, width, middle, colour("soft"));
      continue;
    }
    const isMember = part.generation > 0 && part.state !== "UNJOINED";
    const isWaiting = part.state === "PREPARING_REBALANCE" || part.state === "COMPLETING_REBALANCE" || part.state === "JOINING";
    c.fillStyle = isMember ? ofOwner(member.number) : colour("none");
    c.fillRect(x, middle - thick / 2, width, thick);
    if (isMember) behind(c, recording, view, member, part, middle - thick / 2, thick);
    if (isWaiting) {
      c.fillStyle = hatch(c, colour("card"), null, 5);
      c.fillRect(x, middle - thick / 2, width, thick);
      c.strokeStyle = colour("busy");
      c.strokeRect(x + 0.5, middle - thick / 2 + 0.5, Math.max(0, width - 1), thick - 1);
    }
    if (high >= 20) {
      const text = isGone(member, part) ? "gone" : MEMBER_LABELS[part.state];
      if (text) tag(c, text, x, width, middle, colour("ink"));
      else if (isMember) label(c, `${part.generation}`, x, width, middle + 0.5, inkOn(member.number));
    }
  }
  for (const part of member.up.between(view.from, view.to)) if (!part.isUp) ending(c, view, part, middle, high);
  drawSpells(c, view, member, high >= 26 ? y + high - 9 : y + high - 4, until, high >= 26 ? 8 : 3);
}

/** Paler where the group has a newer generation, or epoch, than the one that the member knows. */
function behind(c, recording, view, member, part, y, high) {
  const group = recording.groups.get(member.group), until = Math.min(part.end, recording.until);
  if (!group) return;
  const begins = [...group.byNode.values()].flatMap(parts => [...parts.between(Math.max(part.start, view.from), Math.min(until, view.to))]
    .filter(each => each.generation > part.generation && each.state !== "DOWN" && each.state !== "Dead").map(each => each.start));
  if (!begins.length) return;
  const [x, width] = bar(view, { start: Math.max(part.start, Math.min(...begins)), end: until }, until);
  c.fillStyle = colour("ground");
  c.globalAlpha = 0.5;
  c.fillRect(x, y, width, high);
  c.globalAlpha = 1;
}

/** How a process ended: a cross for a crash, a square for a clean stop. */
function ending(c, view, part, y, high) {
  const x = view.x(part.start), size = Math.min(5, high / 3);
  if (x < view.left - 5) return;
  c.strokeStyle = c.fillStyle = part.why === "Stopped" ? colour("soft") : colour("bad");
  if (part.why === "Stopped") { c.fillRect(x - 3, y - 3, 6, 6); return; }
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(x - size, y - size); c.lineTo(x + size, y + size);
  c.moveTo(x + size, y - size); c.lineTo(x - size, y + size);
  c.stroke();
  c.lineWidth = 1;
}

// -- requests

/** Requests that look for nodes: they are repeated until one answers. */
const LOOKUPS = new Set(["FindCoordinator", "Metadata", "ApiVersions"]);

const INKS = { JoinGroup: "accent", SyncGroup: "good", LeaveGroup: "bad" };

function inkOf(row) {
  // The coordinator says so to every heartbeat meanwhile: that is no fault.
  if (row.error === "REBALANCE_IN_PROGRESS") return colour("busy");
  if (row.error && row.error !== "MEMBER_ID_REQUIRED") return colour("bad");
  if (row.fate > FATE.ANSWERED && row.fate !== FATE.CANCELLED) return colour("bad");
  return colour(INKS[row.api] || "soft");
}

function drawRequests(c, recording, view, plan, options) {
  const closeUp = view.pixel < 4, minorToo = options.minor || view.pixel < 1.5;
  const seen = new Set(), queue = new Map();
  let count = 0;
  for (const row of recording.requestsBetween(view.from, view.to)) {
    const from = plan.top.get(row.client), to = plan.top.get(row.node);
    if (from === undefined || to === undefined) continue;
    const open = row.ended < 0, last = row.answered >= 0 ? row.answered : row.ended >= 0 ? row.ended : recording.until, waits = row.arrived >= 0 && last - row.arrived;
    const isParked = waits > Math.max(100, 2 * view.pixel) && (row.api === "JoinGroup" || row.api === "SyncGroup");
    if (row.minor && !minorToo && !open) continue;
    if (open && row.minor === false && waits < 200 && !closeUp && row.fate === FATE.OPEN && row.sent < recording.until - 1000) continue;
    const x = view.x(row.sent);
    // Where arrows fall on one another, one is drawn.
    const key = `${row.client} ${row.node} ${row.error ? 1 : 0} ${row.fate} ${Math.round(x / 2)}`;
    if (!isParked && seen.has(key)) continue;
    seen.add(key);
    if (++count > MOST_ARROWS) break;
    const slot = isParked ? slotOf(queue, row, recording.until) : 0;
    arrow(c, row, view, { from: from + plan.laneHeight / 2, to: queueY(plan, to, slot), closeUp, isParked, until: recording.until });
  }
}

function queueY(plan, top, slot) {
  return top + 12 + 15 * Math.max(1, Math.min(3, plan.groups.length)) + (slot % MOST_QUEUED) * QUEUE;
}

/** The first row of the barrier that is free when a request arrives. */
function slotOf(queue, row, until) {
  if (!queue.has(row.node)) queue.set(row.node, []);
  const ends = queue.get(row.node);
  let slot = ends.findIndex(end => end <= row.arrived);
  if (slot < 0) slot = ends.length;
  ends[slot] = row.answered >= 0 ? row.answered : row.ended >= 0 ? row.ended : until;
  return slot;
}

function arrow(c, row, view, how) {
  const { from, to } = how, ink = inkOf(row);
  const sent = view.x(row.sent), arrived = row.arrived < 0 ? null : view.x(row.arrived);
  c.strokeStyle = c.fillStyle = ink;
  c.globalAlpha = row.minor || LOOKUPS.has(row.api) ? 0.3 : row.error === "REBALANCE_IN_PROGRESS" && !how.closeUp ? 0.3 : 0.8;
  c.setLineDash(row.blocked ? [2, 3] : []);
  if (arrived === null) {
    const isLost = row.fate === FATE.LOST_REQUEST || row.fate === FATE.DISCONNECTED || row.fate === FATE.TIMEOUT;
    const end = isLost ? from + (to - from) * 0.55 : from + (to - from) * 0.8;
    line(c, sent, from, sent + (how.closeUp ? 6 : 0), end);
    if (isLost) cross(c, sent + (how.closeUp ? 6 : 0), end);
  } else {
    line(c, sent, from, arrived, to);
    if (how.closeUp) head(c, sent, from, arrived, to);
    const answered = row.answered >= 0 ? view.x(row.answered) : view.x(row.ended >= 0 ? row.ended : how.until);
    if (how.isParked) parked(c, arrived, answered, to);
    if (row.answered >= 0) {
      const ended = row.ended < 0 ? answered : view.x(row.ended);
      if (row.fate === FATE.LOST_RESPONSE) {
        const middle = to + (from - to) * 0.45;
        line(c, answered, to, answered + (how.closeUp ? 6 : 0), middle);
        cross(c, answered + (how.closeUp ? 6 : 0), middle);
      } else if (row.fate === FATE.ANSWERED && (how.closeUp || how.isParked)) {
        line(c, answered, to, ended, from);
        if (how.closeUp) head(c, answered, to, ended, from);
      }
    }
    if (view.pixel < 0.4) caption(c, row, (sent + arrived) / 2, (from + to) / 2, ink);
  }
  c.setLineDash([]);
  c.globalAlpha = 1;
}

/** A request that waits at the barrier: a line from its arrival to its answer. */
function parked(c, from, to, y) {
  c.globalAlpha = 1;
  c.lineWidth = 2.5;
  line(c, from, y, to, y);
  c.lineWidth = 1;
  c.beginPath();
  c.arc(from, y, 2.5, 0, 7);
  c.fill();
}

function caption(c, row, x, y, ink) {
  const text = row.error ? `${row.api}: ${row.error}` : row.api;
  c.fillStyle = colour("ground");
  c.globalAlpha = 0.8;
  c.fillRect(x + 5, y - 6, c.measureText(text).width + 4, 12);
  c.globalAlpha = 1;
  c.fillStyle = ink;
  c.fillText(text, x + 7, y);
}

function line(c, x1, y1, x2, y2) {
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x2, y2);
  c.stroke();
}

function head(c, x1, y1, x2, y2) {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  c.beginPath();
  c.moveTo(x2, y2);
  c.lineTo(x2 - 6 * Math.cos(angle - 0.4), y2 - 6 * Math.sin(angle - 0.4));
  c.lineTo(x2 - 6 * Math.cos(angle + 0.4), y2 - 6 * Math.sin(angle + 0.4));
  c.fill();
}

function cross(c, x, y) {
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(x - 4, y - 4); c.lineTo(x + 4, y + 4);
  c.moveTo(x + 4, y - 4); c.lineTo(x - 4, y + 4);
  c.stroke();
  c.lineWidth = 1;
}
