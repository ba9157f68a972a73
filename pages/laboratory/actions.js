// What can be done to a run: each becomes a line of the scenario.

import { make } from "./panel.js";

const quoted = name => (/^[\w.-]+$/.test(name) ? name : JSON.stringify(name));

/** The actions: label, whom they concern (member, group, topic), and the event that each becomes. */
const ACTIONS = [
  ["Kill -9, back after 30 s", "member", ({ member }) => `crash: {who: ${member}, down: 30s}`, "The process is killed, and is started again after 30 s."],
  ["Stop (SIGTERM), back after 30 s", "member", ({ member }) => `stop: {who: ${member}, down: 30s}`, "The consumer closes and leaves, and comes back after 30 s."],
  ["Pause 20 s (GC)", "member", ({ member }) => `pause: {who: ${member}, for: 20s}`, "The process stands still for 20 s."],
  ["Slow handler, 2 min", "member", ({ member }) => `stuck: {who: ${member}, for: 2m}`, "The user's code hangs for 2 minutes; heartbeats go on."],
  ["Cut link, 30 s", "member", ({ member }) => `cut: {who: ${member}, for: 30s}`, "No message goes between this member and the nodes for 30 s."],
  ["Reset connections", "member", ({ member }) => `reset: {who: ${member}}`, "Every connection of this member breaks, once."],
  ["Second with its id, 30 s", "member", ({ member }) => `duplicate: {who: ${member}, for: 30s}`, "A second process runs with the same group.instance.id for 30 s."],
  ["Lose half of the answers, 5 s", "group", () => "loss: {answers: 0.5, for: 5s}", "Half of the answers are lost for 5 s; the coordinator has carried the requests out."],
  ["Scale out by one", "group", ({ group, count }) => `scale: {group: ${group}, to: ${count + 1}}`, "One more consumer starts."],
  ["Scale in by one", "group", ({ group, count }) => `scale: {group: ${group}, to: ${Math.max(0, count - 1)}}`, "One consumer stops."],
  ["Rolling deploy", "group", ({ group }) => `deploy: {group: ${group}, every: 20s, down: 5s}`, "Every consumer is restarted, one after the other."],
  ["Move the coordinator", "group", ({ group }) => `failover: {group: ${group}}`, "Another node leads the group from now on."],
  ["Crash the coordinator, 10 s", "group", ({ group }) => `failover: {group: ${group}, down: 10s}`, "The coordinator's node dies, and is back after 10 s."],
  ["Slow log, 30 s", "group", () => "slow_log: {slower: 2s, for: 30s}", "Each write to the offsets log takes 2 s longer, for 30 s."],
  ["Add partitions", "topic", ({ topic, partitions }) => `grow: {topic: ${topic}, to: ${partitions * 2}}`, "The topic gets twice as many partitions."],
  ["Delete the topic", "topic", ({ topic }) => `delete_topic: {topic: ${topic}}`, "The topic is deleted, and what groups have committed for it."],
];

function choice(label, names, onChange) {
  const select = make("select");
  select.append(...names.map(name => make("option", "", name)));
  select.addEventListener("change", onChange);
  return { row: make("label", "", make("span", "", label), select), select };
}

/** Fill an element with the buttons of the actions. `act` gets the event's text. */
export function drawActions(element, about, act) {
  const members = choice("member", about.members, () => {});
  const groups = choice("group", about.groups, () => {});
  const topics = choice("topic", Object.keys(about.topics), () => {});
  const rows = { member: members, group: groups, topic: topics };
  const parts = [];
  for (const kind of ["member", "group", "topic"]) {
    if (!rows[kind].select.options.length) continue;
    const box = make("div", "actions", rows[kind].row);
    for (const [label, of, event, title] of ACTIONS) {
      if (of !== kind) continue;
      const button = make("button", "", label);
      button.type = "button";
      button.title = title;
      button.addEventListener("click", () => {
        const group = groups.select.value, topic = topics.select.value;
        act(event({ member: quoted(members.select.value), group: quoted(group), topic: quoted(topic), partitions: about.topics[topic], count: about.count(group) }));
      });
      box.append(button);
    }
    parts.push(box);
  }
  element.replaceChildren(...parts);
}

/** What can be done to a record that a member of a share group holds. It happens 1 ms later: at its instant the record may not be held yet. */
export function shareActions(group, act, said) {
  const event = kind => async ({ topic, partition, at }, offset) => {
    await act(`${kind}: {group: ${quoted(group)}, topic: ${quoted(topic)}, partition: ${partition}, offset: ${offset}}`, at + 1);
    return said();
  };
  return [
    ["Let the lock run out", "The record is given back now, as if its lock had lasted its time. A batch in one state has one lock.", event("expire_lock")],
    ["Release it", "The handler that has the record gives it back. A group that acknowledges implicitly cannot.", event("release")],
  ];
}
