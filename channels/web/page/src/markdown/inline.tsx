// The text of a block, with styles, code and links, as elements.
import type { ComponentChildren } from "preact";
import { isSafe } from "./link.ts";
import type { Token } from "markdown-it";
import type { Room } from "./room.ts";

export type Part = ComponentChildren;

interface Link {
  to: string;
}

// A Piece is text that has the same styles and the same link throughout.
interface Piece {
  kind: "text" | "code" | "break";
  text: string;
  styles: number;
  link: Link | null;
  written: string; // as it stands in the source, with what precedes it since the last piece
}

const strong = 1;
const em = 2;
const s = 4;

const styleOf = (token: Token): number => ({ strong, em, s })[token.type.replace(/_(open|close)$/, "")] ?? 0;

// inline returns the elements of a text within a block.
export function inline(content: string, tokens: Token[], room: Room): Part[] {
  const pieces = new Pieces(tokens).all;
  return pieces.length > 0 ? nest(pieces, 0, null, room) : [content];
}

// Pieces are the pieces of a text that was parsed.
class Pieces {
  readonly all: Piece[] = [];
  private written = ""; // what stands in the source since the last piece
  private readonly open = new Map<number, number>(); // how many elements of a style are open
  private link: Link | null = null;

  constructor(tokens: Token[]) {
    const links: { to: string; isAuto: boolean; before: number }[] = [];
    for (const token of tokens) {
      if (token.type === "link_open") {
        const isAuto = token.info === "auto" || token.markup === "autolink";
        const to = token.attrGet("href") ?? "";
        links.push({ to, isAuto, before: this.all.length });
        this.link = isSafe(to) ? { to } : null;
        this.written += isAuto ? "" : "[";
      } else if (token.type === "link_close") {
        const link = links.pop();
        if (link) this.endLink(link);
      } else if (token.nesting !== 0) {
        const style = styleOf(token);
        this.open.set(style, (this.open.get(style) ?? 0) + token.nesting);
        this.written += token.markup;
      } else {
        this.addToken(token);
      }
    }
    const last = this.all.at(-1);
    if (last) last.written += this.written;
  }

  // endLink ends a link. If it leads nowhere, its target is shown.
  private endLink({ to, isAuto, before }: { to: string; isAuto: boolean; before: number }): void {
    if (this.link && this.all.length === before) this.add("text", to, "");
    const wasLink = this.link !== null;
    this.link = null;
    if (isAuto) return;
    if (wasLink || to === "") this.written += `](${to})`;
    else this.add("text", ` (${to})`, `](${to})`);
  }

  private addToken(token: Token): void {
    const { type, content, markup } = token;
    if (type === "softbreak" || type === "hardbreak" || (type === "html_inline" && /^<br\s*\/?>$/i.test(content))) {
      this.addBreak(type === "html_inline" ? content : "\n");
    } else if (type === "code_inline" && content.trim() !== "") {
      this.add("code", content, markup + content + markup);
    } else if (type === "code_inline") {
      this.add("text", markup + content + markup, markup + content + markup);
    } else if (type === "image") {
      this.addImage(token);
    } else {
      for (const [n, line] of content.split("\n").entries()) {
        if (n > 0) this.addBreak("\n");
        this.add("text", line, line);
      }
    }
  }

  // addImage adds the description of a picture, with a link to it. It has no styles and no other links, because whoever
  // wrote it could make it look like something else.
  private addImage(token: Token): void {
    const to = token.attrGet("src") ?? "";
    const text = new Pieces(token.children ?? []).all.map((p) => p.text).join("");
    const written = `![${token.content}](${to})`;
    if (this.link) {
      this.add("text", text, written);
    } else if (isSafe(to)) {
      this.link = { to };
      this.add("text", text || to, written);
      this.link = null;
    } else {
      this.add("text", to ? `${text} (${to})` : text, written);
    }
  }

  // addBreak adds the end of a line, which has neither style nor link.
  private addBreak(written: string): void {
    this.all.push({ kind: "break", text: "\n", styles: 0, link: null, written: this.written + written });
    this.written = "";
  }

  private add(kind: "text" | "code", text: string, written: string): void {
    written = this.written + written;
    this.written = "";
    if (text === "") {
      this.written = written;
      return;
    }
    let styles = 0;
    for (const [style, n] of this.open) if (n > 0) styles |= style;
    const last = this.all.at(-1);
    if (kind === "text" && last?.kind === kind && last.styles === styles && last.link === this.link) {
      last.text += text;
      last.written += written;
      return;
    }
    this.all.push({ kind, text, styles, link: this.link, written });
  }
}

// nest returns the elements of pieces. Styles and a link are open around them. Of marks that begin together, the one
// that reaches furthest is outermost.
function nest(pieces: Piece[], styles: number, link: Link | null, room: Room): Part[] {
  const made: Part[] = [];
  let at = 0;
  while (at < pieces.length) {
    const piece = pieces[at] as Piece;
    const isPlain = piece.kind === "text" && (piece.styles & ~styles) === 0 && (piece.link === null || piece.link === link);
    if (isPlain) {
      made.push(piece.text);
      at++;
      continue;
    }
    if (room.left <= 0) {
      made.push(<span class="as-written">{pieces.slice(at).map((p) => p.written).join("")}</span>);
      break;
    }
    room.left--;
    let [end, mark] = [at, 0];
    const find = (m: number, isOn: (p: Piece) => boolean) => {
      let n = at;
      while (n < pieces.length && isOn(pieces[n] as Piece)) n++;
      if (n > end) [end, mark] = [n, m];
    };
    if (piece.link !== null && piece.link !== link) find(0, (p) => p.link === piece.link);
    for (const style of [strong, em, s]) if (piece.styles & ~styles & style) find(style, (p) => (p.styles & style) !== 0);
    if (end === at) {
      made.push(piece.kind === "break" ? <br /> : <code>{piece.text}</code>);
      at++;
      continue;
    }
    const inside = pieces.slice(at, end);
    made.push(mark === 0 ? <a href={piece.link?.to} target="_blank" rel="noopener noreferrer">{nest(inside, styles, piece.link, room)}</a> : styled(mark, nest(inside, styles | mark, link, room)));
    at = end;
  }
  return made;
}

function styled(style: number, inside: Part): Part {
  if (style === strong) return <strong>{inside}</strong>;
  return style === em ? <em>{inside}</em> : <s>{inside}</s>;
}
