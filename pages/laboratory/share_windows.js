// The share-partitions of a run: which records were in the window of each, in which state, and from when to when.

import { after } from "./searching.js";

/** What an event makes of its records: their state, or nothing where only their lock is renewed. */
const BECOMES = {
  acquired: "ACQUIRED", accept: "ACKNOWLEDGED", gap: "ARCHIVED", reject: "ARCHIVED", archived: "ARCHIVED",
  release: "AVAILABLE", released: "AVAILABLE", expired: "AVAILABLE", renew: null,
};

const at = each => each.at;

/** One share-partition. Its runs are neighbouring records of one state, delivery count and holder, for a length of time. */
class SharePartition {
  constructor(group, topic, index) {
    Object.assign(this, { group, topic, index, name: `${topic}-${index}`, runs: [], open: [], windows: [], events: [], lockMs: 0 });
  }

  add([instant, , , , what, first, last, deliveries, holder, detail]) {
    if (what === "moved") this.move(instant, first, last);
    else if (what === "loaded") this.load(instant, first);
    else if (what === "acquired") this.acquire(instant, first, last, { deliveries, holder, lockMs: detail });
    else if (what in BECOMES) this.become(instant, first, last, what, deliveries);
    if (!this.events.length || this.events[this.events.length - 1] !== instant) this.events.push(instant);
  }

  acquire(instant, first, last, { deliveries, holder, lockMs }) {
    this.lockMs = lockMs;
    this.cut(instant, first, last, "");
    this.put({ first, last, state: "ACQUIRED", deliveries, holder, lockMs, lockUntil: instant + lockMs, from: instant });
  }

  become(instant, first, last, what, deliveries) {
    const state = BECOMES[what], before = this.cut(instant, first, last, what);
    if (state === null) {
      for (const run of before) this.put({ ...run, lockUntil: instant + run.lockMs, from: instant, to: Infinity });
    } else this.put({ first, last, state, deliveries, holder: "", lockMs: 0, lockUntil: null, from: instant });
  }

  /** A new leader knows no lock: what was held is available. */
  load(instant, start) {
    for (const run of this.open.filter(each => each.state === "ACQUIRED")) this.become(instant, run.first, run.last, "released", run.deliveries);
    this.move(instant, start, this.windows.length ? Math.max(start, this.windows[this.windows.length - 1].end) : start);
  }

  move(instant, start, end) {
    const last = this.windows[this.windows.length - 1];
    if (last && last.at === instant) this.windows.pop();
    this.windows.push({ at: instant, start, end });
    // What is below the start changes no more; it stays in the drawing as it ended.
    this.open = this.open.filter(each => each.last >= start);
  }

  put(run) {
    const made = { to: Infinity, ended: "", ...run };
    this.runs.push(made);
    this.open.splice(after(this.open, made.first, each => each.first), 0, made);
  }

  /** End what these records were until now. Returns it, cut to these records; what is beside them goes on. */
  cut(instant, first, last, ended) {
    const low = after(this.open, first - 1, each => each.last);
    let high = low;
    while (high < this.open.length && this.open[high].first <= last) high++;
    const found = this.open.splice(low, high - low);
    for (const run of found) {
      Object.assign(run, { to: instant, ended });
      for (const [from, until] of [[run.first, first - 1], [last + 1, run.last]]) {
        if (from <= until) this.put({ ...run, first: from, last: until, from: instant, to: Infinity, ended: "" });
      }
      // Beside what goes on, only these records have ended here.
      run.endsFirst = Math.max(first, run.first);
      run.endsLast = Math.min(last, run.last);
    }
    return found.map(run => ({ ...run, first: run.endsFirst, last: run.endsLast, ended: "" }));
  }

  /** The window in an instant, or null before there is one. */
  windowAt(instant) {
    return this.windows[after(this.windows, instant, at) - 1] || null;
  }

  /** The first and last offset of all windows between two instants, or null. */
  reach(from, to) {
    const first = Math.max(0, after(this.windows, from, at) - 1), last = after(this.windows, to, at);
    if (first >= last) return null;
    let low = Infinity, high = -Infinity;
    for (let index = first; index < last; index++) {
      low = Math.min(low, this.windows[index].start);
      high = Math.max(high, this.windows[index].end);
    }
    return { low, high };
  }

  /** The share-partition in an instant, in the form in which a coordinator has it. */
  stateAt(instant) {
    const window = this.windowAt(instant);
    if (!window) return null;
    const records = [];
    for (const run of this.runs) {
      if (run.from > instant) break;
      if (run.to <= instant || run.last < window.start) continue;
      records.push({ firstOffset: run.first, lastOffset: run.last, state: run.state, deliveryCount: run.deliveries, holder: run.holder,
        lockMs: run.lockUntil === null ? null : Math.max(0, run.lockUntil - instant) });
    }
    records.sort((a, b) => a.firstOffset - b.firstOffset);
    return { topic: this.topic, partition: this.index, startOffset: window.start, endOffset: window.end, records };
  }

  /** The next instant at which something happens to these records, in a direction, or null. */
  nextEvent(instant, direction) {
    const index = direction > 0 ? after(this.events, instant, each => each) : after(this.events, instant - 1, each => each) - 1;
    return this.events[index] ?? null;
  }
}

export class ShareWindows {
  constructor() { this.byKey = new Map(); this.sorted = null; }

  add(row) {
    const [, group, topic, index] = row, key = `${group}/${topic}-${index}`;
    if (!this.byKey.has(key)) { this.byKey.set(key, new SharePartition(group, topic, index)); this.sorted = null; }
    this.byKey.get(key).add(row);
  }

  of(group, topic, index) { return this.byKey.get(`${group}/${topic}-${index}`); }

  /** Whether a group shares partitions. */
  isShared(group) { return this.all.some(each => each.group === group); }

  /** All share-partitions, in the order in which they are drawn. */
  get all() {
    this.sorted ??= [...this.byKey.values()].sort((a, b) => a.group.localeCompare(b.group) || a.topic.localeCompare(b.topic) || a.index - b.index);
    return this.sorted;
  }

  /** The share-partitions of a group in an instant. */
  stateAt(group, instant) { return this.all.filter(each => each.group === group).map(each => each.stateAt(instant)).filter(Boolean); }
}
