// A turn: what people said, the answer with its tool calls, and its state.
import { Component, Fragment, type JSX } from "preact";
import { bytes, count, dollars, grouped } from "../amounts.ts";
import { WhyLink } from "../parts.tsx";
import type { Ask, Me } from "../schemas.ts";
import { AskCard } from "./ask.tsx";
import { BesideCard } from "./beside.tsx";
import { CallCard } from "./call.tsx";
import { CanvasCard } from "./canvas.tsx";
import type { Beside, Block, Spoken, Turn, Usage } from "./log.ts";
import { Markdown } from "../markdown/markdown.tsx";
import type { Message } from "./sending.ts";

interface TurnProps {
  session: string;
  turn: Turn;
  version: number; // changes whenever the turn does
  sent: Message[]; // messages of this page that the log doesn't have yet
  said: Spoken[]; // in addition to the blocks
  asks: Ask[];
  beside: Beside[]; // what its calls have started
  readJob: (id: string) => void;
  me: Me;
  numbered?: boolean; // the blocks have the numbers of their entries, and can be found by them
}

// TurnView draws again only when its turn changed.
export class TurnView extends Component<TurnProps> {
  override shouldComponentUpdate(next: TurnProps): boolean {
    const now = this.props;
    return next.turn !== now.turn || next.version !== now.version || next.sent.length !== now.sent.length || next.said.length !== now.said.length || next.asks.length !== now.asks.length || !areSame(next.beside, now.beside);
  }

  override render(): JSX.Element {
    const { session, turn, sent, said, asks, beside, readJob, me, numbered } = this.props;
    const results = new Map(turn.blocks.filter((b) => b.kind === "tool_result").map((b) => [b.call, b]));
    const { placed, rest } = placesOf(asks, turn);
    const cards = (all: Beside[]) => all.map((b) => <BesideCard key={b.id} of={b} me={me} readJob={readJob} />);
    const calls = new Set(turn.blocks.filter((b) => b.kind === "tool_use").map((b) => b.call));
    return (
      <div class="turn" role="group" aria-label="Turn">
        {sent.map((m) => <Said key={m.key} text={m.text} files={m.files} />)}
        {turn.blocks.map((b) => {
          const view = <BlockView session={session} me={me} block={b} turn={turn} result={b.call ? results.get(b.call) : undefined} />;
          return (
            <Fragment key={b.number}>
              {numbered && isShown(b) ? <div class={"numbered " + b.kind} data-n={b.number}>{view}</div> : view}
              {placed.get(b)?.map((a) => <AskCard key={a.id} ask={a} me={me} />)}
              {b.kind === "tool_use" && cards(beside.filter((x) => x.call === b.call))}
            </Fragment>
          );
        })}
        {loose(turn).map((call) => <CallCard key={call.id} session={session} call={call} over={isOver(turn)} />)}
        {cards(beside.filter((x) => !calls.has(x.call)))}
        {rest.map((a) => <AskCard key={a.id} ask={a} me={me} />)}
        {said.map((s) => <div key={s.id} class="spoken"><Markdown text={s.text} /></div>)}
        <Standing turn={turn} told={said.length > 0} me={me} />
      </div>
    );
  }
}

// areSame reports whether two lists contain the same objects.
function areSame(some: Beside[], others: Beside[]): boolean {
  return some.length === others.length && some.every((b, i) => b === others[i]);
}

// placesOf assigns each request to the block of a call to the same tool, after which it is shown. rest contains the
// requests for which there is no such block.
function placesOf(asks: Ask[], turn: Turn): { placed: Map<Block, Ask[]>; rest: Ask[] } {
  const placed = new Map<Block, Ask[]>();
  const rest: Ask[] = [];
  for (const a of asks) {
    const block = turn.blocks.find((b) => b.kind === "tool_use" && b.tool === a.tool && !placed.has(b));
    if (block) placed.set(block, [a]);
    else rest.push(a);
  }
  return { placed, rest };
}

// isShown reports whether a block is shown by itself, and not by its call.
const isShown = (b: Block): boolean => b.kind !== "tool_result" && (b.kind === "tool_use" || b.kind === "user" || b.text.trim() !== "");

const isOver = (t: Turn): boolean => t.state !== "running" && t.state !== "parked";

// loose returns the calls that have no block.
function loose(turn: Turn) {
  return [...turn.calls.values()].filter((c) => !turn.blocks.some((b) => b.kind === "tool_use" && b.call === c.id));
}

function BlockView({ session, me, block, turn, result }: { session: string; me: Me; block: Block; turn: Turn; result: Block | undefined }): JSX.Element | null {
  switch (block.kind) {
    case "user":
      return (
        <Said text={block.text} name={block.name === me.name ? "" : block.name} cut={block.cut}>
          <MessageWhy of={block.cause === turn.id ? "" : block.cause} me={me} />
        </Said>
      );
    case "thinking":
      return block.text.trim() ? <Thought block={block} /> : null;
    case "text":
      return block.text.trim() ? <div class="answer"><Markdown text={block.late ? "… " + block.text.trimStart() : block.text} /></div> : null;
    case "tool_use":
      return (
        <>
          <CallCard session={session} call={turn.calls.get(block.call)} use={block} result={result} over={isOver(turn)} />
          <CanvasCard session={session} use={block} result={result} />
        </>
      );
    default:
      return null; // its call shows it
  }
}

// MessageWhy is a link with which admins see what happened to a message. The first message of a turn has none, because
// the turn's own link leads there.
export function MessageWhy({ of, me }: { of: string; me: Me }): JSX.Element | null {
  return me.may.admin && of ? <div class="standing"><WhyLink of={of} /></div> : null;
}

function Thought({ block }: { block: Block }): JSX.Element {
  return (
    <details class="thought">
      <summary>{block.done ? "Thought" : "Thinking…"}</summary>
      <Markdown text={block.text} />
    </details>
  );
}

interface SaidProps {
  text: string;
  name?: string;
  files?: { name: string; size: number; preview?: string }[];
  cut?: boolean;
  children?: JSX.Element | null;
}

// Said shows what a person wrote, as plain text.
export function Said({ text, name, files = [], cut, children }: SaidProps): JSX.Element {
  return (
    <div class="said">
      {name && <div class="said-name">{name}</div>}
      {text && <div class="said-text">{text}{cut && " … (the log has the rest)"}</div>}
      {files.length > 0 && (
        <ul class="files" aria-label="Files">
          {files.map((f, i) => (
            <li key={i} class="file">
              {f.preview && <img src={f.preview} alt="" />}
              <span>{f.name}</span> <span class="faint">{bytes(f.size)}</span>
            </li>
          ))}
        </ul>
      )}
      {children}
    </div>
  );
}

// Aside shows what was said outside of turns, such as commands and their replies.
export function Aside({ said, me }: { said: { message?: Message; spoken: Spoken }[]; me: Me }): JSX.Element {
  return (
    <>
      {said.map(({ message, spoken }) => (
        <div key={spoken.id} class="turn">
          {message ? <Said text={message.text} /> : spoken.command && <Said text={"/" + spoken.command} />}
          {spoken.operator || spoken.told ? <OthersSaid spoken={spoken} me={me} /> : <><div class="spoken"><Words spoken={spoken} /></div><MessageWhy of={spoken.turn || spoken.id} me={me} /></>}
        </div>
      ))}
    </>
  );
}

// Words shows the text of what was said.
function Words({ spoken: { text, cut } }: { spoken: Spoken }): JSX.Element {
  return (
    <>
      <Markdown text={text} />
      {cut && <div class="faint">… (the log has the rest)</div>}
    </>
  );
}

// OthersSaid shows what an operator said in place of the agent, or what the agent said on behalf of somebody else.
function OthersSaid({ spoken, me }: { spoken: Spoken; me: Me }): JSX.Element {
  const { id, operator, told } = spoken;
  return (
    <div class={"said " + (operator ? "operator" : "told")}>
      <div class="said-name">{operator ? <>Operator{operator.name && ` (${operator.name})`}</> : <>On behalf of {told?.name || "somebody"}</>}</div>
      <Words spoken={spoken} />
      <MessageWhy of={id} me={me} />
    </div>
  );
}

// Standing shows the state of a turn and what it used. For admins, it links to what happened in the turn.
function Standing({ turn, told, me }: { turn: Turn; told: boolean; me: Me }): JSX.Element | null {
  const state = stateOf(turn);
  // If the agent said why the turn failed, that is clearer than the error.
  const why = turn.error && !told && turn.state === "failed" ? turn.error.message : "";
  if (!state && !turn.usage && turn.compacted === 0 && !me.may.admin) return null;
  return (
    <div class={"standing " + turn.state}>
      {state && <span class={isOver(turn) ? "" : "pulse"}>{state}</span>}
      {why && <span>{why}</span>}
      {turn.compacted > 0 && <span title="The model now sees a summary in place of earlier messages">summarized earlier messages</span>}
      {turn.usage && <UsageView usage={turn.usage} />}
      {me.may.admin && <WhyLink of={turn.id} />}
    </div>
  );
}

function stateOf(turn: Turn): string {
  switch (turn.state) {
    case "done":
      return "";
    case "failed":
      return "Failed";
    case "cancelled":
      return "Stopped";
    case "parked":
      return "Waiting for an answer";
  }
  const r = turn.retry;
  if (!r) return "Working…";
  const whom = r.to ? ` ${r.to}` : "";
  const wait = r.after_ms >= 1000 ? ` in ${Math.round(r.after_ms / 1000)} s` : "";
  return r.to && r.from && r.to !== r.from ? `${r.from} didn't answer. Trying${whom}${wait}…` : `Asking the model again${wait} (attempt ${r.attempt})…`;
}

function UsageView({ usage }: { usage: Usage }): JSX.Element {
  const cost = usage.priced ? ` · ${dollars(usage.microdollars)}` : "";
  return (
    <span title={`${usage.model}: ${count(usage.calls, "model call")}`}>
      {grouped(usage.input)} tokens in · {grouped(usage.output)} out{cost}
    </span>
  );
}
