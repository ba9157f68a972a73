// Groups that were recorded, not played: the state of an instant is what the rows say, and there are no cores to ask.

import { clock, count } from "./time.js";

const WAITING = new Set(["PREPARING_REBALANCE", "COMPLETING_REBALANCE", "JOINING"]);
const NO_MEMBER = new Set(["UNJOINED", "DOWN", "FENCED"]);

/** Whether an actor was a member and is none: of its process nothing is known, and it may never come back. */
export const isGone = (actor, part) => !!part && part.state === "UNJOINED" && !actor.up.list.length;

/** The newest part of any node's lane that lasts at an instant: what the group's coordinator says. */
function groupAt(group, at) {
  let found = null;
  for (const [node, parts] of group ? group.byNode : []) {
    const part = parts.at(at);
    if (part && (!found || part.start >= found.part.start)) found = { node, part, before: parts.at(part.start - 1) };
  }
  return found;
}

function ownedAt(recording, at) {
  const found = new Map();
  let free = 0, there = 0;
  for (const { topic, index, held, since } of recording.sortedPartitions()) {
    const owners = held.filter(each => each.start <= at && each.end > at);
    if (owners.length || since <= at) there++;
    if (!owners.length && since <= at) free++;
    for (const { client } of owners) {
      if (!found.has(client)) found.set(client, {});
      (found.get(client)[topic] ??= []).push(index);
    }
  }
  return { owned: found, free, there };
}

/** The state of a group in an instant, in the form in which the laboratory has it, as far as it is recorded. */
export function stateOf(recording, name, at) {
  const found = groupAt(recording.groups.get(name), at), { owned, free, there } = ownedAt(recording, at);
  const lead = recording.leaders.get(name)?.at(at);
  const processes = {}, members = [], late = [];
  for (const actor of recording.actors) {
    if (actor.kind !== "consumer" || !actor.members.list.length || actor.members.list[0].start > at) continue;
    const part = actor.members.at(at), isUp = !!part && part.state !== "DOWN";
    if (isGone(actor, part)) continue;
    processes[actor.name] = { group: name, isUp, owned: owned.get(actor.name) || {}, member: isUp ? { ...part, member_id: actor.name } : null };
    if (!isUp || NO_MEMBER.has(part.state)) continue;
    members.push({ memberId: actor.name, clientId: actor.name, knownAs: actor.memberId, isLeader: !!lead && lead.leader === actor.name, awaitingJoin: part.state === "PREPARING_REBALANCE" });
    if (found && found.part.state === "PreparingRebalance" && !WAITING.has(part.state)) late.push(actor.name);
  }
  const state = found ? found.part.state : "", inUse = found && state !== "DOWN" && state !== "Dead";
  const view = inUse && {
    state, previousState: found.before ? found.before.state : "", generation: found.part.generation, stateSince: found.part.start,
    protocol: lead ? lead.protocol : "", leader: lead ? lead.leader : "", members, pendingMembers: [], deadlines: {},
    ...(recording.unitOf(name) === "epoch" && { groupEpoch: found.part.generation }),
  };
  return {
    at, processes,
    groups: { [name]: { led: inUse ? [{ node: found.node, group: view }] : [], log: null } },
    words: { [name]: sentences(name, view, members.length, late, free, there) },
  };
}

function sentences(name, view, members, late, free, partitions) {
  if (!view) return [`Nothing is known of ${name} at this instant.`];
  const unit = "groupEpoch" in view ? "epoch" : "generation";
  const found = [`${name} is ${view.state} in ${unit} ${view.generation}${membersText(view.state, members)}`];
  if (late.length) found.push(`Not there yet: ${late.slice(0, 5).join(", ")}${late.length > 5 ? ` and ${late.length - 5} more` : ""}.`);
  if (free && partitions && members) found.push(free === partitions ? "No partition has an owner." : `${count(free, "partition")} of ${partitions} ${free === 1 ? "has" : "have"} no owner.`);
  return found;
}

/** How many members there are, where the coordinator's last word and the consumers' own agree. */
function membersText(state, members) {
  if (state === "Empty") return members ? `; ${count(members, "consumer")} did not learn that yet.` : ".";
  return members ? `, ${count(members, "member")}.` : " by the last word of its coordinator; no consumer is a member any more.";
}

/** The state with what only a running coordinator knows: timers, and what is parked. Its instants are ms since 1970. */
export function withTimers(state, name, answer, origin) {
  const led = state.groups[name].led[0], view = led && led.group;
  if (!view || answer.generation !== view.generation) return state;
  const byId = new Map(answer.members.map(each => [each.memberId, each]));
  for (const member of view.members) {
    const known = byId.get(member.knownAs);
    if (!known) continue;
    const { memberId, clientId, ...rest } = known;
    Object.assign(member, rest, { sessionExpiresAt: known.sessionExpiresAt === null ? null : known.sessionExpiresAt - origin });
  }
  view.pendingMembers = answer.pendingMembers;
  view.deadlines = Object.fromEntries(Object.entries(answer.deadlines).map(([timer, due]) => [timer, due - origin]));
  return state;
}

/** The instant and the group that an address names: #at=83000&group=orders. */
export function place(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, "")), at = Number(given.get("at"));
  return { at: given.has("at") && Number.isFinite(at) ? at : null, group: given.get("group") };
}

/** What an address says of a place. */
export const placeText = (group, at) => `#${new URLSearchParams({ at: Math.round(at), group })}`;

/** What the header says of a recording. */
export const status = (recording, isLive) => isLive ? `live, ${clock(recording.until)}` : `until ${clock(recording.until)}`;
