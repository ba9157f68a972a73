// The states of a group and the moves between them, with the one it is in. The moves are the coordinator's own tables.

import { GROUP_STATES } from "./group_states.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 72, TOP = 24, ACROSS = 162, DOWN = 68;

const make = (name, attributes, text) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

const widthOf = state => (state.length > 12 ? 138 : 88);

function edge([x1, y1], [x2, y2], from, to, isBoth) {
  const dx = x2 - x1, dy = y2 - y1, length = Math.hypot(dx, dy);
  const shift = isBoth ? 7 : 0, ox = -dy / length * shift, oy = dx / length * shift;
  const clip = (w, state) => Math.min(Math.abs(dx) < 1 ? Infinity : (widthOf(state) / 2 + 3) / Math.abs(dx / length), Math.abs(dy) < 1 ? Infinity : w / Math.abs(dy / length));
  const a = clip(16, from), b = clip(16, to);
  return { x1: x1 + dx / length * a + ox, y1: y1 + dy / length * a + oy, x2: x2 - dx / length * b + ox, y2: y2 - dy / length * b + oy };
}

/** Where five states are drawn: as a ring, so that no move passes behind another state. */
const RING = [[54, 92], [150, 24], [298, 52], [298, 132], [150, 160]];

/** Where each state is drawn: clockwise from the top left, in two rows. */
function placesOf(states) {
  if (states.length === RING.length) return new Map(states.map((state, index) => [state, RING[index]]));
  const columns = states.length < 3 ? states.length : Math.ceil(states.length / 2);
  return new Map(states.map((state, index) => {
    const isUpper = index < columns;
    const column = isUpper ? index : 2 * columns - 1 - index;
    return [state, [LEFT + ACROSS * column, isUpper ? TOP : TOP + DOWN]];
  }));
}

/** The diagram for a group of a kind. */
export function stateDiagram(state, previous, kind) {
  const { states, moves } = GROUP_STATES[kind], places = placesOf(states);
  const [width, height] = [0, 1].map(axis => Math.max(...[...places.values()].map(each => each[axis])) + (axis ? TOP : states.length === RING.length ? 54 : LEFT));
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, class: "diagram", role: "img", "aria-label": `State of the group: ${state || "not known"}` });
  const defs = make("defs", {});
  const marker = make("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  marker.append(make("path", { d: "M0 0L8 4L0 8z" }));
  defs.append(marker);
  svg.append(defs);
  for (const [from, to] of moves) {
    const isBoth = moves.some(each => each[0] === to && each[1] === from);
    const taken = from === previous && to === state;
    svg.append(make("line", { ...edge(places.get(from), places.get(to), from, to, isBoth), class: taken ? "move taken" : "move", "marker-end": "url(#tip)" }));
  }
  for (const [name, [x, y]] of places) {
    const width = widthOf(name);
    const group = make("g", { class: `node ${name}${name === state ? " now" : ""}` });
    group.append(make("rect", { x: x - width / 2, y: y - 14, width, height: 28, rx: 14 }));
    group.append(make("text", { x, y: y + 4, "text-anchor": "middle" }, name));
    svg.append(group);
  }
  return svg;
}
