// Requests to the server that the page comes from; what it refuses is an error with its detail, and its line.

export async function problemOf(response) {
  let found = {};
  try { found = await response.json(); } catch { /* no problem that we know */ }
  const error = new Error(found.detail || `the server answered ${response.status}`);
  error.line = found.line ?? null;
  return error;
}

export async function post(path, body, signal) {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

/** Read lines of JSON as they come. */
export async function readLines(response, onLine) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const piece = JSON.parse(line);
      if (piece.problem) throw new Error(piece.problem);
      onLine(piece);
    }
  }
}
