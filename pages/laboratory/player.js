// The clock of the page: which instant is shown, whether it runs, and how fast.

export const SPEEDS = [1, 2, 5, 10, 30, 60, 120, 300, 1000];

export class Player {
  constructor() {
    this.at = 0;
    this.speed = 30;
    this.playing = false;
    this.limit = () => 0;
    this.isGrowing = () => false;
    this.onMove = () => {};
    this.onToggle = () => {};
    this.last = 0;
  }

  go(at) {
    this.at = Math.max(0, Math.min(this.limit(), Math.round(at)));
    this.onMove(this.at);
  }

  toggle(playing = !this.playing) {
    if (playing && this.at >= this.limit() && !this.isGrowing()) this.go(0);
    this.playing = playing;
    this.last = performance.now();
    this.exact = this.at;
    if (playing) requestAnimationFrame(now => this.frame(now));
    this.onToggle(playing);
  }

  frame(now) {
    if (!this.playing) return;
    // A page in the background gets no frames: what it missed is not made up for.
    // The time of a frame may be earlier than the click that began to play.
    const passed = Math.max(0, Math.min(100, now - this.last));
    this.last = now;
    this.exact = Math.floor(this.exact ?? this.at) === this.at ? (this.exact ?? this.at) : this.at;
    this.exact += passed * this.speed;
    if (this.exact >= this.limit()) {
      if (!this.isGrowing()) { this.go(this.limit()); this.toggle(false); return; }
      this.exact = this.limit();
    }
    const before = this.at;
    this.at = Math.floor(this.exact);
    if (this.at !== before) this.onMove(this.at);
    requestAnimationFrame(next => this.frame(next));
  }

  faster(steps) {
    const index = SPEEDS.indexOf(this.speed) + steps;
    this.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, index))];
    this.onToggle(this.playing);
  }
}
