// The share-partitions of a group in the instant that is shown: as a coordinator has them, or as their events say.

import * as recordings from "./recorded_source.js";

/** What a running coordinator knows of the share-partitions of a group, or null where it has none. */
export async function shareStates(recording, group) {
  if (!recording.shares.isShared(group)) return null;
  return recordings.sharesNow(group).catch(() => null);
}

/** Show the windows of a group in an instant. */
export function showWindows({ run, windows }, group, state) {
  const { recording } = run, ids = new Map(recording.memberNames);
  for (const [name, process] of Object.entries(state.processes)) if (process.member) ids.set(process.member.member_id, name);
  const named = record => ({ ...record, holder: record.holder ?? ids.get(record.memberId) ?? record.memberId ?? "" });
  const found = state.groups[group]?.shares?.map(each => ({ ...each, records: each.records.map(named) })) ?? recording.shares.stateAt(group, state.at);
  windows.show(found, state.at, each => recording.byName.get(each.holder)?.number,
    each => recording.shares.of(group, each.topic, each.partition)?.lockMs || Math.max(...each.records.map(record => record.lockMs ?? 0)));
}
