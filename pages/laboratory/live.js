// What can be done to a group of a running coordinator that has its control API: each is a request to it.

import { make } from "./panel.js";

/** The actions: label, whether they concern a member, path, body, what it does. */
const ACTIONS = [
  ["Session runs out", true, "groups/expire", (group, member) => ({ group, member }), "The member's session ends now, as if no heartbeat had come."],
  ["Remove", true, "groups/kick", (group, member) => ({ group, member }), "The member is removed, as an administrator does it."],
  ["Lose its next request", true, "faults", (group, _, client) => ({ client_id: client, when: "drop_request", count: 1 }), "The coordinator never sees the member's next request."],
  ["Lose its next answer", true, "faults", (group, _, client) => ({ client_id: client, when: "drop_response", count: 1 }), "The next request is carried out, and its answer is lost."],
  ["Refuse its next heartbeat", true, "faults", (group, _, client) => ({ client_id: client, keys: ["Heartbeat", "ConsumerGroupHeartbeat"], when: "before", error: "UNKNOWN_MEMBER_ID", count: 1 }), "The member is answered UNKNOWN_MEMBER_ID."],
  ["10 s pass", false, "clock", () => ({ advance_ms: 10000 }), "Ten seconds pass at once; the coordinator needs a virtual clock."],
  ["Lose all answers to JoinGroup, once", false, "faults", group => ({ group, keys: ["JoinGroup"], when: "drop_response", count: 1 }), "The next JoinGroup is carried out, and its answer is lost."],
];

/** Fill an element with the buttons, where the coordinator can be controlled: wholly, or by some paths of the control API. */
export function drawLiveActions(element, scenario, group, control, say) {
  element.closest("details").hidden = !scenario.control;
  if (!scenario.control) return;
  const offered = ACTIONS.filter(each => scenario.control === true || scenario.control.includes(each[2]));
  const select = make("select"), row = make("label", "", make("span", "", "member"), select);
  const fill = async () => {
    const chosen = select.value, answer = await fetch(`groups?id=${encodeURIComponent(group)}`).then(found => found.json()).catch(() => null);
    select.replaceChildren(...((answer && answer.members) || []).map(each => {
      const option = make("option", "", each.clientId === each.memberId ? each.memberId : `${each.clientId} ${each.memberId.slice(-6)}`);
      option.value = JSON.stringify([each.memberId, each.clientId]);
      return option;
    }));
    if ([...select.options].some(each => each.value === chosen)) select.value = chosen;
  };
  select.addEventListener("focus", fill);
  fill();
  const buttons = [true, false].map(ofMember => make("div", "actions", ofMember ? row : null, ...offered.filter(each => each[1] === ofMember).map(([label, , path, body, title]) => {
    const button = make("button", "", label);
    button.type = "button";
    button.title = title;
    button.addEventListener("click", async () => {
      try {
        const [member, client] = ofMember ? JSON.parse(select.value || "[]") : [];
        if (ofMember && !member) { say("The group has no member."); return; }
        await control(path, body(group, member, client));
        say(`${label}: done.`);
      } catch (problem) { say(`${label}: ${problem.message}`); }
    });
    return button;
  })));
  element.replaceChildren(...buttons);
}

/** What can be done to a record that a member holds: label, title, and the request. */
export const liveShareActions = (group, control) => [
  ["Let the lock run out", "The record is given back now, as if its lock had lasted its time. A batch in one state has one lock.", async (window, offset) => {
    await control("share-groups/expire-lock", { group, topic: window.topic, partition: window.partition, offset });
    return `The lock of record ${offset} has run out.`;
  }],
  ["Release it", "The record is given back for the member that has it, whose session goes on.", async (window, offset) => {
    await control("share-groups/release", { group, topic: window.topic, partition: window.partition, offset });
    return `Record ${offset} is released.`;
  }],
];
