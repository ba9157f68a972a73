// The engine behind the page. This one asks a server for it; each call names a scenario's text and seed, or a run.

async function problemOf(response) {
  let found = {};
  try { found = await response.json(); } catch { /* no problem that we know */ }
  const error = new Error(found.detail || `the server answered ${response.status}`);
  error.line = found.line ?? null;
  return error;
}

async function post(path, body, signal) {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

/** What to begin with: a scenario's name, text and seed. */
export const start = () => get("api/start");

/** The scenarios of the gallery: name and question. */
export const gallery = () => get("api/gallery");

/** The chapters of lessons. */
export const lessons = () => get("api/lessons");

export const galleryText = name => get(`api/gallery/${encodeURIComponent(name)}`);

/** Play a scenario. `onHead` gets what the run is, `onPiece` each piece of it. */
export async function play(text, seed, onHead, onPiece, signal) {
  const response = await post("api/runs", { text, seed }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", isHead = true;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const piece = JSON.parse(line);
      if (piece.problem) throw new Error(piece.problem);
      if (isHead) onHead(piece); else onPiece(piece);
      isHead = false;
    }
  }
}

/** The state of all cores in an instant. */
export const stateAt = (run, at) => get(`api/runs/${run}/state?at=${Math.round(at)}`);

/** The lag of a group at so many instants between two, and its commits meanwhile. */
export const lag = (run, group, from, to, points) =>
  get(`api/runs/${run}/lag?group=${encodeURIComponent(group)}&from=${from}&to=${to}&points=${points}`);

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
