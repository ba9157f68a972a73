// Share-partitions: offset × time, the records of each in their states; and the window of an instant, one strip for each.

import { axis } from "./partitions.js";
import { colour, hatch, inkOn, ofOwner } from "./theme.js";

const ROW = 92, PLOT = 66, TOP = 20, AXIS = 20;
const RIGHT = 8;
export const STRIP = 46;
const BOX_TOP = 4, BOX = 24;

const FADED = { ACKNOWLEDGED: 0.35, ARCHIVED: 0.75, ARCHIVING: 0.75 };
const DARKER = 0.13, DARKEST = 0.52;

export function layout(recording) {
  const rows = recording.shares.all;
  return { rows, height: rows.length ? TOP + rows.length * ROW - (ROW - PLOT) + AXIS : 0 };
}

/** Fill a part of a drawing with the colour of a state. A delivery more is a shade more. */
function paint(c, { state, deliveries, number }, [x, y, width, height], given) {
  if (state === "AVAILABLE") c.fillStyle = given;
  else if (state === "ACQUIRED") c.fillStyle = ofOwner(number);
  else c.fillStyle = colour(state === "ACKNOWLEDGED" ? "good" : "bad");
  c.globalAlpha = FADED[state] ?? 1;
  c.fillRect(x, y, width, height);
  c.globalAlpha = 1;
  if (state !== "ACQUIRED" || deliveries < 2) return;
  c.fillStyle = "#000";
  c.globalAlpha = Math.min(DARKEST, (deliveries - 1) * DARKER);
  c.fillRect(x, y, width, height);
  c.globalAlpha = 1;
}

/** Draw what is between two heights of the drawing. */
export function draw(c, recording, view, plan, { top, bottom }) {
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  const several = new Set(plan.rows.map(each => each.group)).size > 1;
  plan.rows.forEach((share, index) => {
    const y = TOP + index * ROW;
    if (y > bottom || y + ROW < top) return;
    const reach = share.reach(view.from, view.to);
    label(c, view, `${several ? share.group + " " : ""}${share.name}`, reach, y);
    c.save();
    c.beginPath();
    c.rect(view.left, y, view.width - view.left - RIGHT, PLOT);
    c.clip();
    c.fillStyle = colour("none");
    c.fillRect(view.left, y, Math.max(0, Math.min(view.width - RIGHT, view.x(recording.until)) - view.left), PLOT);
    if (reach) {
      const scale = offset => y + PLOT - (offset - reach.low) / (reach.high - reach.low + 1) * PLOT;
      records(c, recording, view, share, scale, y);
      edge(c, recording, view, share, each => scale(each.start), "ink");
    }
    c.restore();
  });
  c.textAlign = "left";
  c.fillStyle = colour("soft");
  c.fillText("records by offset (up) and time", view.left, 10);
  axis(c, view, TOP + plan.rows.length * ROW - (ROW - PLOT) + 2);
}

function label(c, view, name, reach, y) {
  c.textAlign = "right";
  c.fillStyle = colour("ink");
  c.fillText(name, view.left - 10, y + PLOT / 2, view.left - 14);
  c.fillStyle = colour("soft");
  if (!reach) return;
  c.fillText(`${reach.high}`, view.left - 10, y + 6, view.left - 14);
  c.fillText(`${reach.low}`, view.left - 10, y + PLOT - 6, view.left - 14);
}

/** Records in their states. Of those thinner than a pixel only one begins in each pixel: the cost is bounded by the pixels. */
function records(c, recording, view, share, scale, top) {
  const given = hatch(c, colour("busy"), colour("card"), 4), taken = new Set(), wide = Math.ceil(view.width) + 1;
  for (const run of share.runs) {
    if (run.from > view.to) break;
    const end = Math.min(run.to, recording.until);
    if (end < view.from || end <= run.from) continue;
    const high = scale(run.first), low = scale(run.last + 1);
    if (high < top || low > top + PLOT) continue;
    const x = Math.max(view.left, view.x(run.from)), to = Math.min(view.width - RIGHT, view.x(end));
    if (to - x < 1 || high - low < 1) {
      const cell = Math.floor(x) + Math.floor(low) * wide;
      if (taken.has(cell)) continue;
      taken.add(cell);
    }
    const box = [x, low, Math.max(0.75, to - x), Math.max(0.75, high - low)];
    paint(c, { ...run, number: recording.byName.get(run.holder)?.number }, box, given);
    if (run.state === "ACQUIRED" && box[2] > 16 && box[3] > 11) count(c, run, recording, box);
    if (run.ended === "expired") ranOut(c, run, scale, to);
  }
}

function count(c, run, recording, [x, y, , height]) {
  c.textAlign = "left";
  c.fillStyle = inkOn(recording.byName.get(run.holder)?.number);
  c.fillText(`${run.deliveries}`, x + 4, y + height / 2 + 0.5);
}

/** A lock that ran out: a red edge at its end. */
function ranOut(c, run, scale, x) {
  c.fillStyle = colour("bad");
  const low = scale(run.endsLast + 1);
  c.fillRect(x - 2, low, 2, Math.max(1, scale(run.endsFirst) - low));
}

/** The start of the window over time. */
function edge(c, recording, view, share, y, ink) {
  c.strokeStyle = colour(ink);
  c.lineWidth = 1.5;
  c.beginPath();
  let before = null;
  for (const window of share.windows) {
    if (window.at > view.to) break;
    const x = view.x(window.at);
    if (before === null) c.moveTo(x, y(window)); else { c.lineTo(x, before); c.lineTo(x, y(window)); }
    before = y(window);
  }
  if (before !== null) c.lineTo(view.x(recording.until), before);
  c.stroke();
  c.lineWidth = 1;
}

/** Where the records of a window lie on its strip, and which record lies at an x. */
export function scaleOf(window, left, right) {
  const count = Math.max(1, window.endOffset - window.startOffset + 1), width = (right - left) / count;
  return {
    cell: width, x: offset => left + (offset - window.startOffset) * width,
    offset: x => Math.max(window.startOffset, Math.min(window.endOffset, window.startOffset + Math.floor((x - left) / width))),
  };
}

/** Draw the window of an instant as a strip. `lockMs` is the length of a lock; `selected` the offset that is chosen, or null. */
export function drawStrip(c, window, { left, right, top, numberOf, lockMs, selected }) {
  const y = top + BOX_TOP, scale = scaleOf(window, left, right), given = hatch(c, colour("busy"), colour("card"), 4);
  c.fillStyle = colour("none");
  c.fillRect(left, y, right - left, BOX);
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  let free = -1;
  for (const run of window.records) {
    const x = Math.max(left, scale.x(run.firstOffset)), to = Math.min(right, scale.x(run.lastOffset + 1));
    if (to <= x || (to - x < 1 && Math.floor(x) === free)) continue;
    free = Math.floor(x);
    const number = numberOf(run);
    paint(c, { state: run.state, deliveries: run.deliveryCount, number }, [x, y, Math.max(1, to - x), BOX], given);
    if (to - x > 12) {
      c.fillStyle = run.state === "ACQUIRED" ? inkOn(number) : colour("ink");
      c.textAlign = "left";
      c.fillText(`${run.deliveryCount}`, x + 4, y + 10);
    }
    if (run.lockMs !== null && to - x > 2) lockLeft(c, run.lockMs / Math.max(1, lockMs), [x, y + BOX - 5, to - x]);
    c.fillStyle = colour("card");
    if (to - x > 3) c.fillRect(to - 1, y, 1, BOX);
  }
  if (scale.cell >= 6) borders(c, window, scale, y);
  if (selected !== null) chosen(c, [scale.x(selected), y, scale.cell]);
  c.fillStyle = colour("soft");
  c.textAlign = "left";
  c.fillText(`${window.startOffset}`, left, y + BOX + 9);
  c.textAlign = "right";
  if (window.endOffset > window.startOffset) c.fillText(`${window.endOffset}`, right, y + BOX + 9);
  c.textAlign = "left";
}

/** The part of a lock that is left, along the lower edge of its records. */
function lockLeft(c, share, [x, y, width]) {
  c.fillStyle = colour("card");
  c.fillRect(x + 1, y, Math.max(0, width - 2), 4);
  c.fillStyle = colour(share < 0.25 ? "bad" : "ink");
  c.fillRect(x + 1, y + 1, Math.max(0, (width - 2) * Math.min(1, share)), 2);
}

function borders(c, window, scale, y) {
  c.fillStyle = colour("card");
  c.globalAlpha = 0.5;
  for (let offset = window.startOffset + 1; offset <= window.endOffset; offset++) c.fillRect(scale.x(offset) - 0.5, y, 1, BOX);
  c.globalAlpha = 1;
}

function chosen(c, [x, y, width]) {
  c.strokeStyle = colour("ink");
  c.lineWidth = 2;
  c.strokeRect(x, y - 1, Math.max(2, width), BOX + 2);
  c.lineWidth = 1;
}
