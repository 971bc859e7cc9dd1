// Which turns of a conversation are drawn. If all turns of a snapshot were drawn at once, the page couldn't act meanwhile.
// So the newest turns are drawn first, and the older ones when the browser has nothing else to do.
import type { Turn } from "./log.ts";

// How much is drawn at first, and how much at a time later: see weightOf.
const first = 40;
const further = 20;

export class Drawn {
  private waiting = new Set<string>(); // the ids of the turns that are yet to be drawn
  private goesOn = false; // whether more will be drawn soon

  // changed is called when there is more to draw.
  constructor(
    private readonly turns: () => Turn[],
    private readonly changed: () => void,
    private readonly left: AbortSignal,
  ) {}

  // all returns the turns that are drawn, in order.
  all(): Turn[] {
    return this.waiting.size === 0 ? this.turns() : this.turns().filter((t) => !this.waiting.has(t.id));
  }

  // replace is called after a snapshot has replaced the turns. Turns that were drawn stay drawn. known contains the ids
  // of the turns before the snapshot.
  replace(known: Set<string>): void {
    const drawn = (t: Turn) => known.has(t.id) && !this.waiting.has(t.id);
    this.waiting = new Set(this.turns().filter((t) => !drawn(t)).map((t) => t.id));
    this.drawMore(first);
  }

  // drawMore draws the newest of the waiting turns, up to about this weight, and arranges for the others to be drawn later.
  private drawMore(weight: number): void {
    const waiting = this.turns().filter((t) => this.waiting.has(t.id));
    while (weight > 0) {
      const t = waiting.pop();
      if (!t) break;
      this.waiting.delete(t.id);
      weight -= weightOf(t);
    }
    if (waiting.length === 0) this.waiting.clear();
    else if (!this.goesOn) this.goOn();
  }

  private goOn(): void {
    this.goesOn = true;
    requestAnimationFrame(() => whenIdle(() => {
      this.goesOn = false;
      if (this.left.aborted) return;
      this.drawMore(further);
      this.changed();
    }));
  }
}

// weightOf estimates how much work it is to draw a turn: as much as this many blocks with short texts.
function weightOf(t: Turn): number {
  return t.blocks.reduce((sum, b) => sum + 1 + b.text.length / 1000, 1);
}

// whenIdle calls f once the browser has nothing else to do, or after a moment.
export function whenIdle(f: () => void): void {
  if ("requestIdleCallback" in window) requestIdleCallback(f, { timeout: moment });
  else setTimeout(f, moment);
}

const moment = 250; // milliseconds
