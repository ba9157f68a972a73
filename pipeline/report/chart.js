const DATA = JSON.parse(document.getElementById("data").textContent);
const CAUSES = DATA.causes;
const dark = matchMedia("(prefers-color-scheme: dark)");
// Distinct also without red and green; the same hue a little lighter on dark ground.
const CAUSE_COLOURS = { "join-new": ["#1f77c9", "#5aa9f0"], "leave": ["#7a5bc7", "#a992ee"], "session-expiry": ["#c9362b", "#ff7b6e"],
  "sync-expiry": ["#8c1d40", "#e5739a"], "rejoin-metadata": ["#0f8f8a", "#3cc7c0"], "rejoin-leader": ["#5b8c1a", "#9ccb57"],
  "static-metadata": ["#b8860b", "#e3b64a"], "static-protocol": ["#d46a00", "#ffa04d"], "store-failure": ["#5f6770", "#a2abb5"],
  "over-capacity": ["#3d3d8f", "#9090e8"], "downgrade": ["#5a6b2f", "#a5b873"], "upgrade": ["#2f6b5a", "#73b8a5"],
  "rebalance-expiry": ["#a3422b", "#e08a73"], "did-not-rejoin": ["#7d3c6e", "#cc8abc"], "topic-metadata": ["#2b6f8c", "#74b5d1"],
  "regex-resolved": ["#4c7d8c", "#92c0ce"], "assignor-changed": ["#8c6d1f", "#d1b265"], "partitions-initialized": ["#5f7f3a", "#a9c48a"], "settings-changed": ["#8a5a83", "#c79fc1"], "failover": ["#444a52", "#b4bcc6"], "unknown": ["#8a8f96", "#8a939d"] };
// Only rebalances of consumer groups say how many partitions were given up; what they lead to is an epoch.
const generationOf = mark => `${mark[10] === null ? "generation" : "epoch"} ${mark[8]}`;
const two = n => String(n).padStart(2, "0");
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const causeColour = cause => (CAUSE_COLOURS[cause] || CAUSE_COLOURS.unknown)[dark.matches ? 1 : 0];
const length = ms => ms < 1000 ? `${Math.round(ms)} ms` : ms < 120000 ? `${+(ms / 1000).toFixed(1)} s` : ms < 7200000 ? `${+(ms / 60000).toFixed(1)} min` : `${+(ms / 3600000).toFixed(1)} h`;
const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
// Logs without times: instants from here on are numbers of lines, and no length is known.
const UNTIMED_FROM = 3e11;
function clock(ms, simulated, exact, day) {
  if (simulated && ms >= UNTIMED_FROM) return `line ${(ms - UNTIMED_FROM).toLocaleString("en")}`;
  const date = new Date(ms), rest = exact ? "." + String(date.getUTCMilliseconds()).padStart(3, "0") : "";
  if (simulated) {
    const s = Math.floor(ms / 1000), days = Math.floor(s / 86400);
    return `${days ? days + "d " : ""}${Math.floor(s / 3600) % 24}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}${rest}`;
  }
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}${rest}`;
  return day ? `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${time}` : time;
}
// LEB128 in base64, four numbers an interval: rows further, owner, zigzag of start less the end before, length.
function decode(text, begin) {
  const raw = atob(text), row = [], owner = [], start = [], end = [];
  let at = 0, r = 0, before = begin, fresh = true;
  const next = () => { let value = 0, scale = 1, byte; do { byte = raw.charCodeAt(at++); value += (byte & 127) * scale; scale *= 128; } while (byte & 128); return value; };
  while (at < raw.length) {
    const step = next(), who = next(), zigzag = next(), long = next();
    if (step || fresh) { r += step; before = begin; fresh = false; }
    const from = before + (zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2);
    row.push(r); owner.push(who); start.push(from); end.push(before = from + long);
  }
  const first = [];
  for (let index = 0, next_row = 0; next_row <= (row.length ? row[row.length - 1] + 1 : 0); next_row++) {
    while (index < row.length && row[index] < next_row) index++;
    first.push(index);
  }
  return { row, owner: Uint32Array.from(owner), start: Float64Array.from(start), end: Float64Array.from(end), first };
}
const NICE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5];

class Chart {
  constructor(box, group) {
    this.box = box; this.group = group; this.from = group.from; this.to = group.to; this.drag = null; this.cross = null;
    this.canvas = make("canvas"); this.over = make("canvas"); this.tip = make("div", "tip");
    this.canvas.tabIndex = 0; this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${group.name}: ${group.label}`);
    this.held = decode(group.held, group.from);
    this.simulated = group.simulated;
    this.length = group.simulated && group.from >= UNTIMED_FROM ? lines => count(lines, "line") : length;
    box.append(this.canvas, this.over, this.tip);
    this.stopped = group.stops; this.most = this.stopped.reduce((most, [, all]) => Math.max(most, all), 0);
    this.listen();
  }
  // Panels from top to bottom; those of which nothing is known are left out.
  place() {
    const group = this.group, width = this.canvas.clientWidth || 800;
    this.small = width < 620; this.left = this.small ? 74 : 132; this.right = 8; this.width = width;
    this.panels = []; let y = 4;
    const add = (name, title, height) => { this.panels.push({ name, title, y, height }); y += height + 12; };
    add("rebalances", "rebalances", 54);
    if (group.partitions.length) {
      this.rowHeight = Math.min(20, Math.max(240, Math.min(640, group.partitions.length * 12)) / group.partitions.length);
      if (group.partitions.length <= 16) this.rowHeight = 20;
      add("owners", "owner", Math.round(this.rowHeight * group.partitions.length));
    }
    if (!group.partitions.length && group.members.length) {
      this.laneHeight = group.members.length <= 30 ? 20 : Math.max(4, 600 / group.members.length);
      add("members", "member", Math.round(this.laneHeight * group.members.length));
    }
    if (this.stopped.length) add("stopped", "stopped", 44);
    if (group.lag.length > 1) add("lag", this.small ? "lag" : "lag at commits", 56);
    if (group.balance.length) add("balance", "partitions", 44);
    this.bottom = y; this.height = y + 18;
  }
  panel(name) { return this.panels.find(panel => panel.name === name); }
  x(at) { return this.left + (at - this.from) / (this.to - this.from) * (this.width - this.left - this.right); }
  // Both edges on the grid of the screen, so that neighbours meet: no hairline gaps that do not exist.
  edge(at) { return Math.round(this.x(at) * this.ratio) / this.ratio; }
  time(px) { return this.from + (px - this.left) / (this.width - this.left - this.right) * (this.to - this.from); }
  draw() {
    this.ratio = window.devicePixelRatio || 1;
    this.place();
    const { canvas, width, height } = this;
    for (const each of [canvas, this.over]) {
      each.style.height = height + "px";
      each.width = Math.round(width * this.ratio); each.height = Math.round(height * this.ratio);
    }
    const c = this.c = canvas.getContext("2d");
    c.scale(this.ratio, this.ratio);
    this.ink = css("--ink"); this.soft = css("--soft"); this.line = css("--line"); this.none = css("--none"); this.bad = css("--bad"); this.accent = css("--accent");
    for (const panel of this.panels) {
      c.save(); c.beginPath(); c.rect(this.left, 0, width - this.left - this.right, height); c.clip();
      this["draw_" + panel.name](c, panel);
      c.restore();
      c.fillStyle = this.soft; c.font = `${this.small ? 11 : 12}px system-ui, sans-serif`; c.textAlign = "right";
      if (panel.name !== "owners" && panel.name !== "members") c.fillText(panel.title, this.left - 8, panel.y + 12);
    }
    this.axis(c);
    this.annotations(c);
    this.mark();
  }
  // What moves with the pointer has a canvas of its own.
  mark() {
    const c = this.over.getContext("2d");
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    if (this.drag) {
      c.globalAlpha = .18; c.fillStyle = this.accent;
      c.fillRect(Math.min(this.drag.a, this.drag.b), 0, Math.abs(this.drag.b - this.drag.a), this.bottom); c.globalAlpha = 1;
    } else if (this.cross !== null) { c.fillStyle = this.ink; c.globalAlpha = .45; c.fillRect(Math.round(this.cross), 0, 1, this.bottom); c.globalAlpha = 1; }
  }
  axis(c) {
    const every = NICE.find(step => (this.to - this.from) / step <= (this.width - this.left) / 86) || 12096e5;
    c.font = "12px system-ui, sans-serif"; c.textAlign = "center"; c.fillStyle = this.soft;
    const day = every >= 432e5;
    for (let at = Math.ceil(this.from / every) * every; at <= this.to; at += every) {
      const px = this.x(at);
      c.fillRect(Math.round(px), this.bottom - 8, 1, 5);
      const date = new Date(at);
      const text = day && !this.simulated ? `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}${date.getUTCHours() ? " " + two(date.getUTCHours()) + "h" : ""}` : clock(at, this.simulated, every < 1000);
      // A label at the end of the axis stays within the drawing, if the one before leaves room for that.
      const middle = Math.min(px, this.width - c.measureText(text).width / 2 - 2);
      if (px - middle < 20) c.fillText(text, middle, this.height - 6);
    }
  }
  // What happened around the group, such as deployments: dashed lines over all panels.
  annotations(c) {
    c.fillStyle = this.ink; c.globalAlpha = .55;
    for (const [at] of this.group.annotations) {
      if (at < this.from || at > this.to) continue;
      const px = Math.round(this.x(at));
      for (let y = 0; y < this.bottom - 8; y += 6) c.fillRect(px, y, 1, 3);
    }
    c.globalAlpha = 1;
  }
  annotated(px) {
    const near = this.group.annotations.filter(([at]) => Math.abs(this.x(at) - px) <= 4).map(each => each[1].slice(0, 120));
    return near.length ? "\n" + near.slice(0, 3).join("\n") + (near.length > 3 ? `\nand ${near.length - 3} more` : "") : "";
  }
  // Above how many began by cause, below each with its length.
  draw_rebalances(c, panel) {
    const bin = 7, bins = new Map(), base = panel.y + 34;
    for (const mark of this.group.rebalances) {
      if (mark[1] < this.from || mark[0] > this.to) continue;
      const at = Math.floor(this.x(mark[0]) / bin);
      if (!bins.has(at)) bins.set(at, []);
      bins.get(at).push(mark[2]);
    }
    let most = 1;
    for (const causes of bins.values()) most = Math.max(most, causes.length);
    this.perBin = most;
    const unit = Math.min(10, 32 / most);
    for (const [at, causes] of bins) {
      causes.sort((a, b) => a - b);
      causes.forEach((cause, n) => {
        c.fillStyle = causeColour(CAUSES[cause][0]);
        const top = base - (n + 1) * unit;
        c.fillRect(at * bin, top, bin - 1, unit > 3 ? unit - 1 : unit + .4);
      });
    }
    c.fillStyle = this.line; c.fillRect(this.left, base + 1, this.width, 1);
    for (const mark of this.group.rebalances) {
      if (mark[1] < this.from || mark[0] > this.to) continue;
      c.fillStyle = causeColour(CAUSES[mark[2]][0]);
      const from = this.edge(mark[0]);
      c.fillRect(from, base + 5, Math.max(2, this.edge(mark[1]) - from), 13);
    }
  }
  hatch(c) {
    const tile = document.createElement("canvas"); tile.width = tile.height = 6;
    const t = tile.getContext("2d");
    t.fillStyle = this.none; t.fillRect(0, 0, 6, 6);
    t.strokeStyle = css("--hatch"); t.lineWidth = 1.2; t.beginPath();
    t.moveTo(-1, 7); t.lineTo(7, -1); t.moveTo(-4, 4); t.lineTo(4, -4); t.moveTo(2, 10); t.lineTo(10, 2); t.stroke();
    return c.createPattern(tile, "repeat");
  }
  draw_owners(c, panel) {
    const { held } = this, rows = this.group.partitions.length, tall = this.rowHeight, grid = y => Math.round(y * this.ratio) / this.ratio;
    const gap = tall >= 6 ? 1 : 0, colours = this.group.owners.map((_, n) => ownerColour(n, dark.matches)), labels = tall >= 13;
    // By owner, as a change of colour costs more than a rectangle.
    const boxes = colours.map(() => []), texts = [];
    c.fillStyle = this.hatch(c);
    for (let row = 0; row < rows; row++) {
      const top = grid(panel.y + row * tall), below = grid(panel.y + (row + 1) * tall), bottom = Math.max(below - gap, top + 1 / this.ratio);
      const since = Math.max(this.edge(this.group.partitions[row][2]), this.left);
      c.fillRect(since, top, this.width - since, below - top);
      let last = -1;
      for (let n = held.first[row] ?? 0; n < (held.first[row + 1] ?? 0); n++) {
        if (held.end[n] <= this.from) continue;
        if (held.start[n] >= this.to) break;
        const from = Math.max(this.edge(held.start[n]), this.left), to = Math.max(this.edge(held.end[n]), from + 1 / this.ratio);
        if (to <= last) continue;
        last = to;
        boxes[held.owner[n]].push(from, top, to - from, bottom - top);
        if (labels && to - from > 22) texts.push([held.owner[n], from, to, top + (bottom - top) / 2 + 4]);
      }
    }
    boxes.forEach((list, owner) => {
      c.fillStyle = colours[owner];
      for (let n = 0; n < list.length; n += 4) c.fillRect(list[n], list[n + 1], list[n + 2], list[n + 3]);
    });
    c.font = "11px system-ui, sans-serif"; c.textAlign = "left";
    for (const [owner, from, to, y] of texts) {
      const name = this.group.short[owner];
      if (c.measureText(name).width < to - from - 8) { c.fillStyle = inkOnOwner(owner); c.fillText(name, from + 5, y); }
    }
    c.strokeStyle = this.bad; c.lineWidth = 2;
    for (const [row, from, to] of this.group.overlaps) {
      if (to < this.from || from > this.to) continue;
      c.strokeRect(this.edge(from) - 1, panel.y + row * tall, Math.max(3, this.edge(to) - this.edge(from) + 2), Math.max(3, tall - gap));
    }
    for (const mark of this.group.rebalances) {
      if (mark[1] < this.from || mark[0] > this.to || this.group.rebalances.length > 400 && (this.to - this.from) > (this.group.to - this.group.from) / 4) continue;
      const from = this.edge(mark[0]);
      c.fillStyle = causeColour(CAUSES[mark[2]][0]); c.globalAlpha = .8;
      c.fillRect(from, panel.y, 1, panel.height); c.globalAlpha = 1;
    }
    c.restore(); c.save();
    c.font = "12px system-ui, sans-serif"; c.textAlign = "right";
    const skip = Math.max(1, Math.ceil(14 / tall)); let topic = null;
    const many = new Set(this.group.partitions.map(partition => partition[0])).size > 1;
    this.group.partitions.forEach(([name, number], row) => {
      if (row % skip && name === topic || rows - row < skip && skip > 1 && row) return;
      const fresh = name !== topic; topic = name;
      let text = this.small ? (many && fresh ? name.slice(0, 6) + "-" + number : String(number)) : `${name}-${number}`;
      while (text.length > 4 && c.measureText(text).width > this.left - 12) text = text[0] === "…" ? "…" + text.slice(2) : "…" + text.slice(1);
      c.fillStyle = fresh ? this.ink : this.soft;
      c.fillText(text, this.left - 8, panel.y + row * tall + Math.min(tall, 13) / 2 + 4.5);
    });
  }
  // Where owners are not known: who was in the group, and how each session ended.
  draw_members(c, panel) {
    const { group, laneHeight: tall } = this, gap = tall >= 6 ? 2 : 0;
    c.fillStyle = this.none; c.globalAlpha = .5; c.fillRect(this.left, panel.y, this.width, panel.height); c.globalAlpha = 1;
    for (const [row, begin, end, how] of group.sessions) {
      if (end < this.from || begin > this.to) continue;
      const from = this.edge(begin), to = Math.max(this.edge(end), from + 2), top = panel.y + row * tall;
      c.fillStyle = ownerColour(row, dark.matches); c.fillRect(from, top, to - from, tall - gap);
      if (how && how !== "open") { c.fillStyle = how === "left" || how === "replaced" ? this.ink : this.bad; c.fillRect(to - 2, top, 2, tall - gap); }
    }
    for (const mark of group.rebalances) {
      if (mark[1] < this.from || mark[0] > this.to || group.rebalances.length > 400) continue;
      c.fillStyle = causeColour(CAUSES[mark[2]][0]); c.globalAlpha = .8; c.fillRect(this.edge(mark[0]), panel.y, 1, panel.height); c.globalAlpha = 1;
    }
    c.restore(); c.save();
    c.font = "12px system-ui, sans-serif"; c.textAlign = "right"; c.fillStyle = this.ink;
    const skip = Math.max(1, Math.ceil(14 / tall));
    group.members.forEach((name, row) => {
      if (row % skip) return;
      let text = name;
      while (text.length > 4 && c.measureText(text).width > this.left - 12) text = "…" + text.slice(text[0] === "…" ? 2 : 1);
      c.fillText(text, this.left - 8, panel.y + row * tall + Math.min(tall, 15) / 2 + 4.5);
    });
  }
  steps(c, panel, points, most, pick, colour, alpha) {
    const base = panel.y + panel.height;
    c.fillStyle = colour; c.globalAlpha = alpha;
    for (let n = 0; n < points.length; n++) {
      const value = pick(points[n]);
      if (!value) continue;
      const until = n + 1 < points.length ? points[n + 1][0] : this.to;
      if (until < this.from || points[n][0] > this.to) continue;
      const from = this.edge(points[n][0]), high = Math.max(1, value / most * (panel.height - 4));
      c.fillRect(from, base - high, Math.max(1, this.edge(until) - from), high);
    }
    c.globalAlpha = 1;
  }
  frame(c, panel, most, unit) {
    c.fillStyle = this.none; c.globalAlpha = .5; c.fillRect(this.left, panel.y, this.width, panel.height); c.globalAlpha = 1;
    c.restore(); c.save();
    c.fillStyle = this.soft; c.font = "11px system-ui, sans-serif"; c.textAlign = "right";
    c.fillText(`${most.toLocaleString("en")}${unit}`, this.left - 8, panel.y + 26);
    c.beginPath(); c.rect(this.left, 0, this.width - this.left - this.right, this.height); c.clip();
  }
  draw_stopped(c, panel) {
    this.frame(c, panel, this.most, this.small ? "" : this.most === 1 ? " consumer" : " consumers");
    this.steps(c, panel, this.stopped, this.most, point => point[1], causeColour("static-protocol"), .45);
    this.steps(c, panel, this.stopped, this.most, point => point[2], this.bad, .9);
  }
  draw_lag(c, panel) {
    const points = this.group.lag, most = points.reduce((top, point) => Math.max(top, point[1]), 1);
    this.frame(c, panel, most, this.small ? "" : most === 1 ? " record" : " records");
    const base = panel.y + panel.height;
    c.beginPath(); let begun = false;
    points.forEach(([at, value]) => {
      const px = this.x(at), py = base - 1 - value / most * (panel.height - 5);
      if (begun) c.lineTo(px, py); else c.moveTo(px, py);
      begun = true;
    });
    c.strokeStyle = this.accent; c.lineWidth = 1.6; c.lineJoin = "round"; c.stroke();
    c.lineTo(this.x(points[points.length - 1][0]), base); c.lineTo(this.x(points[0][0]), base); c.closePath();
    c.globalAlpha = .14; c.fillStyle = this.accent; c.fill(); c.globalAlpha = 1;
  }
  // Fewest to most partitions of a member, and the mean.
  draw_balance(c, panel) {
    const rows = this.group.balance, most = rows.reduce((top, row) => Math.max(top, row[3]), 1), base = panel.y + panel.height;
    this.frame(c, panel, most, this.small ? "" : " a member");
    const high = value => base - value / most * (panel.height - 4);
    for (const [at, until, least, top, mean] of rows) {
      if (until < this.from || at > this.to) continue;
      const from = this.edge(at), wide = Math.max(1, this.edge(until) - from);
      c.fillStyle = top - least > 1 ? causeColour("static-metadata") : causeColour("rejoin-metadata");
      c.globalAlpha = .35; c.fillRect(from, high(top), wide, Math.max(2, high(least) - high(top))); c.globalAlpha = 1;
      c.fillRect(from, high(mean) - .75, wide, 1.5);
    }
  }
  explain(px, py) {
    const at = Math.round(this.time(px)), near = (this.to - this.from) / (this.width - this.left) * 5, { group } = this;
    const when = (ms, exact = true) => clock(ms, this.simulated, exact, false);
    const lines = [clock(at, this.simulated, true, true)], owners = this.panel("owners");
    if (owners && py >= owners.y && py < owners.y + owners.height) {
      const row = Math.min(group.partitions.length - 1, Math.floor((py - owners.y) / this.rowHeight)), { held } = this;
      const [topic, partition, since] = group.partitions[row];
      let before = Math.max(group.from, since), after = group.to; const who = [];
      for (let n = held.first[row] ?? 0; n < (held.first[row + 1] ?? 0); n++) {
        if (held.start[n] <= at && at < held.end[n]) who.push(`${group.owners[held.owner[n]]} for ${this.length(held.end[n] - held.start[n])}, from ${when(held.start[n])}`);
        else if (held.end[n] <= at) before = Math.max(before, held.end[n]);
        else if (held.start[n] > at) { after = held.start[n]; break; }
      }
      const none = at < since ? `expected to have an owner from ${when(since)} on` : `no owner for ${this.length(after - before)}`;
      lines.push(`${topic}-${partition}: ${who.length ? who.join(" and ") : none}`);
    }
    const members = this.panel("members");
    if (members && py >= members.y && py < members.y + members.height) {
      const row = Math.min(group.members.length - 1, Math.floor((py - members.y) / this.laneHeight));
      const session = group.sessions.find(each => each[0] === row && each[1] <= at && at <= each[2]);
      lines.push(`${group.members[row]}: ${session ? `in the group for ${this.length(session[2] - session[1])}, from ${when(session[1])}; end: ${session[3] || "unknown"}` : "not in the group"}`);
    }
    const marks = group.rebalances.filter(mark => at >= mark[0] - near && at <= mark[1] + near);
    for (const mark of marks.slice(0, 4)) lines.push(this.formatRebalance(mark));
    if (marks.length > 4) lines.push(`and ${count(marks.length - 4, "more rebalance")}: zoom in`);
    const last = list => { let found = null; for (const item of list) { if (item[0] > at) break; found = item; } return found; };
    const stop = last(this.stopped), lag = last(group.lag), balance = last(group.balance);
    if (stop && stop[1]) lines.push(`${count(stop[2], "consumer")} without partitions${stop[1] > stop[2] ? `, ${stop[1] - stop[2]} waiting with some` : ""}`);
    if (lag) lines.push(`lag ${count(lag[1], "record")}, as of the last commits`);
    if (balance) lines.push(balance[2] === balance[3] ? `${count(balance[2], "partition")} each` : `${balance[2]} to ${balance[3]} partitions a member`);
    return lines.join("\n");
  }
  formatRebalance(mark) {
    const [from, to, cause, who, outcome, moved, regained, stopped, , reason, givenUp] = mark;
    const what = [outcome === "completed" ? generationOf(mark) : outcome, CAUSES[cause][1].replace(/a (static )?member/, who < 0 ? "$&" : this.group.names[who])];
    if (reason >= 0) what.push(`“${this.group.reasons[reason]}”`);
    const cost = [this.length(to - from), moved === null ? "" : `${moved} moved`, regained ? `${regained} taken over` : "", givenUp ? `${givenUp} given up` : "", stopped ? `${this.length(stopped)} stopped` : ""];
    return `Rebalance: ${what.join(", ")} (${cost.filter(Boolean).join(", ")})`;
  }
  zoom(from, to) {
    const whole = this.group.to - this.group.from, wanted = Math.max(to - from, Math.min(20, whole));
    const middle = (from + to) / 2;
    this.from = Math.max(this.group.from, Math.min(middle - wanted / 2, this.group.to - wanted));
    this.to = Math.min(this.group.to, this.from + wanted);
    this.draw();
  }
  listen() {
    const { canvas, tip } = this;
    const place = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointermove", event => {
      const [px, py] = place(event);
      if (this.drag) this.drag.b = Math.max(this.left, Math.min(px, this.width - this.right));
      this.cross = px < this.left || px > this.width - this.right ? null : px;
      this.mark();
      if (this.cross === null) { tip.style.display = "none"; return; }
      tip.textContent = this.explain(px, py) + this.annotated(px);
      tip.style.display = "block";
      tip.style.left = Math.max(0, Math.min(px + 14, this.width - tip.offsetWidth - 4)) + "px";
      tip.style.top = (py + 18) + "px";
    });
    canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; this.cross = null; this.mark(); });
    canvas.addEventListener("pointerdown", event => {
      const [px] = place(event);
      if (px >= this.left && event.button === 0) { this.drag = { a: px, b: px }; canvas.setPointerCapture(event.pointerId); }
    });
    const release = event => {
      if (!this.drag) return;
      const { a, b } = this.drag; this.drag = null;
      if (event.type === "pointerup" && Math.abs(a - b) > 8) this.zoom(this.time(Math.min(a, b)), this.time(Math.max(a, b))); else this.mark();
    };
    canvas.addEventListener("pointerup", release); canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("dblclick", () => this.all());
    canvas.addEventListener("keydown", event => {
      const span = this.to - this.from, middle = (this.from + this.to) / 2;
      const moves = { ArrowLeft: -.2, ArrowRight: .2 };
      if (moves[event.key]) this.zoom(this.from + moves[event.key] * span, this.to + moves[event.key] * span);
      else if (event.key === "+" || event.key === "=") this.zoom(middle - span / 4, middle + span / 4);
      else if (event.key === "-") this.zoom(middle - span, middle + span);
      else if (event.key === "0" || event.key === "Escape") this.all();
      else return;
      event.preventDefault();
    });
  }
  all() { this.from = this.group.from; this.to = this.group.to; this.draw(); }
}

