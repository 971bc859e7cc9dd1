// The turns before a snapshot, read backwards from the session's log.
import { get } from "../api.ts";
import type { Entry } from "../schemas.ts";
import { type Block, type Kind, newTurn, setBlock, type Spoken, type Turn, type TurnState } from "./log.ts";

// How many entries one request reads, and how many turns one reading returns at least, if there are that many.
const page = 120;
const fewest = 10;

// EarlierTurns reads a session's log backwards. It leaves out the turns and operators' messages that are already shown.
export class EarlierTurns {
  whole = false; // whether it has reached the beginning of the log
  private end = -1; // the last entry that it has yet to read; -1 before the first reading
  private rest: Entry[] = []; // of a turn whose beginning it has yet to read

  constructor(
    private readonly key: string,
    private readonly known: (id: string) => boolean,
  ) {}

  // read returns the turns before those that it returned earlier, and what operators said, in order. If it fails, the
  // next reading starts at the same place.
  async read(left: AbortSignal): Promise<(Turn | Spoken)[]> {
    let entries = this.rest;
    let end = this.end < 0 ? await this.last(left) : this.end;
    let turns = 0;
    while (end > 0 && turns <= fewest) {
      const after = Math.max(0, end - page);
      const read = await this.between(after, end, left);
      turns += read.filter((e) => e.kind === "turn_started").length;
      entries = [...read, ...entries];
      end = after;
    }
    this.end = end;
    this.whole = end <= 0;
    // The first entries may belong to a turn that begins further back.
    const from = this.whole ? 0 : entries.findIndex((e) => e.kind === "turn_started");
    this.rest = from < 0 ? entries : entries.slice(0, from);
    return from < 0 ? [] : fold(entries.slice(from));
  }

  // last returns the number of the session's last entry.
  private async last(left: AbortSignal): Promise<number> {
    const { last } = await get<{ last: number }>(["sessions", this.key], { after: Number.MAX_SAFE_INTEGER, limit: 1 }, left);
    return last;
  }

  // between returns the entries after one and up to another, without those of turns that are already shown.
  private async between(after: number, until: number, left: AbortSignal): Promise<Entry[]> {
    const { entries } = await readBetween(this.key, after, until, left);
    return entries.filter((e) => !this.known(e.turn) && !this.known((e.data as Data | undefined)?.of ?? ""));
  }
}

// readBetween reads the entries of a session's log after one and up to another. last says that the log ends there.
export async function readBetween(key: string, after: number, until: number, left: AbortSignal): Promise<{ entries: Entry[]; last: boolean }> {
  const found: Entry[] = [];
  for (let n = after; n < until; ) {
    const { entries, next } = await get<{ entries: Entry[]; next?: number }>(["sessions", key], { after: n, limit: until - n }, left);
    found.push(...entries.filter((e) => e.n <= until));
    if (next === undefined) return { entries: found, last: true };
    n = next;
  }
  return { entries: found, last: false };
}

interface Data {
  text?: string;
  name?: string;
  args?: unknown;
  content?: unknown;
  code?: string;
  state?: TurnState;
  of?: string;
  quotes?: { text: string; name?: string }[];
}

// fold turns entries into turns and what operators said. It leaves out turns whose beginning is missing, unless it is a
// part of a log that may begin in the middle of a turn.
export function fold(entries: Entry[], part = false): (Turn | Spoken)[] {
  const turns = new Map<string, Turn>();
  const all: (Turn | Spoken)[] = [];
  for (const e of entries) {
    const d = (e.data ?? {}) as Data;
    const quote = e.kind === "notice" && d.code === "operator" ? d.quotes?.[0] : undefined;
    if (quote) all.push({ id: d.of ?? e.turn, turn: "", text: quote.text, after: "", operator: { name: quote.name ?? "", cut: false } });
    let turn = turns.get(e.turn);
    if (!turn) {
      if (e.kind !== "turn_started" && !(part && blockOf(e, d))) continue; // a command, or part of a turn that is left out
      turn = { ...newTurn(e.turn), state: "done" };
      turns.set(e.turn, turn);
      all.push(turn);
    }
    if (e.kind === "turn_done") turn.state = d.state ?? "done";
    const block = blockOf(e, d);
    if (block) setBlock(turn, block);
  }
  return all.filter((x) => !("blocks" in x) || x.blocks.length > 0);
}

function blockOf(e: Entry, d: Data): Block | null {
  if (!["user", "thinking", "text", "tool_use", "tool_result"].includes(e.kind)) return null;
  const common = { number: e.n, kind: e.kind as Kind, call: e.call ?? "", cause: e.cause ?? "", cut: false, done: true, late: false };
  switch (e.kind) {
    case "tool_use":
      return { ...common, text: "", tool: d.name ?? "", name: "", input: d.args, failed: false };
    case "tool_result":
      return { ...common, text: JSON.stringify(d.content ?? ""), tool: "", name: "", failed: Boolean(d.code) };
    default:
      return { ...common, text: d.text ?? "", tool: "", name: d.name ?? "", failed: false };
  }
}
