// The windows of a share group in an instant: a strip for each share-partition, and the record that is chosen on them.

import { make } from "./panel.js";
import { drawStrip, scaleOf, STRIP } from "./shares.js";
import { clock, count, span } from "./time.js";
import { fit } from "./track.js";

const MOST_SHOWN = 30;
const RIGHT = 12;
const LEGEND = [["who", "held by a member (its colour); darker: delivered again"], ["given", "given back, waits for its next delivery"],
  ["accepted", "accepted"], ["archived", "will not be delivered again"], ["lock", "what is left of the lock"]];
const READING = [
  "A share group reads a partition like a queue. Each record is delivered to one member at a time, and locked for it. The number on records is how often they were delivered.",
  "The member accepts a record, gives it back (release), or refuses it for good (reject). If it does none of these before its lock runs out, the record is given back for it: a red edge in the drawing above.",
  "The window begins at the first record that is not finished, and ends at the last one that was delivered. One record that never finishes holds the start, however many behind it are accepted.",
];

/** What a state means for the record. */
const MEANING = {
  AVAILABLE: run => `given back after delivery ${run.deliveryCount}; the next fetch of any member may take it`,
  ACQUIRED: (run, at) => `held by ${run.holder}, delivery ${run.deliveryCount}; its lock runs out in ${span(run.lockMs ?? 0)}, at ${clock(at + (run.lockMs ?? 0), true)}`,
  ACKNOWLEDGED: run => `accepted in delivery ${run.deliveryCount}; it waits for the records before it`,
  ARCHIVING: run => `about to be archived after delivery ${run.deliveryCount}`,
  ARCHIVED: run => `archived after delivery ${run.deliveryCount}: it will not be delivered again`,
};

const nameOf = window => `${window.topic}-${window.partition}`;

/** How many records of a window are in a state. */
const inState = (window, state) => window.records.reduce((sum, run) => sum + (run.state === state ? run.lastOffset - Math.max(run.firstOffset, window.startOffset) + 1 : 0), 0);

/** A window in a sentence. */
function summary(window) {
  if (!window.records.length) return `the window is empty; the next record is ${window.startOffset}`;
  const parts = [["held", "ACQUIRED"], ["given back", "AVAILABLE"], ["accepted", "ACKNOWLEDGED"], ["archived", "ARCHIVED"]]
    .map(([word, state]) => [inState(window, state), word]).filter(([number]) => number).map(([number, word]) => `${number} ${word}`);
  return `window from ${window.startOffset} to ${window.endOffset}: ${parts.join(", ")}`;
}

export class SharePanel {
  constructor(element) {
    Object.assign(this, { element, windows: [], at: 0, chosen: 0, offset: null, actions: [], step: () => {} });
    this.canvas = make("canvas");
    Object.assign(this.canvas, { id: "window-strips", tabIndex: 0 });
    this.canvas.setAttribute("role", "slider");
    this.canvas.setAttribute("aria-label", "Record");
    this.context = this.canvas.getContext("2d");
    this.words = make("p", "chosen");
    this.summary = make("p", "soft");
    this.result = make("p", "soft");
    this.result.setAttribute("role", "status");
    this.buttons = make("p", "row");
    const legend = make("p", "legend", ...LEGEND.map(([kind, text]) => make("span", "", make("b", kind), text)));
    const reading = make("details", "", make("summary", "", "How to read this"), ...READING.map(text => make("p", "", text)));
    element.append(make("h3", "", "Records in flight now"), this.canvas, this.summary, this.words, this.buttons, this.result, legend, reading);
    this.canvas.addEventListener("keydown", event => this.pressed(event));
    this.canvas.addEventListener("pointerdown", event => this.pointed(event));
  }

  /** `actions`: label, title, whether it concerns only what is held, and what it does with window and offset. `step` goes to the next event of a share-partition. */
  offer(actions, step) {
    this.step = step;
    const button = (text, title, act, held = false) => {
      const made = make("button", "", text);
      Object.assign(made, { type: "button", title });
      made.addEventListener("click", act);
      if (held) made.dataset.held = "yes";
      return made;
    };
    const window = () => this.windows[this.chosen];
    this.result.textContent = "";
    this.buttons.replaceChildren(
      button("‹ Its last event", "To the previous event of this share-partition", () => step(window(), -1)),
      button("Its next event ›", "To the next event of this share-partition", () => step(window(), 1)),
      ...actions.map(([text, title, act]) => button(text, title, async () => {
        if (!window()) return;
        const of = { ...window(), at: this.at }, { offset } = this;
        try { this.result.textContent = await act(of, offset); } catch (problem) { this.result.textContent = `${text}: ${problem.message}`; }
      }, true)));
  }

  /** Show the windows of an instant. A run of them has a holder, whose number `numberOf` knows; `lockMs` is the length of a lock in a window. */
  show(windows, at, numberOf, lockMs) {
    const before = this.window && nameOf(this.window);
    Object.assign(this, { windows: windows.slice(0, MOST_SHOWN), left: windows.length - MOST_SHOWN, at, numberOf, lockMs });
    this.chosen = Math.max(0, this.windows.findIndex(each => nameOf(each) === before));
    this.element.hidden = !windows.length;
    this.draw();
  }

  get window() { return this.windows[this.chosen]; }

  get run() { return this.window?.records.find(each => each.firstOffset <= this.offset && each.lastOffset >= this.offset); }

  get labels() { return this.canvas.clientWidth < 560 ? 92 : 150; }

  draw() {
    const { canvas, context: c, windows, element } = this;
    if (element.hidden || !canvas.clientWidth) return;
    const width = canvas.clientWidth, left = this.labels;
    this.offset = Math.max(this.window.startOffset, Math.min(this.window.endOffset, this.offset ?? this.window.startOffset));
    fit(canvas, c, width, windows.length * STRIP);
    c.clearRect(0, 0, width, windows.length * STRIP);
    windows.forEach((window, index) => {
      c.fillStyle = getComputedStyle(element).color;
      c.font = `${index === this.chosen ? "600 " : ""}12px system-ui, sans-serif`;
      c.textBaseline = "middle";
      c.textAlign = "right";
      c.fillText(nameOf(window), left - 10, index * STRIP + 17, left - 12);
      c.textAlign = "left";
      drawStrip(c, window, { left, right: width - RIGHT, top: index * STRIP, numberOf: this.numberOf, lockMs: this.lockMs(window), selected: index === this.chosen && window.records.length ? this.offset : null });
    });
    this.say();
  }

  say() {
    const { window, run, offset } = this, more = this.left > 0 ? ` ${count(this.left, "share-partition")} more.` : "";
    this.summary.textContent = `${nameOf(window)}: ${summary(window)}.${more}`;
    this.words.textContent = run ? `Record ${offset}: ${MEANING[run.state](run, this.at)}.` : window.records.length ? `Record ${offset}: finished, or not delivered yet.` : "";
    for (const each of this.buttons.querySelectorAll("[data-held]")) each.disabled = run?.state !== "ACQUIRED";
    for (const [name, value] of [["valuemin", window.startOffset], ["valuemax", window.endOffset], ["valuenow", offset], ["valuetext", `${nameOf(window)} ${this.words.textContent || this.summary.textContent}`]]) {
      this.canvas.setAttribute(`aria-${name}`, value);
    }
  }

  /** Choose a record of a share-partition. */
  choose(index, offset) {
    this.chosen = Math.max(0, Math.min(this.windows.length - 1, index));
    this.offset = offset;
    this.draw();
  }

  pressed(event) {
    const { window, run, offset } = this;
    const moves = {
      ArrowRight: [0, offset + 1], ArrowLeft: [0, offset - 1], ArrowDown: [1, null], ArrowUp: [-1, null],
      PageDown: [0, run ? run.lastOffset + 1 : offset + 1], PageUp: [0, run ? run.firstOffset - 1 : offset - 1],
      Home: [0, window.startOffset], End: [0, window.endOffset],
    };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const [down, to] = moves[event.key];
    this.choose(this.chosen + down, to);
  }

  pointed(event) {
    const box = this.canvas.getBoundingClientRect(), index = Math.floor((event.clientY - box.top) / STRIP), window = this.windows[index];
    if (window) this.choose(index, scaleOf(window, this.labels, box.width - RIGHT).offset(event.clientX - box.left));
  }
}
