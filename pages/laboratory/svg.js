// A pen that draws what a canvas draws, as SVG: the part of the canvas' interface that the drawings use.

const escaped = text => String(text).replace(/[&<>"]/g, each => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[each]);
const round = value => Math.round(value * 10) / 10;

export class SvgPen {
  /** `ruler` is a canvas' context: it measures texts. */
  constructor(width, height, ruler) {
    Object.assign(this, { width, height, ruler, parts: [], hatches: new Map(), clips: 0, open: 0, path: "", box: null });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "11px sans-serif", textAlign: "left", dash: [] });
    this.shift = 0;
  }

  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }
  setLineDash(dash) { this.dash = dash; }
  clearRect() {}

  /** Diagonal lines on a ground. */
  hatch(ink, ground, size) {
    const key = `${ink}|${ground}|${size}`;
    if (!this.hatches.has(key)) this.hatches.set(key, { id: `h${this.hatches.size}`, ink, ground, size });
    return `url(#${this.hatches.get(key).id})`;
  }

  get alpha() { return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""; }
  get line() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}${this.alpha}`;
  }

  fillRect(x, y, width, height) {
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${this.fillStyle}"${this.alpha}/>`);
  }
  strokeRect(x, y, width, height) {
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" ${this.line}/>`);
  }
  beginPath() { this.path = ""; this.box = null; }
  moveTo(x, y) { this.path += `M${round(x)} ${round(y)}`; }
  lineTo(x, y) { this.path += `L${round(x)} ${round(y)}`; }
  arc(x, y, r) { this.path += `M${round(x - r)} ${round(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; }
  rect(x, y, width, height) { this.box = [x, y, width, height]; }
  stroke() { this.parts.push(`<path d="${this.path}" ${this.line}/>`); }
  fill() { this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha}/>`); }

  fillText(text, x, y) {
    const size = /(\d+)px/.exec(this.font)[1], bold = this.font.startsWith("600") ? ' font-weight="600"' : "";
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign] || "start";
    this.parts.push(`<text x="${round(x)}" y="${round(y + size * 0.35)}" font-size="${size}"${bold} text-anchor="${anchor}" fill="${this.fillStyle}"${this.alpha}>${escaped(text)}</text>`);
  }

  save() { this.open++; this.parts.push(null); }
  clip() {
    const [x, y, width, height] = this.box, id = `c${this.clips++}`;
    const group = `<clipPath id="${id}"><rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"/></clipPath><g clip-path="url(#${id})">`;
    this.parts[this.parts.lastIndexOf(null)] = group;
  }
  restore() {
    const index = this.parts.lastIndexOf(null);
    if (index >= 0 && index > this.parts.findLastIndex(each => each && each.includes("<g clip"))) this.parts[index] = "<g>";
    this.open--;
    this.parts.push("</g>");
  }

  /** Draw what comes next so much further down. */
  begin(top) { this.parts.push(`<g transform="translate(0 ${top})">`); }
  end() { this.parts.push("</g>"); }

  /** Let time pass in the picture: what comes later than a line that moves from one x to another is hidden. */
  play(from, to, seconds, ground, ink) {
    const move = (name, begin, end) => `<animate attributeName="${name}" from="${round(begin)}" to="${round(end)}" dur="${seconds}s" repeatCount="indefinite"/>`;
    this.parts.push(`<rect x="${round(from)}" y="0" width="${round(to - from)}" height="${this.height}" fill="${ground}">${move("x", from, to)}${move("width", to - from, 0)}</rect>`);
    this.parts.push(`<rect x="${round(from)}" y="0" width="1.5" height="${this.height}" fill="${ink}">${move("x", from, to)}</rect>`);
  }

  text(ground) {
    const patterns = [...this.hatches.values()].map(({ id, ink, ground: below, size }) =>
      `<pattern id="${id}" width="${size}" height="${size}" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
      `${below ? `<rect width="${size}" height="${size}" fill="${below}"/>` : ""}<rect width="1.2" height="${size}" fill="${ink}"/></pattern>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${this.height}" width="${this.width}" height="${this.height}" font-family="system-ui, sans-serif">` +
      `<defs>${patterns.join("")}</defs><rect width="100%" height="100%" fill="${ground}"/>${this.parts.join("")}</svg>\n`;
  }
}
