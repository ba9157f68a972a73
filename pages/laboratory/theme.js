// The colours of the page, for drawings: those of the style sheet, and one for each member.

import { inkOnOwner, ownerColour } from "./palette.js";

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

/** The colour of a member by its number, and what can be read on it; of none for a client that never was a member. */
export const ofOwner = number => (number === undefined ? known.soft : ownerColour(number, known.dark));
export const inkOn = number => (number === undefined ? known.card : inkOnOwner(number));

const STATES = {
  Stable: "good", PreparingRebalance: "busy", CompletingRebalance: "accent", Assigning: "accent", Reconciling: "busy", NotReady: "bad",
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
