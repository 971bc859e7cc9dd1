// Which parts of a long conversation have elements. Elements cost the page time even where nobody sees them: whenever the
// browser collects garbage, it looks at all of them. So of many parts, only those that somebody was near last have them.

// A part has elements until clear is called, which has the height that they had, and again once fill is called.
interface Part {
  fill: () => void;
  clear: (height: number) => void;
  near: boolean; // whether it is on the screen, or almost
  full: boolean; // whether it has elements
}

// most is how many parts have elements, unless more of them are on the screen or in use.
const most = 10;

// around is what counts as almost on the screen, before and after it, in heights of it.
const around = "200%";

export class Nearby {
  private readonly parts = new Map<Element, Part>(); // those that were near last are at the end
  private watcher: IntersectionObserver | undefined;

  // add watches a part that has elements. They are in an element that stays.
  add(at: Element, fill: () => void, clear: (height: number) => void): void {
    this.watcher ??= new IntersectionObserver((news) => this.hear(news), { root: at.closest(".scroll"), rootMargin: `${around} 0px` });
    this.parts.set(at, { fill, clear, near: true, full: true });
    this.watcher.observe(at);
  }

  leave(at: Element): void {
    this.watcher?.unobserve(at);
    this.parts.delete(at);
  }

  private hear(news: IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of news) {
      const part = this.parts.get(target);
      if (!part) continue;
      if (part.near || isIntersecting) {
        this.parts.delete(target);
        this.parts.set(target, part);
      }
      part.near = isIntersecting;
      if (part.near && !part.full) {
        part.full = true;
        part.fill();
      }
    }
    this.clear();
  }

  private clear(): void {
    let more = [...this.parts.values()].filter((p) => p.full).length - most;
    for (const [at, part] of this.parts) {
      if (more <= 0) return;
      if (!part.full || part.near || isInUse(at)) continue;
      part.full = false;
      part.clear(at.getBoundingClientRect().height);
      more--;
    }
  }
}

// isInUse reports whether someone has opened, selected or focused something in an element.
function isInUse(at: Element): boolean {
  const selected = getSelection();
  return at.contains(document.activeElement) || at.querySelector("details[open]") !== null || (selected !== null && !selected.isCollapsed && selected.containsNode(at, true));
}
