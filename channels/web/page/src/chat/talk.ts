// The conversation on the screen: its log, its stream, and the messages that are being sent to it.
import { get, path, tellOf } from "../api.ts";
import type { Ask } from "../schemas.ts";
import { follow } from "../stream.ts";
import { Drawn, whenIdle } from "./drawn.ts";
import { EarlierTurns } from "./earlier.ts";
import { Log, type Spoken, type Turn } from "./log.ts";
import { deliver, followCommand, followDelivery, isCommand, type Message, newMessage, outbox, type Upload } from "./sending.ts";
import { Work } from "./work.ts";

// patience is how long the first message waits for the stream, in milliseconds.
const patience = 3000;

// A snapshot with this many turns or more may have left out earlier ones.
const fullSnapshot = 8;

// So that a page that is left open doesn't grow forever, it drops its oldest turns when there are more than mostTurns,
// until only keptTurns are left. They can be read again as earlier ones. It drops fewTurns at a time, so that nobody
// notices.
const mostTurns = 120;
const keptTurns = 90;
const fewTurns = 2;

export class Talk {
  readonly log = new Log();
  messages: Message[] = [];
  live = false;
  away = ""; // why the stream doesn't come back
  problem = "";
  // What comes before the log, in the parts in which it was read: turns, and what was said among them.
  earlier: (Turn | Spoken)[][] = [];
  private readonly first: Message[]; // sent once the stream is open
  private past: EarlierTurns | null = null;
  private readonly left = new AbortController();
  readonly drawn = new Drawn(() => this.log.turns, () => this.draw(), this.left.signal);
  private readonly work: Work;
  private frame = 0;
  private trims = false; // whether turns are being dropped, or soon will be

  // changed is called when there is something new, at most once for each frame on the screen.
  constructor(
    readonly key: string,
    private readonly changed: () => void,
    mayAsk: boolean,
    mayJobs: boolean,
    sent: Message[],
  ) {
    const take = (type: string, data: unknown) => {
      this.log.apply(type, data);
      this.draw();
    };
    this.work = new Work(key, mayJobs, take, this.left.signal);
    this.messages = [...sent, ...outbox.get(key).filter((m) => !sent.some((s) => s.key === m.key))];
    this.first = this.messages.filter((m) => !m.id);
    outbox.set(key, this.messages);
    void follow(
      path(["sessions", key, "events"]),
      {
        event: (type, data) => {
          this.apply(type, data);
          if (type === "snapshot") this.work.readAll();
          if (type === "snapshot" && mayAsk) void this.readAsks();
          this.draw();
        },
        state: (state, why = "") => {
          this.live = state === "live";
          if (this.live) this.begin();
          this.away = why;
          this.draw();
        },
      },
      this.left.signal,
    );
    setTimeout(() => this.begin(), patience);
  }

  // begin sends the first messages once the stream is open. Otherwise, the page could miss the beginning of the answer.
  private begin(): void {
    if (this.left.signal.aborted) return;
    for (const m of this.first.splice(0)) void this.send(m);
  }

  private apply(type: string, data: unknown): void {
    const before = this.log.turns;
    const oldest = before[0]?.id;
    this.leave(this.log.apply(type, data));
    if (type === "snapshot") this.drawn.replace(new Set(before.map((t) => t.id)));
    if (oldest !== undefined && this.log.turns[0]?.id !== oldest) {
      // Some turns may lie between the earlier ones and those in the log.
      this.earlier = [];
      this.past = null;
    }
    if (this.log.turns.length > mostTurns && !this.trims && this.log.mayLeave() > 0) {
      this.trims = true;
      whenIdle(() => this.trim());
    }
  }

  // leave drops the messages that nothing shows anymore.
  private leave(gone: Set<string>): void {
    if (gone.size === 0) return;
    this.messages = this.messages.filter((m) => !m.id || !gone.has(m.id));
    outbox.set(this.key, this.messages);
  }

  // trim drops some of the oldest of what is shown, and the rest later: all at once, it could take so long that the page
  // doesn't act meanwhile.
  private trim(): void {
    if (this.left.signal.aborted) return;
    const before = this.log.turns.length;
    if (this.earlier.length > 0) this.earlier = this.earlier.slice(1);
    else this.leave(this.log.leave(Math.max(keptTurns, before - fewTurns)));
    this.past = null;
    this.draw();
    this.trims = this.earlier.length > 0 || (this.log.turns.length < before && this.log.turns.length > keptTurns);
    if (this.trims) requestAnimationFrame(() => whenIdle(() => this.trim()));
  }

  // mayHaveEarlier reports whether the session may have turns before those on the screen.
  mayHaveEarlier(): boolean {
    return this.past ? !this.past.whole : this.log.turns.length >= fullSnapshot;
  }

  // readEarlier reads some turns before those on the screen.
  async readEarlier(): Promise<void> {
    const past = (this.past ??= new EarlierTurns(this.key, () => this.shown()));
    const found = await past.read(this.left.signal);
    if (this.past !== past) return; // the turns on the screen have changed meanwhile
    if (found.length > 0) this.earlier = [found, ...this.earlier];
    this.work.readAll();
    this.draw();
  }

  // shown returns the ids of the turns, commands and operators' messages on the screen.
  private shown(): Set<string> {
    const ids = new Set<string>();
    for (const x of [...this.log.turns, ...this.log.spoken, ...this.earlier.flat()]) {
      ids.add(x.id);
      if ("turn" in x) ids.add(x.turn);
    }
    ids.delete("");
    return ids;
  }

  // readJob reads what a job of this session has printed.
  readonly readJob = (id: string): void => this.work.readJob(id);

  close(): void {
    this.left.abort();
    cancelAnimationFrame(this.frame);
  }

  // say sends a message, and shows it at once.
  say(text: string, files: Upload[]): void {
    this.add(newMessage(this.key, text, files));
  }

  // sayAsOperator sends a message to the people of this session in place of the agent, and shows it at once.
  sayAsOperator(text: string): void {
    this.add({ ...newMessage(this.key, text, []), operator: true });
  }

  private add(m: Message): void {
    this.messages = [...this.messages, m];
    void this.send(m);
  }

  async send(m: Message): Promise<void> {
    const changed = () => {
      outbox.set(this.key, this.messages);
      this.draw();
    };
    await deliver(m, changed);
    const shown = () => !this.pending().includes(m);
    if (m.operator) await followDelivery(m, changed, shown, this.left.signal);
    else if (isCommand(m)) await followCommand(m, changed, shown, this.left.signal);
  }

  drop(m: Message): void {
    this.messages = this.messages.filter((x) => x !== m);
    this.draw();
  }

  // pending returns the messages that are still waiting: no turn, reply or operator's message in the log shows them yet.
  pending(): Message[] {
    const waiting = this.messages.filter((m) => m.state !== "done");
    if (waiting.length === 0) return waiting;
    const known = new Set<string>();
    for (const t of this.log.turns) {
      for (const c of t.causes) known.add(c);
      for (const b of t.blocks) if (b.kind === "user") known.add(b.cause);
    }
    for (const s of this.log.spoken) known.add(s.operator ? s.id : s.turn);
    return waiting.filter((m) => !m.id || !known.has(m.id));
  }

  // sentOf returns the messages of this page that a turn answers and that the log doesn't have yet.
  sentOf(t: Turn): Message[] {
    return this.messages.filter((m) => m.id && t.causes.includes(m.id) && !t.blocks.some((b) => b.kind === "user" && b.cause === m.id));
  }

  // aside returns what was said outside of turns, each with the message that caused it if this page has sent that: such a
  // message is a command, and what was said is its reply.
  aside(said: Spoken[], turns: Set<string>): { message?: Message; spoken: Spoken }[] {
    const mine = new Map(this.messages.map((m) => [m.id, m]));
    return said
      .filter((s) => !turns.has(s.turn))
      .map((spoken) => {
        const message = spoken.turn ? mine.get(spoken.turn) : undefined;
        mine.delete(spoken.turn); // the first reply shows it
        return message ? { message, spoken } : { spoken };
      });
  }

  // readAsks reads the open requests of this session, which a snapshot doesn't have.
  private async readAsks(): Promise<void> {
    try {
      const { asks } = await get<{ asks: Ask[] }>(["asks"], { session: this.key }, this.left.signal);
      for (const a of asks) this.log.apply("ask", a);
      this.problem = "";
    } catch (err) {
      if (this.left.signal.aborted) return;
      this.problem = "Couldn't load the open requests: " + tellOf(err);
    }
    this.draw();
  }

  private draw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.changed();
    });
  }
}
