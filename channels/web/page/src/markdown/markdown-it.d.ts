// What the page uses of markdown-it, whose own declarations need those of four more libraries.

export interface Token {
  type: string;
  tag: string;
  map: [number, number] | null; // the numbers of its first line and of the line after it; null in inline tokens
  nesting: -1 | 0 | 1;
  level: number;
  children: Token[] | null;
  content: string;
  markup: string;
  info: string; // "auto" for links without marks
  hidden: boolean; // whether a paragraph in a list is shown without an element of its own
  attrGet(name: string): string | null;
}

export interface BlockState {
  level: number;
  line: number;
  blkIndent: number;
  getLines(begin: number, end: number, indent: number, keepLastLine: boolean): string;
  push(type: string, tag: string, nesting: -1 | 0 | 1): Token;
}

interface Delimiters {
  can_open: boolean;
  can_close: boolean;
  length: number;
}

declare class InlineState {
  src: string;
  scanDelims(start: number, canSplitWord: boolean): Delimiters;
}

interface Match {
  url: string;
}

export interface Linkify {
  set(options: { fuzzyLink: boolean; fuzzyEmail: boolean }): Linkify;
  add(schema: string, definition: null | { validate(text: string, at: number): number; normalize(match: Match): void }): Linkify;
}

export default class MarkdownIt {
  constructor(options: { html: boolean; breaks: boolean; linkify: boolean; maxNesting: number });
  readonly inline: { State: typeof InlineState; parse(text: string, md: MarkdownIt, env: object, out: Token[]): void };
  readonly block: { ruler: { before(other: string, name: string, rule: (state: BlockState, begin: number, end: number, silent: boolean) => boolean): void } };
  readonly linkify: Linkify;
  normalizeLink: (url: string) => string;
  normalizeLinkText: (url: string) => string;
  validateLink: (url: string) => boolean;
  disable(rules: string[]): this;
  parse(text: string, env: object): Token[];
}
