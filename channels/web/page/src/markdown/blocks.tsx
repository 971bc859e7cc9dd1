// The blocks of a text, such as paragraphs, lists and tables, as elements.
import { Code, elementsOfCode, Rest } from "./code.tsx";
import { inline, type Part } from "./inline.tsx";
import type { Token } from "markdown-it";
import { parse } from "./parser.ts";
import type { Room } from "./room.ts";

// A Block is a block that is in no other.
export interface Block {
  part: Part;
  at: number; // the number of its first line
  elements: number; // about how many it has
}

// blocksOf returns the blocks of a text, as far as there is room for them, and then the rest as it was written.
export function blocksOf(text: string, room: Room): Block[] {
  const reader = new Reader(text, room);
  const made: Block[] = [];
  for (let at = reader.line(); at !== null; at = reader.line()) {
    const before = room.left;
    if (before > 0) made.push({ part: reader.outermost(at), at, elements: before - room.left });
    else reader.rest = at;
    if (reader.rest === null) continue;
    made.push({ part: <Rest text={reader.written(reader.rest)} />, at: reader.rest, elements: 1 });
    break;
  }
  return made;
}

// elementsAroundRows is how many elements a table has besides itself, its rows and their cells.
const elementsAroundRows = 3;

// A Reader turns the tokens of a text into elements, one after the other.
class Reader {
  rest: number | null = null; // the number of the first line for which there was no room
  private at = 0;
  private readonly lines: string[];
  private readonly tokens: Token[];

  constructor(text: string, private readonly room: Room) {
    this.lines = text.split("\n");
    this.tokens = parse(text);
  }

  // line returns the number of the next block's first line; null at the end.
  line(): number | null {
    return this.tokens[this.at]?.map?.[0] ?? null;
  }

  written(from: number, to?: number): string {
    return this.lines.slice(from, to).join("\n");
  }

  // outermost returns the element of the next block. If nothing of it would be seen, it stays as it was written.
  outermost(first: number): Part {
    const token = this.tokens[this.at];
    const inside = this.tokens[this.at + 1];
    const isEmpty = token?.type === "fence" ? token.content.trim() === "" : token?.type === "heading_open" ? inside?.content === "" : token?.type === "blockquote_open" && inside?.nesting === -1;
    const part = this.block();
    return isEmpty ? literal(this.written(first, this.line() ?? undefined)) : part;
  }

  private next(): Token {
    const token = this.tokens[this.at++];
    if (!token) throw new Error("the text ends within a block");
    return token;
  }

  // inline reads the text of a block, and the token that ends the block.
  private inline(): Part {
    const { content, children } = this.next();
    this.at++;
    return inline(content, children ?? [], this.room);
  }

  private block(): Part {
    const token = this.next();
    this.room.left--;
    switch (token.type) {
      case "heading_open":
        return headingOf(Number(token.tag.slice(1)), this.inline());
      case "fence":
        this.room.left -= elementsOfCode - 1;
        return <Code text={token.content.replace(/\n$/, "")} language={token.info.trim().split(/\s/)[0] ?? ""} />;
      case "code_block":
        this.room.left -= elementsOfCode - 1;
        return <Code text={token.content.trimEnd()} />;
      case "hr":
        return <hr />;
      case "blockquote_open":
        return <blockquote>{this.blocksIn(token)}</blockquote>;
      case "bullet_list_open":
        return <ul>{this.blocksIn(token)}</ul>;
      case "ordered_list_open":
        return <ol start={Number(token.attrGet("start") ?? 1)}>{this.blocksIn(token)}</ol>;
      case "list_item_open":
        return this.item(token);
      case "table_open":
        return this.table(token);
      case "html_block":
        return literal(token.content);
      default:
        return token.hidden ? this.inline() : <p>{this.inline()}</p>;
    }
  }

  // blocksIn returns the elements of the blocks in another one, as far as there is room for them.
  private blocksIn(open: Token): Part[] {
    const made: Part[] = [];
    for (;;) {
      const token = this.tokens[this.at];
      if (!token || (token.nesting === -1 && token.level === open.level)) break;
      if (this.room.left <= 0 && made.length > 0) this.rest ??= this.line();
      if (this.rest === null) made.push(this.block());
      else this.at++;
    }
    this.at++;
    return made;
  }

  private item(open: Token): Part {
    const text = this.tokens[this.at]?.type === "paragraph_open" ? this.tokens[this.at + 1] : undefined;
    const box = /^\[([ xX])\]\s/.exec(text?.content ?? "")?.[1];
    const first = text?.children?.[0];
    if (box && first?.type === "text") first.content = (box === " " ? "☐ " : "☑ ") + first.content.slice(4);
    return <li>{this.blocksIn(open)}</li>;
  }

  // widthOfRow returns how many cells the next row has, and so all rows of its table.
  private widthOfRow(): number {
    let width = 0;
    for (let n = this.at; n < this.tokens.length && this.tokens[n]?.type !== "tr_close"; n++) if (this.tokens[n]?.type === "inline") width++;
    return width;
  }

  // table returns a table, as far as there is room for its rows.
  private table(open: Token): Part {
    this.room.left -= elementsAroundRows;
    const width = this.widthOfRow();
    if (width > this.room.left) this.rest ??= open.map?.[0] ?? null;
    const rows: Part[][] = [];
    let cells: Part[] = [];
    for (;;) {
      const token = this.next();
      if (token.nesting === -1 && token.level === open.level) break;
      if (token.type === "tr_open") {
        if (this.room.left < width) this.rest ??= token.map?.[0] ?? null;
        cells = [];
        this.room.left--;
        if (this.rest === null) rows.push(cells);
      }
      if (this.rest !== null || token.type !== "inline") continue;
      this.room.left--;
      cells.push(inline(token.content, token.children ?? [], this.room));
    }
    const [head, ...others] = rows;
    if (!head) return null;
    return (
      <div class="table" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead><tr>{head.map((cell) => <th scope="col">{cell}</th>)}</tr></thead>
          <tbody>{others.map((row) => <tr>{row.map((cell) => <td>{cell}</td>)}</tr>)}</tbody>
        </table>
      </div>
    );
  }
}

// literal returns the element of lines that stay as they were written.
const literal = (text: string): Part => <p class="as-written">{text.trimEnd()}</p>;

// headingOf returns a heading of a level. The page itself uses the first levels.
function headingOf(level: number, text: Part): Part {
  if (level === 1) return <h3 class="large">{text}</h3>;
  return level === 2 ? <h3>{text}</h3> : <h4>{text}</h4>;
}
