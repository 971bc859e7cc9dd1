// The conversation of one session. The page keeps it nowhere else.
//
// A Log takes the snapshots and events of /v1/sessions/{key}/events, each once and in order, and keeps blocks by their
// turn and number. A snapshot replaces all blocks. Everything on the screen comes from the Log alone, so nothing can
// appear twice. The Log doesn't know how it is shown, or where events come from.
//
// The tasks of sub-agents and the jobs, which run beside the turns, are read from lists. The Log keeps them by their ids.
import type { Ask, Job, Task } from "../schemas.ts";

export type Kind = "user" | "thinking" | "text" | "tool_use" | "tool_result";

// A Block is something that was said or thought, a call, or its result. Its number counts within its turn.
export interface Block {
  number: number;
  kind: Kind;
  text: string; // for a tool_use, the pieces of its input; for a tool_result, its content: both JSON
  tool: string;
  call: string;
  input?: unknown; // for a tool_use: its whole input, which replaces the pieces
  failed: boolean;
  cut: boolean; // the log has more of it
  cause: string; // for a user block: the message's id
  name: string; // for a user block: the person's name on the platform
  done: boolean;
  late: boolean; // its beginning is missing until the next snapshot
}

// A Call is what events say about a call, in addition to its blocks.
export interface Call {
  id: string;
  tool: string;
  brief: string; // its arguments in brief
  progress: string;
  state: "running" | "ended" | "failed";
  error?: { code: string; message: string };
}

export type TurnState = "running" | "parked" | "done" | "failed" | "cancelled";

export interface Retry {
  attempt: number;
  after_ms: number;
  from?: string;
  to?: string;
}

export interface Usage {
  calls: number;
  input: number;
  output: number;
  microdollars: number;
  priced: boolean; // whether all calls have a known price
  model: string;
}

// A Turn is everything that the agent does to answer messages.
export interface Turn {
  id: string;
  causes: string[];
  state: TurnState;
  blocks: Block[]; // in order
  calls: Map<string, Call>;
  error?: { code: string; message: string };
  retry?: Retry;
  usage?: Usage;
  compacted: number; // how often earlier messages were summarized
  // Only for a turn that is not in a Log: its requests, and what it told people when it failed or was stopped. A Log keeps
  // those of its turns itself.
  asks?: Ask[];
  said?: Spoken[];
  version: number; // grows with each change
  squeezed?: { version: number; text: string }; // see textOf
}

// A Spoken is a message that was sent to the conversation: a turn's answer, a request to people, the reply to a command,
// or an operator's message.
export interface Spoken {
  id: string;
  turn: string;
  text: string;
  after: string; // the id of the latest turn at that time
  cut?: boolean; // the log has more of it
  operator?: { name: string }; // an operator has said it in place of the agent
  told?: { name: string }; // the agent has said it on behalf of this person in another conversation
  command?: string; // it is the reply to the command with this name
}

// Data has the fields that events of the stream may have.
interface Data {
  turn?: string;
  causes?: string[];
  block?: number;
  kind?: string;
  delta?: string;
  tool?: string;
  call?: string;
  input?: unknown;
  is_error?: boolean;
  cut?: boolean;
  cause?: string;
  name?: string;
  text?: string;
  done?: boolean;
  error?: { code: string; message: string };
  attempt?: number;
  after_ms?: number;
  from?: string;
  to?: string;
  model?: string;
  output?: number;
  microdollars?: number;
  ask?: string;
  answer?: string;
  by?: string;
  after?: string;
  command?: string;
}

// A Wait says that a call waits for a node that is away.
interface Wait {
  call: string;
  node: string;
  since?: string;
  until: string;
}

interface Snapshot {
  turns: { turn: string; causes: string[]; state: TurnState; waits?: Wait[] }[];
  blocks: (Data & { turn: string; block: number; kind: string })[];
  messages?: Data[]; // what was said besides the turns' blocks, and what turns said that failed or were stopped
  asks?: Ask[]; // that have ended
}

// Beside is what a call has started beside its turn.
export type Beside = Task | Job;

// How many messages that belong to no turn are kept.
const mostAside = 64;

export class Log {
  turns: Turn[] = [];
  spoken: Spoken[] = []; // not part of a turn's blocks, or the same in other words
  asks = new Map<string, Ask>();
  tasks = new Map<string, Task>();
  jobs = new Map<string, Job>();
  besides = 0; // grows with each change of tasks or jobs
  moves = 0; // grows whenever a turn begins, waits, goes on or ends
  ready = false; // whether there was a snapshot

  // apply takes one event or snapshot, or what was read of tasks and jobs. It returns the ids of the people's messages
  // that nothing shows anymore.
  apply(type: string, data: unknown): Set<string> {
    switch (type) {
      case "snapshot":
        return this.replace(data as Snapshot);
      case "message": {
        const d = data as Data;
        return this.speak(spokenOf(d, d.delta ?? "", this.turns.at(-1)?.id ?? ""));
      }
    }
    if (this.take(type, data)) this.besides++;
    else this.change(type, data as Data);
    return new Set();
  }

  // take takes what was read of tasks and jobs. It returns false for anything else.
  private take(type: string, data: unknown): boolean {
    switch (type) {
      case "tasks":
        this.tasks = new Map((data as Task[]).map((t) => [t.id, newer(this.tasks.get(t.id), t)]));
        return true;
      case "jobs":
        this.jobs = new Map((data as Job[]).map((j) => [j.id, withOutput(this.jobs.get(j.id), j)]));
        return true;
      case "task": {
        const t = data as Task;
        this.tasks.set(t.id, newer(this.tasks.get(t.id), t));
        return true;
      }
      case "job": {
        const j = data as Job;
        this.jobs.set(j.id, withOutput(this.jobs.get(j.id), j));
        return true;
      }
      case "gone":
        this.tasks.delete(data as string);
        this.jobs.delete(data as string);
        return true;
    }
    return false;
  }

  // besidesByTurn returns, by turn, what its calls have started beside it.
  besidesByTurn(): Map<string, Beside[]> {
    return grouped<Beside>([...this.tasks.values(), ...this.jobs.values()], (b) => b.turn);
  }

  private change(type: string, d: Data): void {
    switch (type) {
      case "ask":
        this.ask(d as unknown as Ask);
        return;
      case "ask_resolved":
        this.resolve(d);
        return;
    }
    if (!d.turn) return;
    const turn = this.turn(d.turn);
    const { state } = turn;
    turn.version++;
    if (type.startsWith("block_")) changeBlock(turn, type, d);
    else if (type.startsWith("tool_")) changeCall(turn, type, d);
    else changeTurn(turn, type, d);
    if (turn.state !== state) this.moves++;
  }

  // turn returns the turn with an id, and adds it if needed.
  private turn(id: string): Turn {
    const known = this.turns.findLast((t) => t.id === id);
    if (known) return known;
    const turn = newTurn(id);
    this.turns.push(turn);
    this.moves++;
    return turn;
  }

  // replace replaces all turns and their blocks with those of a snapshot. It keeps what only events say about a turn, and
  // messages that belong to a turn of the snapshot or followed one. It drops other messages, as the server does.
  private replace(s: Snapshot): Set<string> {
    const before = new Map(this.turns.map((t) => [t.id, t]));
    this.turns = s.turns.map((told) => {
      const old = before.get(told.turn);
      const turn: Turn = { ...newTurn(told.turn), causes: told.causes, state: told.state };
      for (const w of told.waits ?? []) changeCall(turn, "tool_progress", { call: w.call, delta: waitText(w) });
      if (!old) return turn;
      const { calls, error, usage, compacted, version } = old;
      return { ...turn, calls, compacted, ...(error && { error }), ...(usage && { usage }), version: version + 1 };
    });
    for (const b of s.blocks) {
      const turn = this.turns.find((t) => t.id === b.turn);
      if (turn) setBlock(turn, { ...blockOf(b), text: b.text ?? "", done: b.done ?? true });
    }
    const gone = this.leaveAside();
    this.spoken = merge(this.spoken, (s.messages ?? []).map((m) => spokenOf(m, m.text ?? "", m.after ?? "")));
    for (const a of s.asks ?? []) this.asks.set(a.id, a);
    this.ready = true;
    this.moves++;
    return gone;
  }

  // leaveAside drops what was said and asked among turns that the log no longer has. It returns the ids of the people's
  // messages that nothing shows anymore.
  private leaveAside(): Set<string> {
    const ids = new Set(this.turns.map((t) => t.id));
    const left = (s: Spoken) => !ids.has(s.turn) && !(s.after === "" ? ids.size === 0 : ids.has(s.after));
    const messages = new Set(this.spoken.filter(left).map((s) => (s.operator ? s.id : s.turn)));
    this.spoken = this.spoken.filter((s) => !left(s));
    for (const [id, a] of this.asks) if (a.state !== "open" && !ids.has(a.turn)) this.asks.delete(id);
    return messages;
  }

  // speak adds something that was said, once for each id.
  private speak(said: Spoken): Set<string> {
    if (this.spoken.some((s) => s.id === said.id)) return new Set();
    this.spoken.push(said);
    const turn = this.turns.find((t) => t.id === said.turn);
    if (turn) {
      turn.version++;
      return new Set();
    }
    const ids = new Set(this.turns.map((t) => t.id));
    const old = new Set(this.spoken.filter((s) => !ids.has(s.turn)).slice(0, -mostAside));
    this.spoken = this.spoken.filter((s) => !old.has(s));
    return new Set([...old].map((s) => (s.operator ? s.id : s.turn)));
  }

  // ask adds a request. A request that has ended doesn't open again.
  ask(a: Ask): void {
    const known = this.asks.get(a.id);
    if (known && known.state !== "open") return;
    this.asks.set(a.id, a);
    this.touch(a.turn);
  }

  private resolve(d: Data): void {
    const known = d.ask ? this.asks.get(d.ask) : undefined;
    if (!known) return;
    const state = d.answer === "expired" || d.answer === "withdrawn" ? d.answer : "answered";
    this.asks.set(known.id, { ...known, state, ...(d.answer && { answer: d.answer }), ...(d.by && { by: d.by }) });
    this.touch(known.turn);
  }

  private touch(id: string): void {
    const turn = this.turns.find((t) => t.id === id);
    if (turn) turn.version++;
  }

  // leave drops the oldest turns, until only the given number is left, and what was said and asked with them. A turn that
  // hasn't ended stays, with all turns after it. It returns the ids of the people's messages that nothing shows anymore.
  leave(newest: number): Set<string> {
    const gone = this.turns.splice(0, Math.max(0, Math.min(this.turns.length - newest, this.mayLeave())));
    const ids = new Set(gone.map((t) => t.id));
    for (const [id, a] of this.asks) if (ids.has(a.turn)) this.asks.delete(id);
    for (const all of [this.tasks, this.jobs]) for (const [id, b] of all) if (ids.has(b.turn)) all.delete(id);
    return new Set([...gone.flatMap((t) => [...t.causes, ...t.blocks.map((b) => b.cause)]), ...(gone.length > 0 ? this.leaveAside() : [])]);
  }

  // mayLeave returns how many of the oldest turns may be dropped.
  mayLeave(): number {
    const going = this.turns.findIndex((t) => t.state === "running" || t.state === "parked");
    return going < 0 ? this.turns.length : going;
  }

  // running returns the turn that hasn't ended; undefined if there is none.
  running(): Turn | undefined {
    return this.turns.findLast((t) => t.state === "running" || t.state === "parked");
  }
}

// grouped returns things by a name that some of them share, in their order.
export function grouped<T>(all: Iterable<T>, nameOf: (x: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const x of all) {
    const group = groups.get(nameOf(x));
    if (group) group.push(x);
    else groups.set(nameOf(x), [x]);
  }
  return groups;
}

// newer returns the later one of two readings: a task or job that has ended doesn't run again.
function newer<T extends { ended?: string }>(known: T | undefined, read: T): T {
  return known?.ended && !read.ended ? known : read;
}

// withOutput returns the later one of two readings of a job. One from a list has no output: the job keeps what was read
// before unless it has printed more since.
function withOutput(known: Job | undefined, read: Job): Job {
  const job = known && !read.ended && read.printed < known.printed ? known : newer(known, read);
  if (job.output !== undefined || known?.output === undefined || known.printed !== job.printed) return job;
  return { ...job, output: known.output };
}

export function newTurn(id: string): Turn {
  return { id, causes: [], state: "running", blocks: [], calls: new Map(), compacted: 0, version: 0 };
}

function spokenOf(d: Data, text: string, after: string): Spoken {
  const by = { name: d.name ?? "" };
  return { id: d.call ?? "", turn: d.turn ?? "", text, after, ...(d.cut && { cut: true }), ...(d.kind === "operator" && { operator: by }), ...(d.kind === "told" && { told: by }), ...(d.command && { command: d.command }) };
}

// merge returns the messages of a snapshot, in its order, and the other known messages, each after the one that it
// followed. It drops what operators said, and what was said on behalf of others, unless the snapshot has it.
function merge(known: Spoken[], told: Spoken[]): Spoken[] {
  const ids = new Set(told.map((s) => s.id));
  const others = new Map<string, Spoken[]>();
  let last = ""; // of the snapshot
  for (const s of known) {
    if (ids.has(s.id)) last = s.id;
    else if (!s.operator && !s.told) others.set(last, [...(others.get(last) ?? []), s]);
  }
  return [...(others.get("") ?? []), ...told.flatMap((s) => [s, ...(others.get(s.id) ?? [])])];
}

function blockOf(d: Data): Block {
  return {
    number: d.block ?? 0,
    kind: (d.kind ?? "text") as Kind,
    text: "",
    tool: d.tool ?? "",
    call: d.call ?? "",
    ...(d.input !== undefined && { input: d.input }),
    failed: d.is_error ?? false,
    cut: d.cut ?? false,
    cause: d.cause ?? "",
    name: d.name ?? "",
    done: false,
    late: false,
  };
}

// setBlock puts a block where its number belongs. It replaces the block with the same number.
export function setBlock(turn: Turn, b: Block): void {
  const at = turn.blocks.findIndex((x) => x.number >= b.number);
  if (at < 0) turn.blocks.push(b);
  else if (turn.blocks[at]?.number === b.number) turn.blocks[at] = b;
  else turn.blocks.splice(at, 0, b);
}

function changeBlock(turn: Turn, type: string, d: Data): void {
  const number = d.block ?? 0;
  if (type === "block_reset") {
    turn.blocks = turn.blocks.filter((b) => b.number < number);
    return;
  }
  delete turn.retry;
  if (type === "block_start") {
    setBlock(turn, blockOf(d));
    return;
  }
  let b = turn.blocks.find((x) => x.number === number);
  if (!b) {
    b = { ...blockOf(d), late: true };
    setBlock(turn, b);
  }
  if (type === "block_delta") {
    b.text += d.delta ?? "";
    return;
  }
  b.done = true; // block_stop
  if (d.input !== undefined) b.input = d.input;
  b.call = d.call || b.call;
  b.tool = d.tool || b.tool;
  b.failed ||= d.is_error ?? false;
  b.cut ||= d.cut ?? false;
}

function changeCall(turn: Turn, type: string, d: Data): void {
  const id = d.call ?? "";
  let call = turn.calls.get(id);
  if (!call) {
    call = { id, tool: d.tool ?? "", brief: "", progress: "", state: "running" };
    turn.calls.set(id, call);
  }
  // The block of a call may have started before the call had an id.
  if (!turn.blocks.some((b) => b.call === id)) {
    const block = turn.blocks.find((b) => b.kind === "tool_use" && b.call === "" && b.tool === d.tool);
    if (block) block.call = id;
  }
  switch (type) {
    case "tool_start":
      call.brief = d.delta ?? "";
      call.state = "running";
      break;
    case "tool_progress":
      call.progress = (call.progress + (d.delta ?? "") + "\n").slice(-mostProgress);
      break;
    case "tool_end":
      call.state = d.error ? "failed" : "ended";
      if (d.error) call.error = d.error;
  }
}

// waitText says for which node a call waits.
function waitText(w: Wait): string {
  const away = w.since ? `has been away since ${new Date(w.since).toLocaleString()}` : "has never been here";
  return `waiting for the node ${w.node}, which ${away}, until ${new Date(w.until).toLocaleString()} at the latest`;
}

// mostProgress is how many characters of a running call's progress reports are kept.
const mostProgress = 20_000;

function changeTurn(turn: Turn, type: string, d: Data): void {
  if (d.causes) turn.causes = d.causes;
  switch (type) {
    case "turn_start":
      turn.state = "running";
      break;
    case "parked":
      turn.state = "parked";
      break;
    case "turn_complete":
      endBlocks(turn);
      turn.state = turn.state === "cancelled" ? "cancelled" : "done";
      delete turn.retry;
      break;
    case "turn_error":
      endBlocks(turn);
      turn.state = d.error?.code === "cancelled" ? "cancelled" : "failed";
      if (d.error) turn.error = d.error;
      delete turn.retry;
      break;
    case "retry":
      turn.retry = { attempt: d.attempt ?? 2, after_ms: d.after_ms ?? 0, ...(d.from && { from: d.from }), ...(d.to && { to: d.to }) };
      break;
    case "compaction":
      turn.compacted++;
      break;
    case "usage":
      addUsage(turn, d as Data & { input?: number });
  }
}

// endBlocks drops the unfinished blocks of a turn that ended: the log doesn't have them.
function endBlocks(turn: Turn): void {
  turn.blocks = turn.blocks.filter((b) => b.done);
}

function addUsage(turn: Turn, d: Data & { input?: number }): void {
  const u = turn.usage ?? { calls: 0, input: 0, output: 0, microdollars: 0, priced: true, model: "" };
  turn.usage = {
    calls: u.calls + 1,
    input: u.input + (d.input ?? 0),
    output: u.output + (d.output ?? 0),
    microdollars: u.microdollars + (d.microdollars ?? 0),
    priced: u.priced && d.microdollars !== undefined,
    model: d.model || u.model,
  };
}

// unsaid returns the messages that nothing else shows. The answer of a turn comes twice: as blocks and, once it is sent,
// as a message. A request to people comes as an ask, and as a message whose id begins with the ask's id.
export function unsaid(log: Log): Spoken[] {
  const turns = new Map(log.turns.map((t) => [t.id, t]));
  return log.spoken.filter((s) => {
    const turn = turns.get(s.turn);
    return !(turn && textOf(turn).includes(squeeze(s.text))) && !log.asks.has(s.id.split("#")[0] ?? "");
  });
}

const squeeze = (text: string): string => text.replace(/\s+/g, "");

// textOf returns the text blocks of a turn, without spaces. It keeps the result until the turn changes.
function textOf(turn: Turn): string {
  if (turn.squeezed?.version !== turn.version) {
    const text = squeeze(turn.blocks.filter((b) => b.kind === "text").map((b) => b.text).join(""));
    turn.squeezed = { version: turn.version, text };
  }
  return turn.squeezed.text;
}
