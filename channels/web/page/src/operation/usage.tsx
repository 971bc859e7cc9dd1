// Usage: what models used and cost, by day and by other groups, and what's left of the caps.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, dayOf, daysBetween, dollars, dollarsAlike, grouped } from "../amounts.ts";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Button, type Column, Table, useLoaded } from "../parts.tsx";
import { Capped } from "./caps.tsx";
import { Drawing } from "./chart.tsx";
import { csv, download } from "./csv.ts";
import { Block, Sheet, State } from "./pieces.tsx";
import type { Usage, UsageSum } from "./schemas.ts";

const groupings = { day: "Day", model: "Model", person: "Person", agent: "Agent", session: "Session" };

type Grouping = keyof typeof groupings;

// today and monthBegin are days in UTC, like the days of the API.
function today(): string {
  return dayOf(Date.now());
}

function monthBegin(): string {
  return today().slice(0, 8) + "01";
}

export function UsageView(): JSX.Element {
  const [from, setFrom] = useState(monthBegin);
  const [to, setTo] = useState(today);
  const [by, setBy] = useState<Grouping>("model");
  const span = from + " " + to;
  const days = useLoaded((signal) => get<Usage>(["usage"], { by: "day", from, to }, signal), span);
  return (
    <Sheet title="Usage" about="What models used and cost. Days are in UTC.">
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>From<input type="date" value={from} max={to} onChange={(e) => setFrom(e.currentTarget.value || monthBegin())} /></label>
        <label>To<input type="date" value={to} min={from} onChange={(e) => setTo(e.currentTarget.value || today())} /></label>
      </form>
      <State {...days} />
      {days.value && (
        <>
          <Block title="What's left now"><Capped caps={days.value.caps} /></Block>
          <Block title="By day" wide>
            <Plot days={days.value.usage} from={from} to={to} />
            <Sums by="day" sums={days.value.usage} span={span} />
          </Block>
          <Other by={by} choose={setBy} from={from} to={to} />
          <p class="aside">Prices as of {days.value.prices}.</p>
        </>
      )}
    </Sheet>
  );
}

// Plot draws what each day cost, or its tokens if no price is known. The table below says the same, so screen readers
// get a sentence instead.
function Plot({ days, from, to }: { days: UsageSum[]; from: string; to: string }): JSX.Element | null {
  const priced = days.some((d) => d.microdollars > 0);
  const says = priced ? dollars : (tokens: number) => grouped(tokens) + " tokens";
  const times = daysBetween(from, to);
  const sums = times.map((day) => days.find((d) => d.key === day));
  const values = sums.map((u) => (u ? (priced ? u.microdollars : tokensOf(u)) : 0));
  const most = Math.max(0, ...values);
  if (most === 0) return null;
  const tells = (i: number) => {
    const u = sums[i];
    return u ? `${priced ? dollars(u.microdollars) + ", " : ""}${count(u.calls, "call")}, ${grouped(tokensOf(u))} tokens` : "nothing";
  };
  const highest = values.indexOf(most);
  const label = `${priced ? "Cost" : "Tokens"} per day from ${from} to ${to}. Highest: ${times[highest]}: ${tells(highest)}. The table below lists all days.`;
  return <div class="plot"><Drawing label={label} times={times} series={[{ name: "", look: "c-main", values }]} says={says} tells={tells} /></div>;
}

const tokensOf = (u: UsageSum): number => u.input + u.output;

// Other groups usage by something other than days.
function Other({ by, choose, from, to }: { by: Grouping; choose: (by: Grouping) => void; from: string; to: string }): JSX.Element {
  const span = from + " " + to;
  const read = useLoaded((signal) => get<Usage>(["usage"], { by, from, to }, signal).then((u) => ({ by, sums: u.usage })), by + " " + span);
  return (
    <Block title={"By " + by} wide>
      <div class="filters">
        <label>
          Group by
          <select value={by} onChange={(e) => choose(e.currentTarget.value as Grouping)}>
            {(Object.keys(groupings) as Grouping[]).filter((g) => g !== "day").map((g) => <option key={g} value={g}>{groupings[g].toLowerCase()}</option>)}
          </select>
        </label>
      </div>
      <State {...read} />
      {read.value && read.value.by === by && <Sums by={by} sums={read.value.sums} span={span} />}
    </Block>
  );
}

// costOf says what the calls of a row cost. A star means that the sum is incomplete or an estimate.
function costOf(u: UsageSum, money: (micro: number) => string): string {
  if (u.unpriced === u.calls && u.calls > 0) return "unknown";
  return money(u.microdollars) + (u.unpriced + u.estimated > 0 ? " *" : "");
}

// Sums is a table of sums, with a button that saves it as a file.
function Sums({ by, sums, span }: { by: Grouping; sums: UsageSum[]; span: string }): JSX.Element {
  const money = dollarsAlike(sums.map((u) => u.microdollars));
  const columns: Column<UsageSum>[] = [
    { title: groupings[by], cell: (u) => showHidden(u.key || "(erased)") },
    { title: "Calls", cell: (u) => grouped(u.calls), number: true },
    { title: "Input", cell: (u) => grouped(u.input), number: true },
    { title: "Cached", cell: (u) => grouped(u.cached), number: true },
    { title: "Output", cell: (u) => grouped(u.output), number: true },
    { title: "Reasoning", cell: (u) => grouped(u.reasoning), number: true },
    { title: "Cost", cell: (u) => costOf(u, money), number: true },
  ];
  const unpriced = sums.reduce((sum, u) => sum + u.unpriced, 0);
  const estimated = sums.reduce((sum, u) => sum + u.estimated, 0);
  const save = () => download(`parley-usage-by-${by}-${span.replace(" ", "-to-")}.csv`, tableOf(by, sums));
  return (
    <>
      <Table label={`Usage by ${by}; input, cached, output and reasoning are tokens`} columns={columns} rows={sums} id={(u) => u.key} empty="No model calls in this period." />
      {unpriced > 0 && <p class="aside">* The cost of {count(unpriced, "call")} is unknown. See docs/models.md to set prices.</p>}
      {estimated > 0 && <p class="aside">* The tokens of {count(estimated, "call")} are estimates, because the provider didn't count them.</p>}
      {sums.length > 0 && <div class="after"><Button onPress={save} label={`Download CSV: usage by ${by}`}>Download CSV</Button></div>}
    </>
  );
}

// tableOf writes the sums for other programs, with dollars as plain numbers.
function tableOf(by: Grouping, sums: UsageSum[]): string {
  const head = [by, "calls", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "dollars", "calls_estimated", "calls_unpriced"];
  return csv([head, ...sums.map((u) => [u.key, u.calls, u.input, u.cached, u.output, u.reasoning, (u.microdollars / 1e6).toFixed(6), u.estimated, u.unpriced])]);
}
