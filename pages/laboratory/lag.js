// How far a group is behind the logs that it reads, below its partitions, and its commits.

import { after } from "./searching.js";
import { colour } from "./theme.js";
import { span } from "./time.js";

export const HEIGHT = 64;
const TOP = 6;
const POINTS = 300;

/** The lag of one run in the part of it that is on the screen. `fetch` asks for it, `redraw` is called when it is there. */
export class Lag {
  constructor(fetch, redraw) {
    Object.assign(this, { fetch, redraw, data: null, wanted: "", asking: false });
  }

  /** See that the lag of a group between two instants of a run is there, or will be. */
  want(run, group, from, to) {
    this.request = { run, group, from: Math.max(0, Math.floor(from)), to: Math.ceil(to) };
    const key = JSON.stringify(this.request);
    if (key === this.wanted) return;
    this.wanted = key;
    this.ask();
  }

  async ask() {
    if (this.asking) return;
    this.asking = true;
    const key = this.wanted;
    try {
      const { run, group, from, to } = this.request;
      this.data = await this.fetch(run, group, from, to, POINTS);
      this.byPartition = this.sorted();
      this.redraw();
    } catch { this.data = null; } finally {
      this.asking = false;
      if (key !== this.wanted) this.ask();
    }
  }

  sorted() {
    const found = new Map();
    for (const [at, topic, index] of this.data.commits) {
      const key = `${topic}-${index}`;
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(at);
    }
    return found;
  }

  /** The largest lag of what is on the screen. */
  get most() { return this.data ? Math.max(...this.data.records) : 0; }

  /** The commits of a partition, sorted. */
  commits(topic, index) { return (this.data && this.byPartition.get(`${topic}-${index}`)) || []; }

  /** The lag in an instant, in words; nothing where it is not known. */
  at(instant) {
    if (!this.data) return "";
    const index = after(this.data.at, instant, each => each) - 1;
    if (index < 0) return "";
    const records = this.data.records[index];
    return records ? `${records.toLocaleString("en")} records behind, the oldest ${span(this.data.oldest[index])} old` : "nothing to catch up";
  }
}

/** Draw the lag over time. `most` is the lag at the top: the same for all runs that are compared. */
export function draw(c, lag, view, most) {
  c.clearRect(0, 0, view.width, HEIGHT);
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  c.textAlign = "right";
  c.fillStyle = colour("soft");
  c.fillText("lag", view.left - 10, TOP + 8);
  if (!lag.data) { c.textAlign = "left"; return; }
  const { at, records } = lag.data, bottom = HEIGHT - 6;
  c.fillText(`most ${lag.most.toLocaleString("en")}`, view.left - 10, TOP + 24, view.left - 14);
  c.textAlign = "left";
  c.save();
  c.beginPath();
  c.rect(view.left, 0, view.width - view.left - 8, HEIGHT);
  c.clip();
  const y = count => bottom - count / most * (bottom - TOP);
  c.beginPath();
  c.moveTo(view.x(at[0]), bottom);
  at.forEach((instant, index) => c.lineTo(view.x(instant), y(records[index])));
  c.lineTo(view.x(at[at.length - 1]), bottom);
  c.fillStyle = colour("busy");
  c.globalAlpha = 0.25;
  c.fill();
  c.globalAlpha = 1;
  c.beginPath();
  at.forEach((instant, index) => (index ? c.lineTo(view.x(instant), y(records[index])) : c.moveTo(view.x(instant), y(records[index]))));
  c.strokeStyle = colour("busy");
  c.lineWidth = 1.5;
  c.stroke();
  c.fillStyle = colour("line");
  c.fillRect(view.left, bottom, view.width - view.left - 8, 1);
  c.restore();
}
