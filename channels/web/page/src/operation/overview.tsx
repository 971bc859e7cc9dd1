// The overview: what is running and waiting, the channels, the cost, and how it went over time.
import type { ComponentChildren, JSX } from "preact";
import { count, dayOf, dollars, grouped, plural } from "../amounts.ts";
import { failureOf, get, reach } from "../api.ts";
import { Ago, Since } from "../moments.tsx";
import { WhyLink } from "../parts.tsx";
import { linkTo } from "../route.ts";
import type { Me } from "../schemas.ts";
import type { ViewProps } from "../views.ts";
import { Capped } from "./caps.tsx";
import { Badge, Block, Name, SessionLink, Sheet, State } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import { Trends } from "./trends.tsx";
import type { Readiness, RunningTurn, ServerStatus, Shown, Usage } from "./schemas.ts";

interface Now {
  status: ServerStatus;
  readiness: Readiness;
  usage: Usage;
}

// readNow reads everything that the overview shows.
async function readNow(signal: AbortSignal): Promise<Now> {
  const today = dayOf(Date.now());
  const [status, readiness, usage] = await Promise.all([
    get<ServerStatus>(["status"], {}, signal),
    readReadiness(signal),
    get<Usage>(["usage"], { by: "day", from: today, to: today }, signal),
  ]);
  return { status, readiness, usage };
}

// readReadiness asks which parts are ready. If one isn't, the status is 503, and the body still says which.
async function readReadiness(signal: AbortSignal): Promise<Readiness> {
  const answer = await reach("/readyz", { signal });
  if (!answer.ok && answer.status !== 503) throw await failureOf(answer);
  return (await answer.json()) as Readiness;
}

export function Overview({ me }: ViewProps): JSX.Element {
  const read = useRefreshed(readNow, "", 5, ["turn_start", "parked", "turn_complete", "turn_error", "ask", "ask_resolved", "dead_letter", "job", "channel"]);
  const now = read.value;
  return (
    <Sheet title="Overview">
      <State {...read} />
      {now && (
        <>
          <p class="about">
            Parley {now.status.version} ({now.status.role}), up for <Since at={now.status.started} />{" "}
            <Ready readiness={now.readiness} />
          </p>
          <Tiles now={now} me={me} />
          <div class="blocks">
            <Work status={now.status} me={me} />
            <Channels status={now.status} />
            <Money usage={now.usage} />
            <Later status={now.status} />
          </div>
          <Trends />
        </>
      )}
    </Sheet>
  );
}

function Ready({ readiness }: { readiness: Readiness }): JSX.Element {
  const bad = Object.entries(readiness.parts).filter(([, says]) => says !== "ok");
  if (readiness.ready && bad.length === 0) return <Badge look="good">ready</Badge>;
  return (
    <>
      <Badge look="bad">not ready</Badge>
      {bad.map(([part, says]) => <span key={part} class="trouble"> {part}: {says}</span>)}
    </>
  );
}

// Tiles are the numbers at the top.
function Tiles({ now, me }: { now: Now; me: Me }): JSX.Element {
  const { status, usage } = now;
  const dead = status.topics.reduce((sum, t) => sum + t.dead, 0);
  const down = status.channels.filter((c) => !c.up).length;
  const spent = usage.usage.reduce((sum, u) => sum + u.microdollars, 0);
  const asks = status.asks?.count ?? 0;
  return (
    <ul class="tiles">
      <Tile figure={grouped(status.turns?.count ?? 0)} what="running" />
      <Tile figure={grouped(status.waiting?.count ?? 0)} what="waiting" />
      <Tile figure={grouped(asks)} what={plural(asks, "open request")} look={asks ? "warn" : ""} to={me.may.approve ? linkTo("approvals") : undefined} />
      <Tile figure={grouped(dead)} what={plural(dead, "dead letter")} look={dead ? "bad" : ""} to={me.may.admin ? linkTo("dead-letters") : undefined} />
      <Tile figure={down ? `${down} of ${status.channels.length}` : grouped(status.channels.length)} what={`${plural(status.channels.length, "channel")} ${down ? "down" : "up"}`} look={down ? "bad" : ""} />
      <Tile figure={dollars(spent)} what="today" to={linkTo("usage")} />
    </ul>
  );
}

function Tile({ figure, what, look, to }: { figure: string; what: string; look?: string; to?: string }): JSX.Element {
  const inside = <><strong class={look}>{figure}</strong> <span>{what}</span></>;
  return <li>{to ? <a href={to}>{inside}</a> : <div>{inside}</div>}</li>;
}

// doing says what a turn is doing now.
function doing(t: RunningTurn): JSX.Element {
  if (!t.turn) return <>starting or finishing</>;
  if (t.calls.length === 0) return <>calling the model</>;
  return <>running {t.calls.map((c, i) => <span key={c.call}>{i > 0 && ", "}<code>{c.tool || "a tool"}</code> for <Since at={c.since} /></span>)}</>;
}

// Items lists the first few things, and says how many more there are.
function Items<T>({ of, id, item, empty }: { of?: Shown<T>; id: (one: T) => string; item: (one: T) => ComponentChildren; empty: string }): JSX.Element {
  if (!of || of.count === 0) return <p class="none">{empty}</p>;
  return (
    <>
      <ul class="items">{of.list.map((one) => <li key={id(one)}>{item(one)}</li>)}</ul>
      {of.count > of.list.length && <p class="none">and {grouped(of.count - of.list.length)} more</p>}
    </>
  );
}

// Work shows what is running and what is waiting.
function Work({ status, me }: { status: ServerStatus; me: Me }): JSX.Element {
  return (
    <>
      <Block title="Running now">
        <Items of={status.turns} id={(t) => t.session} empty="Nothing is running. You'll see a turn here while the agent works on an answer."
          item={(t) => <><SessionLink of={t.session} /><span class="aside">{doing(t)}; <Since at={t.since} /> so far{t.person && <>, <Name of={t.person} /></>} {me.may.admin && <WhyLink of={t.turn} />}</span></>} />
      </Block>
      <Block title="Waiting for a worker">
        <Items of={status.waiting} id={(w) => w.session} empty="No messages are waiting."
          item={(w) => <><SessionLink of={w.session} /><span class="aside">{count(w.messages, "message")}, the first one <Ago at={w.since} />{w.next && <>; next try <Ago at={w.next} /></>} {me.may.admin && <WhyLink of={w.session} />}</span></>} />
      </Block>
      <Block title="Waiting for people">
        <Items of={status.asks} id={(a) => a.id} empty="No open requests."
          item={(a) => <>{me.may.approve ? <a href={linkTo("approvals", a.id)}>{a.tool || a.kind}</a> : <strong>{a.tool || a.kind}</strong>}<span class="aside">for <Name of={a.person} />, asked <Ago at={a.since} />; expires <Ago at={a.expires} />; {a.decides.join(" or ")} can answer</span></>} />
      </Block>
      <Block title="Jobs">
        <Items of={status.jobs} id={(j) => j.id} empty="No background commands are running."
          item={(j) => <><SessionLink of={j.session} /><span class="aside"><code>{j.tool}</code> for <Since at={j.since} />; times out <Ago at={j.deadline} /></span></>} />
      </Block>
    </>
  );
}

function Channels({ status }: { status: ServerStatus }): JSX.Element {
  const dead = status.topics.filter((t) => t.dead > 0);
  return (
    <Block title="Channels">
      {status.channels.length === 0 && <p class="none">No channels are configured. Run parley onboard to add one.</p>}
      <ul class="items">
        {status.channels.map((c) => (
          <li key={c.name}>
            <span><strong>{c.name}</strong> {c.up ? <Badge look="good">up</Badge> : <Badge look="bad">down</Badge>}{c.since && <span class="aside"> for <Since at={c.since} /></span>}</span>
            {!c.up && c.reason && <span class="trouble">{c.reason}</span>}
            {(c.platform || c.bot) && <span class="aside">{c.platform}{c.bot && <> as <Name of={c.bot} /></>}</span>}
            {c.last_in && <span class="aside">last message from people <Ago at={c.last_in} /></span>}
            {c.last_out && <span class="aside">last message sent <Ago at={c.last_out} /></span>}
          </li>
        ))}
      </ul>
      {dead.length > 0 && (
        <>
          <h3>Dead letters</h3>
          <ul class="items">{dead.map((t) => <li key={t.topic}><span><Name of={t.topic} />: {count(t.dead, "dead letter")}</span></li>)}</ul>
        </>
      )}
    </Block>
  );
}

function Money({ usage }: { usage: Usage }): JSX.Element {
  const calls = usage.usage.reduce((sum, u) => sum + u.calls, 0);
  const unpriced = usage.usage.reduce((sum, u) => sum + u.unpriced, 0);
  return (
    <Block title="Cost">
      <p class="none">{calls === 0 ? "No model calls today (UTC)." : `${count(calls, "model call")} today (UTC).`}{unpriced > 0 && ` The price of ${grouped(unpriced)} is unknown.`}</p>
      <Capped caps={usage.caps} />
    </Block>
  );
}

function Later({ status }: { status: ServerStatus }): JSX.Element {
  return (
    <Block title="Due next">
      <Items of={status.schedules} id={(d) => d.id} empty="Nothing is scheduled."
        item={(d) => <><Ago at={d.next} /><span class="aside">for <Name of={d.person} /> in <SessionLink of={d.session} /></span></>} />
    </Block>
  );
}
