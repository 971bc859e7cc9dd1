// What happened over time: answers and errors, how long people waited, how calls of tools went, and the cost.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, dayOf, daysBetween, dollars, grouped, length, momentsBetween } from "../amounts.ts";
import { get } from "../api.ts";
import { type Column, Table } from "../parts.tsx";
import { Chart, type Series } from "./chart.tsx";
import { Bar, Block, Name, State } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { Activity, ActivitySum, ToolActivity, Usage, UsageSum } from "./schemas.ts";

const hour = 3_600_000;
const day = 24 * hour;

// The periods that people can choose.
const spans = {
  day: { title: "the last 24 hours", by: "hour", back: 23 * hour, step: hour },
  month: { title: "the last 30 days", by: "day", back: 29 * day, step: day },
  quarter: { title: "the last 90 days", by: "day", back: 89 * day, step: day },
} as const;

type Span = keyof typeof spans;

// The shortest time between two readings, in milliseconds, because events may come many times in a second.
const apart = { hour: 2000, day: 20_000 };

export function Trends(): JSX.Element {
  const [span, setSpan] = useState<Span>("day");
  const { by, back } = spans[span];
  const since = () => new Date(Date.now() - back).toISOString();
  const read = useRefreshed((signal) => get<Activity>(["activity"], { by, since: since() }, signal), span, 60, ["turn_complete", "turn_error"], apart[by]);
  return (
    <Block title="Over time" wide>
      <div class="filters">
        <label>
          Show
          <select value={span} onChange={(e) => setSpan(e.currentTarget.value as Span)}>
            {(Object.keys(spans) as Span[]).map((s) => <option key={s} value={s}>{spans[s].title}</option>)}
          </select>
        </label>
        {by === "day" && <span class="aside">Days are in UTC.</span>}
      </div>
      <State {...read} />
      <div class="charts">
        {read.value && <Plots of={read.value} span={span} />}
        <CostPlot />
      </div>
      {read.value && read.value.total.calls > 0 && <Tools tools={read.value.total.tools} more={read.value.total.more_tools} />}
    </Block>
  );
}

// nameOf returns the name of an hour, as people's clocks show it, or of a day.
function nameOf(at: number, step: number): string {
  if (step === day) return dayOf(at);
  return new Date(at).toLocaleString("en-US", { weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

function Plots({ of, span }: { of: Activity; span: Span }): JSX.Element {
  const { title, step } = spans[span];
  const { turns } = of.total;
  const bad = turns.failed + turns.given_up;
  const ended = bad + turns.done + turns.stopped + turns.refused;
  if (ended === 0 && of.total.calls === 0) {
    return <p class="none">No turn has ended in {title}. When the agent answers, you'll see here how many answers there are, how long they take, and how its tools do.</p>;
  }
  const known = new Map(of.sums.map((s) => [Date.parse(s.at), s]));
  const points = momentsBetween(Date.parse(of.since), Date.now(), step);
  const times = points.map((at) => nameOf(at, step));
  const each = (pick: (s: ActivitySum) => number | null) => points.map((at) => {
    const sum = known.get(at);
    return sum ? pick(sum) : null;
  });
  const turnSeries: Series[] = [
    { name: "Answered", look: "c-main", values: each((s) => s.turns.done) },
    { name: "Failed", look: "c-bad", values: each((s) => s.turns.failed) },
    { name: "Given up", look: "c-warn", values: each((s) => s.turns.given_up) },
    { name: "Stopped", look: "c-faint", values: each((s) => s.turns.stopped) },
    { name: "Refused by a limit", look: "c-good", values: each((s) => s.turns.refused) },
  ];
  return (
    <>
      <Chart title="Answers and errors" times={times} series={turnSeries} says={grouped}
        summary={`In ${title}: ${count(turns.done, "answer")}, ${grouped(bad)} failed or given up, ${grouped(turns.stopped)} stopped, ${grouped(turns.refused)} refused.`} />
      <Latency title="Until the first text" of={of} times={times} each={each} pick={(s) => s.first_token} />
      <Latency title="Until the answer is complete" of={of} times={times} each={each} pick={(s) => s.answer} />
      {of.total.calls > 0 && (
        <Chart title="Tool calls" times={times} says={grouped} summary={`In ${title}: ${count(of.total.calls, "call")}, of which ${grouped(of.total.failed_calls)} didn't succeed.`}
          series={[{ name: "Succeeded", look: "c-main", values: each((s) => s.calls - s.failed_calls) }, { name: "Didn't succeed", look: "c-bad", values: each((s) => s.failed_calls) }]} />
      )}
    </>
  );
}

interface LatencyProps {
  title: string;
  of: Activity;
  times: string[];
  each: (pick: (s: ActivitySum) => number | null) => (number | null)[];
  pick: (s: ActivitySum) => ActivitySum["answer"];
}

// Latency shows how long half of the answers took at most, and how long 95 in 100 did.
function Latency({ title, of, times, each, pick }: LatencyProps): JSX.Element {
  const all = pick(of.total);
  if (all.count === 0) return <figure class="chart"><figcaption><h3>{title}</h3></figcaption><p class="none">No answers yet.</p></figure>;
  const valuesOf = (ms: "p50_ms" | "p95_ms") => each((s) => (pick(s).count > 0 ? pick(s)[ms] : null));
  const series = [{ name: "Half of them (p50)", look: "c-main", values: valuesOf("p50_ms") }, { name: "95 in 100 (p95)", look: "c-warn dashed", values: valuesOf("p95_ms") }];
  return (
    <Chart title={title} times={times} series={series} says={length} lines
      summary={`Half of ${count(all.count, "answer")} took up to ${length(all.p50_ms)}, and 95 in 100 up to ${length(all.p95_ms)}.`} />
  );
}

// outcomes maps the outcomes of calls, except success, to the words that people read.
const outcomes: Record<string, string> = { failed: "failed", denied: "denied", timeout: "timed out", cancelled: "canceled", unknown: "outcome unknown" };

// Tools shows how tool calls ended, by tool, in the order of the list.
function Tools({ tools, more }: { tools: ToolActivity[]; more: boolean }): JSX.Element {
  const columns: Column<ToolActivity>[] = [
    { title: "Tool", cell: (t) => <Name of={t.tool} /> },
    { title: "Calls", cell: (t) => grouped(t.calls), number: true },
    { title: "Success", cell: (t) => <Success of={t} /> },
    { title: "Other outcomes", cell: (t) => Object.entries(t.outcomes).filter(([how, n]) => how !== "ok" && n > 0).map(([how, n]) => `${grouped(n)} ${outcomes[how] ?? how}`).join(", ") },
  ];
  return (
    <>
      <h3>Tools</h3>
      <Table label="Tool calls and how they ended" columns={columns} rows={tools} id={(t) => t.tool} empty="No tools were called." />
      {more && <p class="aside">Other tools were called, too, but less often.</p>}
    </>
  );
}

function Success({ of }: { of: ToolActivity }): JSX.Element {
  const good = (100 * (of.outcomes.ok ?? 0)) / of.calls;
  return (
    <span class="success">
      <span>{good === 100 ? "100" : Math.min(99, Math.floor(good))}%</span>
      <Bar spent={good} look={good >= 90 ? "" : good >= 50 ? "near" : "over"} />
    </span>
  );
}

// The colors of the models that cost the most. All other models are drawn together.
const colors = ["c-main", "c-good", "c-warn", "c-bad"];
const costDays = 14;

// CostPlot shows what each model costs by day. It is read only every 5 minutes, because the sums of many days are a lot to
// read.
function CostPlot(): JSX.Element | null {
  const to = dayOf(Date.now());
  const from = dayOf(Date.now() - (costDays - 1) * day);
  const read = useRefreshed((signal) => get<Usage>(["usage"], { by: "day,model", from, to }, signal), from, 300);
  if (!read.value) return read.error ? <State {...read} /> : null;
  const spent = read.value.usage.filter((u) => u.microdollars > 0);
  if (spent.length === 0) return null;
  const times = daysBetween(from, to);
  const sum = spent.reduce((all, u) => all + u.microdollars, 0);
  return (
    <Chart title="Cost by day and model" times={times} series={modelSeries(spent, times)} says={dollars} summary={`${dollars(sum)} in ${costDays} days, which are in UTC.`} />
  );
}

// modelSeries returns what models cost by day: the most expensive ones first, and then all others together.
function modelSeries(spent: UsageSum[], times: string[]): Series[] {
  const sums = new Map<string, number>();
  for (const u of spent) sums.set(u.then ?? "", (sums.get(u.then ?? "") ?? 0) + u.microdollars);
  const models = [...sums].sort((a, b) => b[1] - a[1]).map(([model]) => model);
  const of = (mine: (model: string) => boolean) => times.map((time) => spent.reduce((all, u) => (u.key === time && mine(u.then ?? "") ? all + u.microdollars : all), 0) || null);
  const series = models.slice(0, colors.length).map((model, i) => ({ name: model || "unknown", look: colors[i] ?? "", values: of((m) => m === model) }));
  const rest = models.slice(colors.length);
  if (rest.length > 0) series.push({ name: "others", look: "c-faint", values: of((m) => rest.includes(m)) });
  return series;
}
