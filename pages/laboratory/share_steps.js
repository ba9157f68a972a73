// Steps from event to event of one share-partition.

import { goTo } from "./instant.js";
import { chosenGroup, page } from "./page.js";

/** Go to the next event of a share-partition; backwards with a direction of -1. */
export function stepShare(window, direction) {
  const share = page.run.recording.shares.of(chosenGroup(), window.topic, window.partition);
  const at = share?.nextEvent(page.player.at, direction) ?? null;
  if (at !== null) goTo(at);
}
