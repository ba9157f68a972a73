// Where recordings come from: the server of the page, which has a journal or is a running coordinator.

import { get, post, problemOf, readLines } from "./http.js";

/** What was recorded of a group, and for as long as it goes on. */
export async function recorded(group, onPiece, signal) {
  const response = await fetch(`api/recorded?group=${encodeURIComponent(group)}`, { signal });
  if (!response.ok) throw await problemOf(response);
  await readLines(response, onPiece);
}

/** A group of a running coordinator as it is now, with its timers. */
export const groupNow = group => get(`groups?id=${encodeURIComponent(group)}`);

/** The share-partitions of a group of a running coordinator as they are now. */
export const sharesNow = group => get(`api/shares?group=${encodeURIComponent(group)}`);

/** Ask a running coordinator for something that the control API does. */
export const control = (path, body) => post(`control/${path}`, body);
