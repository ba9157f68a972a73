// Instants and lengths as text, and the part of a run that is on the screen.

const two = n => String(n).padStart(2, "0");

let origin = 0;

/** Show instants as times of day (UTC): the instant 0 is so many ms since 1970. */
export function setOrigin(ms) { origin = ms; }

/** A number with its noun. */
export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** An instant: 0:05:30, with milliseconds where they are wanted. */
export function clock(ms, exact = false) {
  if (origin) return new Date(origin + ms).toISOString().slice(11, exact ? 23 : 19);
  const s = Math.floor(ms / 1000);
  const text = `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return exact ? `${text}.${String(Math.floor(ms % 1000)).padStart(3, "0")}` : text;
}

/** A length of time. */
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  return `${(ms / 60000).toFixed(1)} min`;
}

const STEPS = [1, 5, 10, 50, 100, 500, 1e3, 2e3, 5e3, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 108e5, 432e5, 864e5];
const SHORTEST = 40;

/** Which part of the run is shown: the one time axis of all drawings. */
export class TimeView {
  constructor() {
    this.horizon = 60000;
    this.from = 0;
    this.to = 60000;
    this.left = 150;
    this.width = 800;
    this.onChange = () => {};
  }

  /** The drawing's x of an instant. */
  x(at) { return this.left + (at - this.from) / (this.to - this.from) * (this.width - this.left - 10); }

  /** The instant at an x. */
  time(x) { return this.from + (x - this.left) / Math.max(1, this.width - this.left - 10) * (this.to - this.from); }

  get pixel() { return (this.to - this.from) / Math.max(1, this.width - this.left - 10); }

  show(from, to) {
    const length = Math.min(this.horizon, Math.max(SHORTEST, to - from));
    from = Math.max(0, Math.min(this.horizon - length, from));
    if (from === this.from && from + length === this.to) return;
    this.from = from;
    this.to = from + length;
    this.onChange();
  }

  fit() { this.show(0, this.horizon); }

  /** Zoom by a factor; the instant stays where it is. */
  zoom(factor, at) {
    const length = Math.min(this.horizon, Math.max(SHORTEST, (this.to - this.from) * factor));
    const share = (at - this.from) / (this.to - this.from);
    this.show(at - share * length, at - share * length + length);
  }

  pan(ms) { this.show(this.from + ms, this.to + ms); }

  /** Move on when an instant leaves the screen. */
  follow(at) {
    const length = this.to - this.from;
    if (at < this.from || at > this.to) this.show(at - length * 0.15, at + length * 0.85);
  }

  /** The instants of the axis' marks, and how far they are apart. */
  ticks() {
    const every = STEPS.find(step => (this.to - this.from) / step <= Math.max(3, (this.width - this.left) / 90)) || 864e5;
    const found = [];
    const shift = origin % every;  // marks are at whole minutes of the day
    for (let at = Math.ceil((this.from + shift) / every) * every - shift; at <= this.to; at += every) found.push(at);
    return { every, found };
  }
}
