// What all parts of the page share: the run that is shown, the run that is kept beside it, the instant and the time axis.

import { Player } from "./player.js";
import { Run } from "./run.js";
import { SharePanel } from "./share_panel.js";
import { TimeView } from "./time.js";

const $ = id => document.getElementById(id);

export const page = { run: new Run(), kept: null, lessons: null, reading: null, player: new Player(), windows: new SharePanel($("windows")), view: new TimeView() };

/** The group that is chosen. */
export const chosenGroup = () => $("group").value;

/** Stop reading the run before; the signal ends when another run is read. */
export function beginReading() {
  if (page.reading) page.reading.abort();
  page.reading = new AbortController();
  return page.reading.signal;
}
