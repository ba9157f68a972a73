// The colours of the page, for drawings: those of the style sheet, and one for each generation.

let known = {};

/** Read the colours of the style sheet again, after it has changed from light to dark. */
export function refresh() {
  const style = getComputedStyle(document.documentElement);
  known = { dark: matchMedia("(prefers-color-scheme: dark)").matches };
  for (const name of ["ink", "soft", "line", "ground", "card", "none", "hatch", "good", "busy", "bad", "accent"]) {
    known[name] = style.getPropertyValue(`--${name}`).trim();
  }
  known.patterns = new Map();
}

export const colour = name => known[name];

// No red and no amber: those say that something is wrong, or waits.
const HUES = [
  [196, 80, 34], [216, 65, 47], [276, 48, 47], [160, 75, 29], [318, 50, 42], [238, 50, 58], [96, 50, 30], [282, 22, 40],
];

/** The colour of a generation or member epoch. Neighbours differ most. */
export function ofGeneration(generation) {
  if (generation < 0) return known.none;
  const [hue, saturation, light] = HUES[generation % HUES.length];
  return `hsl(${hue} ${known.dark ? saturation - 12 : saturation}% ${light}%)`;
}

const STATES = {
  Stable: "good", PreparingRebalance: "busy", CompletingRebalance: "accent", Assigning: "accent", Reconciling: "busy",
  Empty: "soft", Dead: "bad",
};

/** The colour of a group's state. */
export const ofState = state => known[STATES[state] || "soft"];

/** Diagonal lines on a ground, as a canvas pattern. */
export function hatch(context, ink, ground, size = 6) {
  if (context.hatch) return context.hatch(ink, ground, size);
  const key = `${ink}|${ground}|${size}`;
  if (!known.patterns.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = size * 2;
    const c = tile.getContext("2d");
    if (ground) { c.fillStyle = ground; c.fillRect(0, 0, size * 2, size * 2); }
    c.strokeStyle = ink;
    c.lineWidth = 2;
    c.beginPath();
    for (const shift of [-size * 2, 0, size * 2]) { c.moveTo(shift - 1, size * 2 + 1); c.lineTo(shift + size * 2 + 1, -1); }
    c.stroke();
    const pattern = context.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(0.5));
    known.patterns.set(key, pattern);
  }
  return known.patterns.get(key);
}

refresh();
