// A scenario, its seed and an instant as the fragment of an address: deflated, then base64 for addresses.

async function through(bytes, stream) {
  const parts = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(parts).arrayBuffer());
}

export async function pack(shared) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return "s=" + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const MOST = 4_000_000;

/** What a fragment holds, or null where it holds no scenario. */
export async function unpack(fragment) {
  const found = /^#?s=([\w-]+)$/.exec(fragment);
  if (!found || found[1].length > MOST) return null;
  try {
    const text = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await through(Uint8Array.from(text, each => each.charCodeAt(0)), new DecompressionStream("deflate-raw"));
    const shared = JSON.parse(new TextDecoder().decode(bytes));
    return typeof shared.text === "string" ? shared : null;
  } catch {
    return null;
  }
}

/** Save a text or a drawing as a file. */
export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
