// The parser of Markdown. It differs from CommonMark as the server's does (channels/markup/document).
import MarkdownIt, { type BlockState, type Token } from "markdown-it";

// deepest is how deep quotes and lists can be nested, where a list counts twice. What is deeper stays as it was written.
const deepest = 32;

// newParser returns a function that parses a text.
function newParser(): (text: string) => Token[] {
  // HTML is parsed so that it stays as it was written. inline.tsx decides which links are links.
  const parser = new MarkdownIt({ html: true, breaks: true, linkify: true, maxNesting: 100 });
  parser.disable(["reference"]); // chats show them as they were written
  parser.validateLink = () => true;
  parser.normalizeLink = (url) => (url.includes("://") ? url.replace(/[ <>"`|\\]/g, encodeURIComponent) : url); // as browsers do
  parser.normalizeLinkText = (url) => url;
  parser.linkify.set({ fuzzyLink: false, fuzzyEmail: true }).add("ftp:", null).add("//", null).add("www.", { validate: lengthOfAddress, normalize: toWeb });
  parser.inline.State = class extends parser.inline.State {
    override scanDelims(start: number, canSplitWord: boolean) {
      const found = super.scanDelims(start, canSplitWord);
      if (isText(this.src, start, found.length)) found.can_open = found.can_close = false;
      return found;
    }
  };
  parser.block.ruler.before("table", "deepest", stayAsWritten);
  limitNesting(parser);
  return (text) => parser.parse(text, {});
}

export const parse = newParser();

// isText reports whether a run of marks is text: in chats * between letters or digits, and ** between digits, mean a product
// or a power, and ~ means about.
function isText(text: string, start: number, length: number): boolean {
  const mark = text[start];
  if (mark === "~") return length !== 2;
  const around = (text[start - 1] ?? "") + (text[start + length] ?? "");
  return mark === "*" && ((length === 1 && /^[0-9a-zA-Z]{2}$/.test(around)) || (length === 2 && /^\d{2}$/.test(around)));
}

const longest = 2000; // a link's address

// lengthOfAddress returns the length of what belongs to an address after its www., which ends at the position at.
// Punctuation at its end isn't part of it, and neither is a bracket that was opened before it.
function lengthOfAddress(text: string, at: number): number {
  const address = /^[\w-]+(\.[\w-]+)+[^\s<]*/.exec(text.slice(at, at + longest))?.[0] ?? "";
  let unopened = address.split(")").length - address.split("(").length;
  let end = address.length;
  for (;;) {
    const last = address[end - 1] ?? "";
    if (last === ")" && unopened > 0) {
      unopened--;
      end--;
    } else if (last !== "" && `?!.,:;*_~'"\``.includes(last)) {
      end -= last === ";" ? (/&\w{1,40};$/.exec(address.slice(Math.max(0, end - 42), end))?.[0].length ?? 1) : 1; // a character's name
    } else {
      return end;
    }
  }
}

function toWeb(match: { url: string }): void {
  match.url = "http://" + match.url;
}

// mostNested is how deep pictures can be in the descriptions of others. Each level parses its text again.
const mostNested = 2;

// limitNesting leaves descriptions of pictures that are nested too deep as they were written.
function limitNesting(parser: MarkdownIt): void {
  const parseInline = parser.inline.parse.bind(parser.inline);
  let nested = 0;
  parser.inline.parse = (text, md, env, out) => {
    if (nested > mostNested) {
      out.push({ type: "text", tag: "", map: null, nesting: 0, level: 0, children: null, content: text, markup: "", info: "", hidden: false, attrGet: () => null });
      return;
    }
    nested++;
    try {
      parseInline(text, md, env, out);
    } finally {
      nested--;
    }
  };
}

// stayAsWritten is the rule for lines that are nested too deep.
function stayAsWritten(state: BlockState, begin: number, end: number, silent: boolean): boolean {
  if (silent || state.level < deepest) return false;
  const token = state.push("html_block", "", 0);
  token.content = state.getLines(begin, end, state.blkIndent, false);
  token.map = [begin, end];
  state.line = end;
  return true;
}
