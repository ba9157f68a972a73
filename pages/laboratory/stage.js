// The stage: the overview, the drawings of both runs, and the instant as a line over them.

import { Lag } from "./lag.js";
import { chosenGroup, page } from "./page.js";
import * as partitions from "./partitions.js";
import { pointer } from "./pointer.js";
import { drawing } from "./saving.js";
import * as source from "./source.js";
import { clock } from "./time.js";
import { fit, Track } from "./track.js";

const $ = id => document.getElementById(id);
const OVERVIEW = 34;
const { player, view } = page;
const overview = $("overview"), overviewContext = overview.getContext("2d");
const track = name => new Track({
  lanes: $(`${name}lanes`), partitions: $(`${name}partitions`), shares: $(`${name}shares`), tasks: $(`${name}tasks`), lag: $(name ? `${name}lag` : "lag-chart"),
}, view, new Lag(source.lag, redraw));
export const above = track(""), below = track("kept-");
let dirty = false;

/** Draw with the next frame. */
export function redraw() {
  if (dirty) return;
  dirty = true;
  requestAnimationFrame(drawAll);
}

/** What is drawn of a run. */
function shows() {
  const mostLag = Math.max(1, above.lag.most, page.kept ? below.lag.most : 0);
  return { requests: $("requests").checked, minor: $("minor").checked, group: $("lag").checked ? chosenGroup() : null, mostLag };
}

function drawAll() {
  dirty = false;
  const width = $("stage").clientWidth;
  if (!width) return;
  view.width = width;
  view.left = width < 560 ? 92 : 150;
  above.run = page.run;
  fit(overview, overviewContext, width, OVERVIEW);
  partitions.drawOverview(overviewContext, page.run.recording, view, OVERVIEW);
  above.draw(shows());
  if (page.kept) {
    below.run = page.kept;
    below.draw(shows());
  }
  $("task-legend").hidden = !above.tasks.height;
  page.windows.draw();
  drawCursor();
}

/** Where the instant is: lines over the drawings, which are not drawn anew for it. */
export function drawCursor() {
  const { recording } = page.run, right = view.width - 10;
  const x = view.x(player.at), isInside = x >= view.left - 1 && x <= view.width - 9;
  for (const id of ["head", "kept-head"]) {
    $(id).style.transform = `translateX(${x}px)`;
    $(id).hidden = !isInside;
  }
  const behind = $("lag").checked ? above.lag.at(player.at) : "";
  $("lag-now").hidden = !$("lag").checked;
  $("lag-now").textContent = behind ? `${chosenGroup()}: ${behind}` : recording.done ? "" : "The lag is drawn when the run is played to its end.";
  const inOverview = view.left + player.at / view.horizon * (right - view.left);
  $("veil").style.left = `${Math.max(view.left, Math.min(view.width, x))}px`;
  $("overveil").style.left = `${inOverview}px`;
  $("overhead").style.transform = `translateX(${inOverview}px)`;
  $("clock").textContent = clock(player.at, true);
  const slider = $("slider");
  slider.max = Math.max(1, recording.until);
  slider.value = player.at;
  slider.setAttribute("aria-valuetext", clock(player.at, true));
}

/** The drawings as SVG; the canvases lend their ruler, so they are drawn anew. */
export function asSvg(animated = false) {
  redraw();
  return drawing({ view, player, above, shows, ruler: overviewContext }, animated);
}

/** Draw anew where the window shows what was not drawn. */
function redrawStale() { if (above.isStale || (page.kept && below.isStale)) redraw(); }

/** Draw what the view, the boxes and the window ask for; the pointer goes to instants. */
export function connectStage(goTo) {
  view.onChange = redraw;
  for (const name of ["minor", "requests", "lag"]) $(name).addEventListener("change", redraw);
  for (const each of [above, below]) for (const canvas of Object.values(each.canvases)) pointer(canvas, view, x => view.time(x), goTo);
  pointer(overview, view, x => (x - view.left) / (view.width - 10 - view.left) * view.horizon, goTo);
  new ResizeObserver(redraw).observe($("stage"));
  new ResizeObserver(redrawStale).observe(document.body);
  addEventListener("scroll", redrawStale, { passive: true });
  addEventListener("resize", redraw);
}
