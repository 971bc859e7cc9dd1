// The turns before a snapshot, read backwards from the session's log.
import { get } from "../api.ts";
import type { Ask, Entry, Part } from "../schemas.ts";
import { type Block, type Kind, newTurn, setBlock, type Spoken, type Turn, type TurnState } from "./log.ts";
import { parseKey } from "./sending.ts";

// How many entries one request reads, and how many turns a call of read returns at least, if there are that many.
const page = 120;
const fewest = 10;

// EarlierTurns reads a session's log backwards. It leaves out what is already shown.
export class EarlierTurns {
  whole = false; // whether it has reached the beginning of the log
  private end = -1; // the last entry that it has yet to read; -1 before the first reading
  private rest: Entry[] = []; // of a turn whose beginning it has yet to read

  constructor(
    private readonly key: string,
    private readonly known: () => Set<string>,
  ) {}

  // read returns the turns before those that it returned earlier, and what was said among them, in order. If it fails,
  // the next reading starts at the same place.
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
    return from < 0 ? [] : fold(entries.slice(from), this.key);
  }

  // last returns the number of the session's last entry.
  private async last(left: AbortSignal): Promise<number> {
    const { last } = await get<{ last: number }>(["sessions", this.key], { after: Number.MAX_SAFE_INTEGER, limit: 1 }, left);
    return last;
  }

  // between returns the entries after one and up to another, without those of turns that are already shown.
  private async between(after: number, until: number, left: AbortSignal): Promise<Entry[]> {
    const { entries } = await readBetween(this.key, after, until, left);
    const known = this.known();
    return entries.filter((e) => !known.has(saidAs(e.turn)) && !known.has((e.data as Data | undefined)?.of ?? ""));
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
  state?: string;
  of?: string;
  quotes?: { text: string; name?: string; person?: string }[];
  reply?: { id: string; text: string };
  outbound?: { id: string; text: string }[];
  asks?: LoggedAsk[];
  ask?: string;
  answer?: string;
}

// A LoggedAsk is a request as the log has it when a turn begins to wait.
interface LoggedAsk {
  id: string;
  call: string;
  kind: "approval" | "question" | "task" | "node";
  args?: unknown; // if they differ from those of the call
  shown?: string;
  shown_of?: string[];
  reason?: string;
  question?: string;
  choices?: string[];
  expires: string;
}

// fold turns entries of a session's log into turns and what was said among them. It leaves out turns whose beginning is
// missing, unless part is true: then the entries may begin in the middle of a turn.
export function fold(entries: Entry[], session: string, part = false): (Turn | Spoken)[] {
  const turns = new Map<string, Turn>();
  const all: (Turn | Spoken)[] = [];
  for (const e of entries) {
    const d = (e.data ?? {}) as Data;
    let turn = turns.get(e.turn);
    const said = spokenOf(e, d, session) ?? sentBy(turn, e, d, session);
    if (said) all.push(said);
    if (!turn) {
      if (e.kind !== "turn_started" && !(part && blockOf(e, d))) continue; // a command, or part of a turn that is left out
      turn = { ...newTurn(e.turn), state: "done", asks: [] };
      turns.set(e.turn, turn);
      all.push(turn);
    }
    changeAsks(turn, e, d, session);
    if (e.kind === "turn_done") {
      turn.state = (d.state ?? "done") as TurnState;
      if (turn.state !== "done") turn.said = (d.outbound ?? []).filter((r) => r.text).map((r) => ({ id: r.id + "/0", turn: e.turn, text: r.text, after: e.turn }));
    }
    const block = blockOf(e, d);
    if (block) setBlock(turn, block);
  }
  for (const t of turns.values()) t.asks = t.asks?.filter((a) => a.state !== "open") ?? [];
  return all.filter((x) => !("blocks" in x) || x.blocks.length > 0);
}

// saidAs returns the id of the message that the notice with an id is about, if it is about what the agent has said on
// somebody's behalf; any other id stays as it is.
const saidAs = (id: string): string => id.replace(/#told$/, "");

// isWatched reports whether people see a session only by watching it, because no platform shows it.
const isWatched = (session: string): boolean => ["web", "console"].includes(parseKey(session).channel);

// spokenOf returns what an operator or, on somebody's behalf, the agent said, or the reply to a command; null for anything
// else. What a command answers on a platform isn't part of the conversation here.
function spokenOf(e: Entry, d: Data, session: string): Spoken | null {
  const quote = e.kind === "notice" && (d.code === "operator" || d.code === "told") ? d.quotes?.[0] : undefined;
  if (quote && d.code === "told") {
    const name = quote.name && quote.person ? `${quote.name} (${quote.person})` : quote.name || quote.person || "";
    return { id: saidAs(e.cause ?? e.turn), turn: "", text: quote.text, after: "", told: { name } };
  }
  if (quote) return { id: d.of ?? e.turn, turn: "", text: quote.text, after: "", operator: { name: quote.name ?? "" } };
  if (e.kind !== "command" || !d.reply?.text || !isWatched(session)) return null;
  return { id: d.reply.id + "/0", turn: e.turn, text: d.reply.text, after: "", command: d.name ?? "" };
}

// sentBy returns what the agent has sent to the conversation itself with its tool message, given the result of the call;
// null for anything else.
function sentBy(turn: Turn | undefined, e: Entry, d: Data, session: string): Spoken | null {
  if (e.kind !== "tool_result" || d.code || !isWatched(session)) return null;
  const use = turn?.blocks.find((b) => b.kind === "tool_use" && b.call === e.call);
  if (use?.tool !== "message") return null;
  const { channel, chat_id: chat, content } = (use.input ?? {}) as { channel?: unknown; chat_id?: unknown; content?: unknown };
  const at = parseKey(session);
  const to = [channel, chat].filter(Boolean).join(":");
  if (typeof content !== "string" || content.trim() === "" || to !== `${at.channel}:${at.chat}${at.thread && "/" + at.thread}`) return null;
  return { id: `${e.turn}#${e.call}/0`, turn: "", text: content, after: "" };
}

// changeAsks notes what a turn asks people, and how each request ended. When the turn ends, requests that nobody has
// answered are withdrawn.
function changeAsks(turn: Turn, e: Entry, d: Data, session: string): void {
  const asks = turn.asks ?? [];
  const end = (ended: (a: Ask) => boolean, how: Partial<Ask>) => {
    turn.asks = asks.map((a) => (ended(a) ? { ...a, ...how } : a));
  };
  if (e.kind === "turn_parked") turn.asks = [...asks, ...(d.asks ?? []).flatMap((a) => askOf(a, turn, session, e.at))];
  if (e.kind === "ask_ended") end((a) => a.id === d.ask, { state: d.state as Ask["state"], ...(d.answer && { answer: d.answer }), ...(e.person && { by: e.person }) });
  if (e.kind === "turn_done") end((a) => a.state === "open", { state: "withdrawn" });
}

function askOf({ id, call, kind, expires, ...a }: LoggedAsk, turn: Turn, session: string, at: string): Ask[] {
  if (kind === "task" || kind === "node") return [];
  const use = turn.blocks.find((b) => b.kind === "tool_use" && b.call === call);
  const common = { id, kind, session, turn: turn.id, person: "", at, expires, state: "open" as const, ...(a.reason && { reason: a.reason }) };
  if (kind === "question") return [{ ...common, ...(a.question && { question: a.question }), ...(a.choices && { choices: a.choices }) }];
  const args = a.args ?? use?.input;
  return [{ ...common, tool: use?.tool ?? "", arguments: args, shown: partsOf(a.shown ?? "", a.shown_of ?? [], args) }];
}

// partsOf returns what a call would do and its other arguments, in the form in which the server shows them.
function partsOf(shown: string, of: string[], args: unknown): Part[] {
  if (!shown) return [];
  const others = Object.entries((args ?? {}) as Record<string, unknown>).filter(([name]) => !of.includes(name));
  return [{ text: shown }, ...others.map(([name, value]) => ({ name, text: typeof value === "string" ? value : JSON.stringify(value) }))];
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
