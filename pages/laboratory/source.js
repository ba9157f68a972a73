// The engine behind the page. This one asks a server for it; each call names a scenario's text and seed, or a run.

import { get, post, problemOf, readLines } from "./http.js";

/** What to begin with: a scenario's name, text and seed. */
export const start = () => get("api/start");

/** The scenarios of the gallery: name and question. */
export const gallery = () => get("api/gallery");

/** The chapters of lessons. */
export const lessons = () => get("api/lessons");

export const galleryText = name => get(`api/gallery/${encodeURIComponent(name)}`);

/** Play a scenario. `onHead` gets what the run is, `onPiece` each piece of it. */
export async function play(text, seed, onHead, onPiece, signal) {
  let isHead = true;
  await readLines(await post("api/runs", { text, seed }, signal), piece => {
    if (isHead) onHead(piece); else onPiece(piece);
    isHead = false;
  });
}

/** The state of all cores in an instant. */
export const stateAt = (run, at) => get(`api/runs/${run}/state?at=${Math.round(at)}`);

/** The lag of a group at so many instants between two, and its commits meanwhile. */
export const lag = (run, group, from, to, points) =>
  get(`api/runs/${run}/lag?group=${encodeURIComponent(group)}&from=${from}&to=${to}&points=${points}`);

/** What the rules of reports find in a run: severity, title, setting and advice of each; null without the rules. */
export const findings = (run, group) => get(`api/runs/${run}/findings?group=${encodeURIComponent(group)}`);

/** The scenario with another value of a key. */
export const withValue = async (text, path, value) => (await post("api/values", { text, path, value })).json();

/** The run as a `transcript` of a group, as a `pytest` test, or as a `journal`. */
export async function exported(run, kind, group) {
  const response = await fetch(`api/runs/${run}/${kind}?group=${encodeURIComponent(group)}`);
  if (!response.ok) throw await problemOf(response);
  return response.text();
}

/** The scenario with one more event. */
export const withEvent = async (text, at, action) => (await post("api/events", { text, at: Math.round(at), action })).json();
