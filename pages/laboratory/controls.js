// Keys and buttons: each does one thing to the page.

import { make } from "./panel.js";
import { SPEEDS } from "./player.js";

const $ = id => document.getElementById(id);

/** Connect keys and buttons. `page`: the player, the view, recording(), goTo(at), toEnd(), and what the other `buttons` do. */
export function connect({ player, view, recording, goTo, toEnd, buttons }) {
  const jump = direction => goTo(recording().nextRebalance(player.at, direction));
  const step = direction => goTo(recording().nextMoment(player.at, direction));
  const keys = {
    " ": () => player.toggle(), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
    ".": () => goTo(player.at + 1), ",": () => goTo(player.at - 1), n: () => jump(1), p: () => jump(-1),
    Home: () => goTo(0), End: toEnd,
    "+": () => view.zoom(0.5, player.at), "=": () => view.zoom(0.5, player.at), "-": () => view.zoom(2, player.at), 0: () => view.fit(),
    "]": () => player.faster(1), "[": () => player.faster(-1), a: () => view.pan((view.from - view.to) / 4), d: () => view.pan((view.to - view.from) / 4),
    "?": () => $("keys").showModal(),
  };
  document.addEventListener("keydown", event => {
    const inText = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.id !== "slider";
    if (inText || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === " " && /^(BUTTON|SUMMARY|A)$/.test(event.target.tagName)) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  const all = {
    play: keys[" "], next: keys.ArrowRight, back: keys.ArrowLeft, first: keys.Home, last: keys.End, "next-rebalance": keys.n,
    "last-rebalance": keys.p, closer: keys["+"], wider: keys["-"], all: keys[0], help: keys["?"], ...buttons,
  };
  for (const [id, act] of Object.entries(all)) $(id).addEventListener("click", act);
  $("speed").append(...SPEEDS.map(speed => { const option = make("option", "", `${speed}×`); option.value = speed; return option; }));
  $("speed").value = player.speed;
  $("speed").addEventListener("change", () => { player.speed = Number($("speed").value); });
  $("slider").addEventListener("input", () => goTo(Number($("slider").value)));
}
