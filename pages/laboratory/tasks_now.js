// The tasks of an application in an instant, by subtopology, and its internal topics; or why its topology cannot run.

import { breakable, make } from "./panel.js";
import { inkOn, ofOwner } from "./theme.js";
import { count } from "./time.js";

const MOST_TASKS = 200;

/** The id of a task's subtopology, and the number of the task in it. */
const partsOf = task => { const at = task.lastIndexOf("_"); return [task.slice(0, at), task.slice(at + 1)]; };

const WORDS = { active: "runs in", standby: "standby in", warmup: "warm-up in" };

function chip({ task, role, thread, isRestoring }, number) {
  const made = make("span", `task ${role}${isRestoring ? " restoring" : ""}`, task), owner = ofOwner(number);
  made.title = `${task}: ${isRestoring ? "state is being restored in" : WORDS[role]} ${thread}`;
  made.style.borderColor = owner;
  if (role === "active" && !isRestoring) Object.assign(made.style, { background: owner, color: inkOn(number) });
  return made;
}

function free(task) {
  const made = make("span", "task free", task);
  made.title = `${task}: no thread runs it`;
  return made;
}

/** What a subtopology reads, writes and keeps. */
function about(part) {
  const reads = [...part.sourceTopics, ...part.repartitionSourceTopics], says = [`reads ${reads.join(", ")}`];
  if (part.repartitionSinkTopics.length) says.push(`writes ${part.repartitionSinkTopics.join(", ")}`);
  if (part.changelogTopics.length) says.push(`state in ${part.changelogTopics.join(", ")}`);
  return says.join("; ");
}

/** The tasks of a subtopology: first all that are active or have no owner, then the copies. */
function line(id, part, tasks, known, recording) {
  const named = new Set(tasks.filter(each => each.role === "active").map(each => each.task));
  const without = known.filter(each => partsOf(each)[0] === id && !named.has(each)).map(task => ({ task, role: "free" }));
  const sorted = [...tasks.filter(each => each.role === "active"), ...without].sort((a, b) => partsOf(a.task)[1] - partsOf(b.task)[1]);
  const all = [...sorted, ...tasks.filter(each => each.role !== "active")];
  const chips = all.slice(0, MOST_TASKS).map(each => (each.role === "free" ? free(each.task) : chip(each, recording.byName.get(each.thread)?.number)));
  const words = make("p", "soft", ...breakable(part ? `Subtopology ${id}: ${about(part)}` : `Subtopology ${id}`));
  return make("div", "subtopology", words, make("p", "tasks", ...chips), all.length > MOST_TASKS ? make("p", "soft", `and ${count(all.length - MOST_TASKS, "task")} more`) : null);
}

/** The tasks of a group in an instant, or nothing where it has none. `view`: the group as its coordinator has it, or null. */
export function tasksNow(recording, group, view, at) {
  const tasks = recording.tasks.stateAt(group, at), reason = view?.notReady ?? recording.tasks.notReady(group, at);
  const parts = new Map((view?.subtopologies ?? []).map(each => [each.subtopologyId, each]));
  if (!recording.tasks.groups.has(group) && !parts.size) return [];
  const known = (view?.tasks ?? []).map(each => `${each.subtopologyId}_${each.partition}`);
  const ids = [...new Set([...parts.keys(), ...tasks.map(each => partsOf(each.task)[0])])];
  const made = [make("h3", "", "Tasks")];
  if (reason) made.push(make("p", "bad", ...breakable(`Not ready: ${reason}`)));
  for (const id of ids) made.push(line(id, parts.get(id), tasks.filter(each => partsOf(each.task)[0] === id), known, recording));
  if (!tasks.length && !known.length) made.push(make("p", "soft", "No thread has a task."));
  const topics = view?.internalTopics ?? [];
  if (topics.length) {
    const items = topics.map(each => make("li", "", ...breakable(each.topic), make("span", "soft", ` ${each.kind}, ${each.partitions ? count(each.partitions, "partition") : "does not exist"}`)));
    made.push(make("h3", "", "Internal topics"), make("ul", "topics", ...items));
  }
  return made;
}
