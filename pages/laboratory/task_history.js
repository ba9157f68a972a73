// The tasks of applications in a run: which thread had which of them, in which role, and what kept the group from running.

import { after } from "./searching.js";

const ROLES = ["active", "standby", "warmup"];

/** Tasks in order: the subtopology first, then the number. */
const inOrder = (a, b) => a.localeCompare(b, "en", { numeric: true });

/** The name of a process: that of its only thread, or what the names of its threads begin with. */
export function processName(threads) {
  let common = threads[0];
  for (const each of threads) while (!each.startsWith(common)) common = common.slice(0, -1);
  return threads.length === 1 ? common : common.replace(/[-_. ]*(StreamThread)?[-_. ]*$/, "") || threads[0];
}

/** One process: its threads, and a slot for each task that it has at the same time as others. */
class Process {
  constructor(group) { Object.assign(this, { group, threads: [], slots: [] }); }

  get name() { return processName(this.threads); }

  /** Put tasks that begin at once into slots: each where it was before, or into the first that is free. */
  put(bars) {
    const last = slot => slot[slot.length - 1], isFree = slot => last(slot).end <= bars[0].start, others = [];
    for (const bar of bars) {
      const mine = this.slots.find(slot => isFree(slot) && last(slot).task === bar.task);
      if (mine) mine.push(bar); else others.push(bar);
    }
    for (const bar of others) {
      const found = this.slots.find(isFree);
      if (found) found.push(bar); else this.slots.push([bar]);
    }
  }
}

class ThreadTasks {
  constructor(process) { Object.assign(this, { process, open: new Map() }); }
}

export class TaskHistory {
  constructor() { Object.assign(this, { threads: new Map(), groups: new Map(), events: [] }); }

  /** A group with its processes and what is said of its topology. */
  group(name) {
    if (!this.groups.has(name)) this.groups.set(name, { name, processes: [], ids: new Map(), marks: [] });
    return this.groups.get(name);
  }

  thread(groupName, name, processId) {
    const key = `${groupName}\n${name}`;
    let found = this.threads.get(key);
    if (!found) {
      const group = this.group(groupName);
      let process = group.ids.get(processId);
      if (!process) {
        process = new Process(groupName);
        group.ids.set(processId, process);
        group.processes.push(process);
      }
      process.threads.push(name);
      found = new ThreadTasks(process);
      this.threads.set(key, found);
    }
    return found;
  }

  /** A thread has these tasks from now on. `isOwn`: another row says when an active task begins to run. */
  add([at, group, name, processId, active, standby, warmup, isOwn]) {
    const thread = this.thread(group, name, processId), wanted = new Map();
    [active, standby, warmup].forEach((tasks, index) => { for (const task of tasks) wanted.set(`${ROLES[index]} ${task}`, { task, role: ROLES[index] }); });
    for (const [key, bar] of thread.open) if (!wanted.has(key)) { bar.end = at; thread.open.delete(key); }
    const begin = [...wanted].filter(([key]) => !thread.open.has(key)).sort((a, b) => inOrder(a[1].task, b[1].task)).map(([key, each]) => {
      const bar = { ...each, thread: name, start: at, end: Infinity, runsAt: each.role === "active" && isOwn ? Infinity : at, records: 0 };
      thread.open.set(key, bar);
      return bar;
    });
    if (begin.length) thread.process.put(begin);
    this.happened(at);
  }

  /** An active task begins to run. */
  restored([at, group, name, task, from, records]) {
    const bar = this.threads.get(`${group}\n${name}`)?.open.get(`active ${task}`);
    if (bar) Object.assign(bar, { runsAt: Math.min(bar.runsAt, at), from, records });
    this.happened(at);
  }

  said([at, group, what, text]) {
    this.group(group).marks.push({ at, what, text });
    this.happened(at);
  }

  happened(at) { if (this.events[this.events.length - 1] !== at) this.events.push(at); }

  /** Processes that had a task, by group. */
  get all() { return [...this.groups.values()]; }

  /** What is said of a group's topology in an instant: the last word on whether it can run. */
  notReady(group, at) {
    const marks = (this.groups.get(group)?.marks ?? []).filter(each => each.what === "ready" || each.what === "not ready");
    const last = marks[after(marks, at, each => each.at) - 1];
    return last?.what === "not ready" ? last.text : null;
  }

  /** The tasks of a group in an instant, in order. */
  stateAt(group, at) {
    const found = [];
    for (const process of this.groups.get(group)?.processes ?? []) {
      for (const slot of process.slots) {
        const bar = slot[after(slot, at, each => each.start) - 1];
        if (bar && bar.end > at) found.push({ ...bar, isRestoring: bar.runsAt > at });
      }
    }
    return found.sort((a, b) => inOrder(a.task, b.task) || ROLES.indexOf(a.role) - ROLES.indexOf(b.role));
  }
}
