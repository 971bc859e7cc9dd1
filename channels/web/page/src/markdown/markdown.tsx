// Markdown as elements. Nothing that models and tools write becomes HTML. Unknown syntax stays as it was written.
import { Component, type JSX } from "preact";
import { type Block, blocksOf } from "./blocks.tsx";
import type { Part } from "./inline.tsx";

// mostElements is about how many elements a text may become. The rest stays as it was written: a page with very many
// elements doesn't act for seconds.
const mostElements = 4000;

// Markdown shows a text. It parses the text again only when it changed, and only the end of a text that grows, as
// an answer does while the model writes it.
//
// Its blocks are in sections of a few blocks each. A section whose blocks are settled is neither compared nor laid out
// again, so a long answer grows as fast as a short one.
export class Markdown extends Component<{ text: string }> {
  // The beginning of the text that was parsed before, and its blocks. It ends before the last two blocks: whatever
  // follows can change only these, as a number becomes the next item of a list above it.
  #settled = "";
  #full: Part[][] = []; // sections whose blocks are all settled
  #parts: Part[] = []; // the settled blocks after these
  #elements = 0; // about how many the settled blocks are

  override shouldComponentUpdate(next: { text: string }): boolean {
    return next.text !== this.props.text;
  }

  override render(): JSX.Element {
    const text = this.props.text.replace(/\r\n?/g, "\n");
    if (!text.startsWith(this.#settled)) {
      this.#settled = "";
      this.#full = [];
      this.#parts = [];
      this.#elements = 0;
    }
    const growing = text.slice(this.#settled.length);
    const found = blocksOf(growing, { left: mostElements - this.#elements });
    const open = found.at(-2);
    if (open && open.at > 0) {
      this.#settled += growing.split("\n").slice(0, open.at).join("\n") + "\n";
      for (const b of found.splice(0, found.length - 2)) this.#settle(b);
    }
    const last = sectionsOf([...this.#parts, ...found.map((b) => b.part)]);
    return (
      <div class="markdown">
        {[...this.#full, ...last].map((parts, n) => <Section key={n} parts={parts} />)}
      </div>
    );
  }

  #settle(b: Block): void {
    this.#elements += b.elements;
    this.#parts.push(b.part);
    if (this.#parts.length < blocksOfSection) return;
    this.#full.push(this.#parts);
    this.#parts = [];
  }
}

// blocksOfSection is how many blocks a section has. Only the last one has fewer.
const blocksOfSection = 12;

function sectionsOf(parts: Part[]): Part[][] {
  const all: Part[][] = [];
  for (let n = 0; n < parts.length; n += blocksOfSection) all.push(parts.slice(n, n + blocksOfSection));
  return all;
}

// A Section is drawn again only when its blocks changed.
class Section extends Component<{ parts: Part[] }> {
  override shouldComponentUpdate(next: { parts: Part[] }): boolean {
    return next.parts !== this.props.parts;
  }

  override render(): JSX.Element {
    return <div class="section">{this.props.parts}</div>;
  }
}
