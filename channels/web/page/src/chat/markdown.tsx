// Markdown as elements. Nothing that models and tools write becomes HTML. Unknown syntax stays as it was written.
import { Component, type ComponentChildren, type JSX, type TargetedMouseEvent } from "preact";

type Part = ComponentChildren;

// mostElements is about how many elements a text may become. The rest stays as it was written: a page with very many
// elements doesn't act for seconds.
const mostElements = 4000;

// A Room says how many elements a text may still become.
interface Room {
  left: number;
}

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
    const { text } = this.props;
    if (!text.startsWith(this.#settled)) {
      this.#settled = "";
      this.#full = [];
      this.#parts = [];
      this.#elements = 0;
    }
    const lines = text.slice(this.#settled.length).split("\n");
    const found = cut(lines, 0, { left: mostElements - this.#elements });
    const open = found.at(-2);
    if (open && open.at > 0) {
      this.#settled += lines.slice(0, open.at).join("\n") + "\n";
      for (const b of found.splice(0, found.length - 2)) this.#settle(b);
    }
    const growing = sectionsOf([...this.#parts, ...found.map((b) => b.part)]);
    return (
      <div class="markdown">
        {[...this.#full, ...growing].map((parts, n) => <Section key={n} parts={parts} />)}
      </div>
    );
  }

  #settle(b: Cut): void {
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

// deepest is how deep lists and quotes can be nested. Deeper ones stay text.
const deepest = 6;

// blocks turns lines into elements.
function blocks(lines: string[], depth: number, room: Room): Part[] {
  return cut(lines, depth, room).map((b) => b.part);
}

interface Cut {
  part: Part;
  at: number; // the number of its first line
  elements: number; // about how many it has
}

// cut returns the element of each block in lines.
function cut(lines: string[], depth: number, room: Room): Cut[] {
  const made: Cut[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at++;
      continue;
    }
    if (room.left <= 0) {
      made.push({ part: <Rest text={lines.slice(at).join("\n")} told={depth === 0} />, at, elements: 1 });
      break;
    }
    const before = room.left--;
    const [part, next] = fence(lines, at, room) ?? indented(lines, at, room) ?? heading(line, at, room) ?? rule(line, at) ?? table(lines, at, room) ?? quote(lines, at, depth, room) ?? list(lines, at, depth, room) ?? paragraph(lines, at, room);
    made.push({ part, at, elements: before - room.left });
    at = next;
  }
  return made;
}

// Rest shows what is left of a text as it was written.
function Rest({ text, told }: { text: string; told: boolean }): JSX.Element {
  return (
    <>
      {told && <p class="faint">The rest of this text is too long to format.</p>}
      <div class="as-written">{piecesOf(text)}</div>
    </>
  );
}

type Made = [Part, number]; // an element, and the number of the line after it

// elementsOfCode is how many elements a Code has.
const elementsOfCode = 6;

function fence(lines: string[], at: number, room: Room): Made | null {
  const open = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(lines[at] ?? "");
  if (!open) return null;
  const mark = open[1] ?? "```";
  const inside: string[] = [];
  let n = at + 1;
  for (; n < lines.length; n++) {
    const line = lines[n] ?? "";
    const trimmed = line.trim();
    if (trimmed.startsWith(mark) && trimmed.replaceAll(mark[0] ?? "`", "") === "") break;
    inside.push(line);
  }
  room.left -= elementsOfCode;
  return [<Code text={inside.join("\n")} language={(open[2] ?? "").trim().split(/\s/)[0] ?? ""} />, n + 1];
}

// indented turns lines that are indented by four into code.
function indented(lines: string[], at: number, room: Room): Made | null {
  const margin = /^( {4}|\t)/;
  if (!margin.test(lines[at] ?? "")) return null;
  const inside: string[] = [];
  let n = at;
  for (; n < lines.length && (margin.test(lines[n] ?? "") || (lines[n] ?? "").trim() === ""); n++) inside.push((lines[n] ?? "").replace(margin, ""));
  room.left -= elementsOfCode;
  return [<Code text={inside.join("\n").trimEnd()} />, n];
}

// Code shows code or output, with a button to copy it.
export function Code({ text, language = "" }: { text: string; language?: string }): JSX.Element {
  const copy = (e: TargetedMouseEvent<HTMLButtonElement>) => {
    const button = e.currentTarget;
    void navigator.clipboard?.writeText(text).then(() => {
      button.textContent = "Copied";
    });
  };
  return (
    <div class="code">
      <div class="code-bar"><span>{language}</span><button type="button" onClick={copy}>Copy</button></div>
      <pre tabIndex={0}><code>{piecesOf(text)}</code></pre>
    </div>
  );
}

// A piece of a text has so many lines, or more if there would be more than so many pieces.
const linesOfPiece = 100;
const mostPieces = 200;

// piecesOf returns a text in pieces of some lines, if it is long. Of a text that grows, only the last one is then laid
// out again.
function piecesOf(text: string): Part {
  const lines = text.split("\n");
  let size = linesOfPiece;
  if (lines.length <= size) return text;
  while (lines.length > size * mostPieces) size *= 2;
  const pieces: JSX.Element[] = [];
  for (let n = 0; n < lines.length; n += size) {
    const end = n + size < lines.length ? "\n" : "";
    pieces.push(<span key={n} class="piece">{lines.slice(n, n + size).join("\n") + end}</span>);
  }
  return pieces;
}

function heading(line: string, at: number, room: Room): Made | null {
  const found = /^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/.exec(line);
  if (!found) return null;
  return [headingOf(found[1]?.length ?? 1, inline(found[2] ?? "", room)), at + 1];
}

// headingOf returns a heading of a level. The page itself uses the first levels.
function headingOf(level: number, text: Part): Part {
  if (level === 1) return <h3 class="large">{text}</h3>;
  return level === 2 ? <h3>{text}</h3> : <h4>{text}</h4>;
}

function rule(line: string, at: number): Made | null {
  return /^ {0,3}([-*_])\s*(\1\s*){2,}$/.test(line) ? [<hr />, at + 1] : null;
}

const cells = (line: string): string[] => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));

function table(lines: string[], at: number, room: Room): Made | null {
  const head = lines[at] ?? "";
  if (!head.includes("|") || !/^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "")) return null;
  const titles = cells(head);
  const width = titles.length + 1;
  if (titles.length !== cells(lines[at + 1] ?? "").length || width > room.left) return null;
  room.left -= width + 3; // with what is around the rows
  const top = titles.map((t) => <th scope="col">{inline(t, room)}</th>);
  const rows: Part[] = [];
  let n = at + 2;
  for (; n < lines.length && (lines[n] ?? "").includes("|") && width <= room.left; n++) {
    room.left -= width;
    const row = cells(lines[n] ?? "");
    rows.push(<tr>{titles.map((_, i) => <td>{inline(row[i] ?? "", room)}</td>)}</tr>);
  }
  if (n < lines.length && (lines[n] ?? "").includes("|")) room.left = 0; // there is no room for the next row
  const shown = (
    <div class="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead><tr>{top}</tr></thead>
        <tbody>{rows}</tbody>
      </table>
    </div>
  );
  return [shown, n];
}

function quote(lines: string[], at: number, depth: number, room: Room): Made | null {
  if (depth >= deepest || !/^ {0,3}>/.test(lines[at] ?? "")) return null;
  const inside: string[] = [];
  let n = at;
  for (; n < lines.length && /^ {0,3}>/.test(lines[n] ?? ""); n++) inside.push((lines[n] ?? "").replace(/^ {0,3}> ?/, ""));
  return [<blockquote>{blocks(inside, depth + 1, room)}</blockquote>, n];
}

const bullet = /^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/;

// kindOf returns what the items of a list share: their mark, or the sign after their numbers.
const kindOf = (mark: string): string => mark.slice(-1);

const indentOf = (line: string): number => line.length - line.trimStart().length;

function list(lines: string[], at: number, depth: number, room: Room): Made | null {
  const first = bullet.exec(lines[at] ?? "");
  if (!first || depth >= deepest) return null;
  const margin = (first[1] ?? "").length;
  const mark = first[2] ?? "";
  const items: { lines: string[]; at: number }[] = [];
  let loose = false; // whether it contains empty lines
  let n = at;
  let width = 0; // where the text of the current item begins
  while (n < lines.length) {
    const line = lines[n] ?? "";
    const found = bullet.exec(line);
    const next = found !== null && indentOf(line) < margin + 2 && indentOf(line) >= margin;
    if (line.trim() === "") {
      let behind = n + 1;
      while (behind < lines.length && (lines[behind] ?? "").trim() === "") behind++;
      const after = lines[behind] ?? "";
      const goesOn = bullet.exec(after);
      const sameList = goesOn !== null && indentOf(after) >= margin && kindOf(goesOn[2] ?? "") === kindOf(mark);
      if (behind === lines.length || !(sameList || indentOf(after) >= width)) break;
      loose ||= indentOf(after) < width + 2;
      items.at(-1)?.lines.push("");
      n = behind;
    } else if (next) {
      if (kindOf(found[2] ?? "") !== kindOf(mark)) break;
      width = indentOf(line) + (found[2] ?? "").length + 1;
      items.push({ lines: [found[3] ?? ""], at: n });
      n++;
    } else if (indentOf(line) > margin) {
      items.at(-1)?.lines.push(line.slice(Math.min(indentOf(line), width)));
      n++;
    } else {
      break;
    }
  }
  const shown: Part[] = [];
  for (const i of items) {
    if (room.left <= 0 && shown.length > 0) {
      n = i.at;
      break;
    }
    room.left--;
    shown.push(<li>{loose ? blocks(i.lines, depth + 1, room) : tight(i.lines, depth, room)}</li>);
  }
  return [/\d/.test(mark) ? <ol start={Number.parseInt(mark, 10)}>{shown}</ol> : <ul>{shown}</ul>, n];
}

// beginsBlock finds a line that is no text of its own, but begins a block of another kind.
const beginsBlock = /^(`{3,}|~{3,}|>|#{1,6}\s|[-*+]\s|\d{1,9}[.)]\s)/;

// tight returns an item's elements, without a paragraph around its first lines.
function tight(lines: string[], depth: number, room: Room): Part {
  const [first = "", ...rest] = lines;
  if (beginsBlock.test(first) && depth + 1 < deepest) return blocks(lines, depth + 1, room);
  const task = /^\[([ xX])\]\s+(.*)$/.exec(first);
  const text = [task ? (task[2] ?? "") : first];
  while (rest.length > 0 && (rest[0] ?? "").trim() !== "" && !bullet.test(rest[0] ?? "") && !/^ {0,3}(```|~~~|>|#)/.test(rest[0] ?? "")) text.push(rest.shift() ?? "");
  const box = task ? (task[1] === " " ? "☐ " : "☑ ") : null;
  return [box, inline(text.join("\n"), room), rest.some((l) => l.trim()) ? blocks(rest, depth + 1, room) : null];
}

// interrupts finds a line that ends the paragraph above it. A number at the beginning of a line is part of a sentence, unless
// a list begins with it.
const interrupts = /^ {0,3}(`{3,}|~{3,}|#{1,6}\s|>|[-*+]\s|1[.)]\s)/;

function paragraph(lines: string[], at: number, room: Room): Made {
  const inside: string[] = [];
  let n = at;
  for (; n < lines.length; n++) {
    const line = lines[n] ?? "";
    const under = n > at ? /^ {0,3}(=+|-{2,})\s*$/.exec(line)?.[1] : undefined; // the lines above are a heading; a single - may become an item
    if (under) return [headingOf(under.startsWith("=") ? 1 : 2, inline(inside.join("\n"), room)), n + 1];
    if (line.trim() === "" || (n > at && (interrupts.test(line) || rule(line, n)))) break;
    inside.push(line);
  }
  return [<p>{inline(inside.join("\n"), room)}</p>, n];
}

// What a line can contain besides plain text, and the characters with which each can begin. The first match counts.
const spans: { first: string; at: RegExp; make: (m: RegExpExecArray, room: Room) => Part }[] = [
  { first: "\\", at: /^\\([!-/:-@[-`{-~])/, make: (m) => m[1] },
  { first: "`", at: /^(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/, make: (m) => <code>{(m[2] ?? "").replace(/^ (.*) $/, "$1")}</code> },
  { first: "![", at: /^!?\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/, make: (m, room) => link(m[2] ?? "", inline(m[1] ?? "", room), m[0]) },
  { first: "<", at: /^<(https?:\/\/[^\s<>]+|mailto:[^\s<>]+)>/, make: (m) => link(m[1] ?? "", m[1] ?? "", m[0]) },
  { first: "h", at: /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~]/, make: (m) => link(m[0], m[0], m[0]) },
  { first: "*", at: /^\*\*\*(?=[^\s*])([^*]*?[^\s*])\*\*\*/, make: (m, room) => <strong><em>{inline(m[1] ?? "", room)}</em></strong> },
  { first: "*", at: /^\*\*(?=\S)((?:[^*]|\*(?!\*))*?\S)\*\*/, make: (m, room) => <strong>{inline(m[1] ?? "", room)}</strong> },
  { first: "_", at: /^__(?=\S)((?:[^_]|_(?!_))*?\S)__(?!\w)/, make: (m, room) => <strong>{inline(m[1] ?? "", room)}</strong> },
  { first: "*", at: /^\*(?=[^\s*])([^*]*?[^\s*])\*(?!\*)/, make: (m, room) => <em>{inline(m[1] ?? "", room)}</em> },
  { first: "_", at: /^_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/, make: (m, room) => <em>{inline(m[1] ?? "", room)}</em> },
  { first: "~", at: /^~~(?=\S)([^~]*?\S)~~/, make: (m, room) => <s>{inline(m[1] ?? "", room)}</s> },
  { first: " \\\n", at: /^(?: *|\\)\n */, make: () => <br /> }, // people and models break a line where they want a new one
  { first: "&", at: /^&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/, make: (m) => character(m[0]) },
];

// character returns the character that an entity stands for, or the entity if there is none.
function character(entity: string): string {
  return new DOMParser().parseFromString(entity, "text/html").body.textContent ?? entity;
}

// special finds where a span may begin.
const special = /[\\`![<*_~h&]| *\n/g;

// inline returns the elements of a text within a block.
function inline(text: string, room: Room): Part[] {
  const made: Part[] = [];
  let plain = "";
  let at = 0;
  while (at < text.length) {
    special.lastIndex = at;
    const next = special.exec(text);
    if (!next) break;
    plain += text.slice(at, next.index);
    at = next.index;
    if (room.left <= 0) {
      if (plain) made.push(plain);
      made.push(<span class="as-written">{text.slice(at)}</span>);
      return made;
    }
    const found = spanAt(text, at, room);
    if (!found) {
      plain += text[at];
      at++;
      continue;
    }
    at += found.length;
    if (typeof found.part === "string") {
      plain += found.part;
      continue;
    }
    if (plain) made.push(plain);
    plain = "";
    made.push(found.part);
  }
  plain += text.slice(at);
  if (plain) made.push(plain);
  return made;
}

// longest is how long a span may be, so that a text full of marks stays fast.
const longest = 2000;

function spanAt(text: string, at: number, room: Room): { part: Part; length: number } | null {
  const before = text[at - 1] ?? " ";
  const here = text[at] ?? "";
  const word = here === "_" || here === "h" || (here === "*" && text[at + 1] !== "*");
  if (word && /\w/.test(before)) return null; // inside a word
  const rest = text.slice(at, at + longest);
  for (const span of spans) {
    const m = span.first.includes(here) ? span.at.exec(rest) : null;
    if (!m) continue;
    const part = span.make(m, room);
    if (typeof part !== "string" || here === "&") room.left--; // an entity counts, too, because it needs a parser
    return { part, length: m[0].length };
  }
  return null;
}

// link returns a link to the web or to an email address. For anything else, it shows the address as text.
function link(to: string, shown: Part, written: string): Part {
  if (!isSafe(to)) return written.startsWith("<") ? written : [shown, ` (${to})`];
  return <a href={to} target="_blank" rel="noopener noreferrer">{shown}</a>;
}

// isWeb reports whether a link leads to the web.
export function isWeb(to: string): boolean {
  return /^https?:/i.test(to) && isSafe(to);
}

// isSafe reports whether a link leads to the web or to an email address.
export function isSafe(to: string): boolean {
  try {
    return /^(https?:\/\/|mailto:)/i.test(to) && ["http:", "https:", "mailto:"].includes(new URL(to).protocol);
  } catch {
    return false;
  }
}
