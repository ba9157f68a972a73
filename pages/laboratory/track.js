// One run on the page: its lanes, its partitions, its tasks, its share-partitions and its lag, on the time axis that all runs share.

import { draw as drawLag, HEIGHT as LAG_HEIGHT } from "./lag.js";
import * as lanes from "./lanes.js";
import * as partitions from "./partitions.js";
import { Run } from "./run.js";
import * as shares from "./shares.js";
import * as tasks from "./tasks.js";

/** Make a canvas as large as it is shown, in the pixels of the screen. */
export function fit(canvas, context, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}

const ROOM = 200;

/** Drawings that only runs of some groups have. */
const OPTIONAL = { tasks, shares };

/** Which part of a drawing is within the window, with some room for scrolling. */
function visible(canvas, height, room = ROOM) {
  const box = canvas.getBoundingClientRect(), top = Math.min(height, Math.max(0, -box.top - room));
  return { top, bottom: Math.max(top, Math.min(height, innerHeight - box.top + room)) };
}

/** Clear a drawing, and draw one strip of it. Nothing lands outside the strip: the next frame would be drawn over it. */
function drawStrip(context, { width, height }, { top, bottom }, draw) {
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(0, top, width, bottom - top);
  context.clip();
  draw();
  context.restore();
}

export class Track {
  /** `canvases`: lanes, partitions, tasks, shares and lag. `lag` knows the lag of the run. */
  constructor(canvases, view, lag) {
    this.canvases = canvases;
    this.contexts = Object.fromEntries(Object.entries(this.canvases).map(([name, canvas]) => [name, canvas.getContext("2d")]));
    Object.assign(this, { view, lag, run: new Run(), plan: null, rows: null, tasks: null, shares: null, strips: {} });
  }

  get recording() { return this.run.recording; }

  /** Draw the run. `group` is the one whose lag is shown, or null for none. */
  draw({ requests, minor, group, mostLag }) {
    const { canvases, contexts, recording, view } = this;
    this.plan = lanes.layout(recording);
    this.rows = partitions.layout(recording);
    canvases.lanes.hidden = !requests;
    canvases.lag.hidden = group === null;
    if (requests) {
      fit(canvases.lanes, contexts.lanes, view.width, this.plan.height);
      const strip = this.strips.lanes = visible(canvases.lanes, this.plan.height);
      drawStrip(contexts.lanes, { width: view.width, height: this.plan.height }, strip, () => lanes.draw(contexts.lanes, recording, view, this.plan, { minor, ...strip }));
    }
    if (group !== null && recording.done) this.lag.want(this.run.id, group, view.from, view.to);
    fit(canvases.partitions, contexts.partitions, view.width, this.rows.height);
    const lag = group === null ? null : this.lag, strip = this.strips.partitions = visible(canvases.partitions, this.rows.height);
    drawStrip(contexts.partitions, { width: view.width, height: this.rows.height }, strip, () => partitions.draw(contexts.partitions, recording, view, this.rows, { lag, ...strip }));
    for (const name of Object.keys(OPTIONAL)) this.drawOptional(name);
    if (group === null) return;
    fit(canvases.lag, contexts.lag, view.width, LAG_HEIGHT);
    drawLag(contexts.lag, this.lag, view, mostLag);
  }

  drawOptional(name) {
    const { recording, view } = this, canvas = this.canvases[name], context = this.contexts[name];
    const { layout, draw } = OPTIONAL[name], plan = this[name] = layout(recording), { height } = plan;
    canvas.hidden = !height;
    if (!height) return;
    fit(canvas, context, view.width, height);
    const strip = this.strips[name] = visible(canvas, height);
    drawStrip(context, { width: view.width, height }, strip, () => draw(context, recording, view, plan, strip));
  }

  /** Whether the window shows a part that was not drawn: it was scrolled or resized, or the page above has another height. */
  get isStale() {
    return [["lanes", this.plan], ["partitions", this.rows], ["tasks", this.tasks], ["shares", this.shares]].some(([name, plan]) => {
      const drawn = this.strips[name];
      if (!plan || !drawn || this.canvases[name].hidden) return false;
      const { top, bottom } = visible(this.canvases[name], plan.height, 0);
      return bottom > top && (top < drawn.top || bottom > drawn.bottom);
    });
  }

  /** The drawings as a pen of another kind draws them, one below the other. */
  drawWith(pen, { requests, minor, group, mostLag }) {
    const { recording, view, plan, rows } = this;
    const parts = [];
    if (requests) parts.push([plan.height, () => lanes.draw(pen, recording, view, plan, { minor, top: 0, bottom: plan.height })]);
    parts.push([rows.height, () => partitions.draw(pen, recording, view, rows, { lag: group === null ? null : this.lag, top: 0, bottom: rows.height })]);
    for (const [name, { draw }] of Object.entries(OPTIONAL)) {
      const { height } = this[name];
      if (height) parts.push([height, () => draw(pen, recording, view, this[name], { top: 0, bottom: height })]);
    }
    if (group !== null) parts.push([LAG_HEIGHT, () => drawLag(pen, this.lag, view, mostLag)]);
    let top = 0;
    for (const [height, draw] of parts) {
      pen.begin(top);
      draw();
      pen.end();
      top += height;
    }
  }

  /** How high the drawings are together. */
  height({ requests, group }) { return (requests ? this.plan.height : 0) + this.rows.height + this.tasks.height + this.shares.height + (group === null ? 0 : LAG_HEIGHT); }
}
