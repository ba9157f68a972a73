// What has been played so far: rows of the engine, in the order of time, and where to find them.

import { after } from "./searching.js";
import { ShareWindows } from "./share_windows.js";
import { TaskHistory } from "./task_history.js";
import { clock, count, span } from "./time.js";

export const FATE = { OPEN: 0, ANSWERED: 1, LOST_REQUEST: 2, LOST_RESPONSE: 3, TIMEOUT: 4, DISCONNECTED: 5, CANCELLED: 6 };

/** The coordinator where consumers' logs alone were read: they do not name its broker. */
export const UNNAMED = "coordinator";

const RECENT_MS = 30000;

const startOf = part => part.start;

/** Parts of a lane: each lasts until the next begins. */
class Parts {
  constructor() { this.list = []; }

  add(start, part) {
    const last = this.list[this.list.length - 1];
    if (last) last.end = Math.min(last.end, start);
    // What lasted no time is not kept.
    if (last && last.start === start) this.list.pop();
    this.list.push({ ...part, start, end: Infinity });
  }

  at(instant) {
    const index = after(this.list, instant, startOf) - 1;
    return index < 0 || this.list[index].end <= instant ? null : this.list[index];
  }

  /** The parts that are between two instants. */
  *between(from, to) {
    for (let index = Math.max(0, after(this.list, from, startOf) - 1); index < this.list.length; index++) {
      if (this.list[index].start > to) return;
      if (this.list[index].end > from) yield this.list[index];
    }
  }
}

export class Recording {
  constructor() {
    this.until = 0;
    this.done = false;
    this.summary = null;
    this.actors = [];
    this.byName = new Map();
    this.requests = [];
    this.numbers = new Map();
    this.longest = 0;
    this.rebalances = [];
    this.lines = [];
    this.groups = new Map();
    this.leaders = new Map();
    this.partitions = new Map();
    this.shares = new ShareWindows();
    this.tasks = new TaskHistory();
    this.kinds = new Map();
    this.memberNames = new Map();
    this.moments = null;
    this.consumers = 0;
  }

  add(piece) {
    this.until = piece.until;
    for (const [name, kind, group, memberId] of piece.actors || []) this.actor(name, kind, group, memberId);
    for (const row of piece.lives || []) this.life(row);
    for (const [at, name, state, generation] of piece.members || []) this.actor(name).members.add(at, { state, generation });
    for (const row of piece.groups || []) this.group(...row);
    for (const [at, group, leader, protocol] of piece.leaders || []) this.leader(at, group, leader, protocol);
    for (const row of piece.rebalances || []) this.rebalance(row);
    for (const [at, topic, count] of piece.topics || []) this.topic(at, topic, count);
    for (const row of piece.owners || []) this.owner(...row);
    for (const [at, text, kind] of piece.lines || []) this.lines.push({ at, text, kind });
    for (const row of piece.shares || []) this.shares.add(row);
    for (const [group, kind] of piece.kinds || []) this.kinds.set(group, kind);
    for (const row of piece.tasks || []) this.tasks.add(row);
    for (const row of piece.restores || []) this.tasks.restored(row);
    for (const row of piece.readiness || []) this.tasks.said(row);
    for (const row of piece.requests || []) this.request(row);
    if (piece.done) { this.done = true; this.summary = piece.summary; }
    this.moments = null;
  }

  /** An actor by its name. `memberId`: the newest of its member ids, where only the coordinator's events are known. */
  actor(name, kind = "client", group = "", memberId = undefined) {
    let found = this.byName.get(name);
    if (!found) {
      found = { name, kind, group, members: new Parts(), up: new Parts(), spells: [], leads: [] };
      this.byName.set(name, found);
      this.actors.push(found);
    } else if (group && !found.group) Object.assign(found, { kind, group });
    if (memberId) { found.memberId = memberId; this.memberNames.set(memberId, name); }
    // Members have colours, in the order in which they came.
    if (found.kind === "consumer" && found.number === undefined) found.number = this.consumers++;
    return found;
  }

  life([at, name, what, until, why]) {
    const actor = this.actor(name);
    if (what === "up" || what === "down") {
      actor.up.add(at, { isUp: what === "up", why });
      if (what === "down") {
        for (const each of actor.spells) each.end = Math.min(each.end, at);
      }
    } else if (what === "healed") {
      for (const each of actor.spells) if (each.what === "cut") each.end = Math.min(each.end, at);
    } else if (what === "paused" || what === "stuck" || what === "cut") {
      for (const each of actor.spells) if (each.what === what) each.end = Math.min(each.end, at);
      actor.spells.push({ what, start: at, end: until < 0 ? Infinity : until });
    }
  }

  group(at, group, node, state, generation) {
    if (!this.groups.has(group)) this.groups.set(group, { name: group, byNode: new Map() });
    const nodes = this.groups.get(group).byNode;
    if (!nodes.has(node)) nodes.set(node, new Parts());
    nodes.get(node).add(at, { state, generation });
  }

  /** The kind of a group, by its events: classic, consumer, share or streams. */
  kindOf(group) { return this.kinds.get(group) ?? "classic"; }

  /** What a group counts: its generations, or its epochs. */
  unitOf(group) { return this.kindOf(group) === "classic" ? "generation" : "epoch"; }

  leader(at, group, leader, protocol) {
    if (!this.leaders.has(group)) this.leaders.set(group, new Parts());
    this.leaders.get(group).add(at, { leader, protocol });
  }

  rebalance([number, group, start, end, cause, text]) {
    const row = { group, start, end: end < 0 ? Infinity : end, cause, text };
    const index = this.rebalances.findIndex(each => each.number === number);
    if (index < 0) this.rebalances.push({ number, ...row }); else Object.assign(this.rebalances[index], row);
  }

  topic(at, topic, count) {
    this.counts = this.counts || new Map();
    this.counts.set(topic, [...(this.counts.get(topic) || []), { at, count }]);
  }

  partition(group, topic, index) {
    const key = `${group}/${topic}-${index}`;
    let found = this.partitions.get(key);
    if (!found) {
      const sizes = (this.counts && this.counts.get(topic)) || [];
      const since = (sizes.find(each => each.count > index) || { at: 0 }).at;
      found = { group, topic, index, since, held: [], open: new Map() };
      this.partitions.set(key, found);
      this.rows = null;
    }
    return found;
  }

  owner(at, group, topic, index, client, change) {
    const partition = this.partition(group, topic, index);
    if (change > 0) {
      const held = { client, start: at, end: Infinity };
      partition.open.set(client, held);
      partition.held.push(held);
    } else if (partition.open.has(client)) {
      partition.open.get(client).end = at;
      partition.open.delete(client);
    }
  }

  /** The partitions in the order in which they are drawn. */
  sortedPartitions() {
    if (!this.rows) {
      this.rows = [...this.partitions.values()].sort((a, b) =>
        a.group.localeCompare(b.group) || a.topic.localeCompare(b.topic) || a.index - b.index);
    }
    return this.rows;
  }

  request([number, client, node, api, sent, arrived, answered, ended, fate, error, generation, minor, blocked]) {
    const row = { number, client, node, api, sent, arrived, answered, ended, fate, error, generation, minor: !!minor, blocked: !!blocked };
    const known = this.numbers.get(number);
    if (known) Object.assign(known, row);
    else {
      this.numbers.set(number, row);
      const last = this.requests[this.requests.length - 1];
      if (!last || last.sent <= sent) this.requests.push(row);
      else this.requests.splice(after(this.requests, sent, each => each.sent), 0, row);
    }
    if (ended >= 0) this.longest = Math.max(this.longest, ended - sent);
    if (!this.byName.has(client)) this.actor(client);
  }

  /** The requests that are under way between two instants. */
  *requestsBetween(from, to) {
    const longest = this.done ? this.longest : Infinity;
    const first = longest === Infinity ? 0 : after(this.requests, from - longest - 1, each => each.sent);
    for (let index = first; index < this.requests.length; index++) {
      const row = this.requests[index];
      if (row.sent > to) return;
      if (row.ended < 0 || row.ended >= from) yield row;
    }
  }

  /** Every instant at which something of interest happens, sorted. */
  allMoments() {
    if (!this.moments) {
      const found = new Set();
      for (const line of this.lines) found.add(line.at);
      for (const row of this.requests) {
        if (row.minor) continue;
        for (const at of [row.sent, row.arrived, row.answered, row.ended]) if (at >= 0) found.add(at);
      }
      for (const actor of this.actors) for (const part of actor.members.list) found.add(part.start);
      for (const share of this.shares.all) for (const at of share.events) found.add(at);
      for (const at of this.tasks.events) found.add(at);
      this.moments = Float64Array.from(found).sort();
    }
    return this.moments;
  }

  nextMoment(at, direction) {
    const moments = this.allMoments();
    let index = after(moments, at, each => each);
    if (direction > 0) return index < moments.length ? moments[index] : this.until;
    index--;
    while (index >= 0 && moments[index] >= at) index--;
    return index >= 0 ? moments[index] : 0;
  }

  /** The last lines before an instant, if they are not long ago; the newest first. */
  justBefore(at) {
    const end = after(this.lines, at, each => each.at);
    return this.lines.slice(Math.max(0, end - 3), end).filter(each => at - each.at <= 3000).reverse();
  }

  /** What is said of a group in an instant, and what its last rebalance was. */
  words(state, group) {
    return [...((state.words && state.words[group]) || []), this.lastRebalance(group, state.at)].filter(Boolean);
  }

  lastRebalance(group, at) {
    let last = null;
    for (const each of this.rebalances) if (each.group === group && each.start <= at && (!last || each.start >= last.start)) last = each;
    if (!last || last.end > at) return null;
    return `The last rebalance went from ${clock(last.start, true)} to ${clock(last.end, true)}: ${span(last.end - last.start)}.${at - last.end <= RECENT_MS ? this.unowned(group, last) : ""}`;
  }

  /** Which partitions lost their owners in a rebalance; nothing where none had an owner before. */
  unowned(group, { start, end }) {
    const owned = [...this.partitions.values()].filter(each => each.group === group && each.held.some(part => part.start < start));
    const free = owned.filter(each => !isCovered(each.held, start, end)).length, all = count(owned.length, "partition");
    return free ? ` ${free === owned.length && free > 1 ? `All ${all}` : `${free} of ${all}`} went without an owner at some point.` : "";
  }

  nextRebalance(at, direction) {
    const starts = this.rebalances.map(each => each.start).sort((a, b) => a - b);
    if (direction > 0) return starts.find(each => each > at) ?? at;
    return starts.reverse().find(each => each < at) ?? 0;
  }
}

/** Whether a partition had an owner from one instant to another. */
function isCovered(held, from, to) {
  let reached = from;
  for (const part of held) if (part.start <= reached && part.end > reached) reached = part.end;
  return reached >= to;
}
