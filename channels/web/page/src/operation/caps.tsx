// The caps on what models may cost, and what's left of them.
import type { JSX } from "preact";
import { exactDollars } from "../amounts.ts";
import { Bar, Name } from "./pieces.tsx";
import type { Cap } from "./schemas.ts";

// Capped shows the caps, each with a bar.
export function Capped({ caps }: { caps: Cap[] }): JSX.Element {
  if (caps.length === 0) return <p class="none">No cap is in effect, because no model has a known price. See docs/models.md to set prices.</p>;
  return <ul class="caps">{caps.map((c) => <li key={c.of + c.span}><OneCap cap={c} /></li>)}</ul>;
}

function OneCap({ cap }: { cap: Cap }): JSX.Element {
  const { most_microdollars: most, spent_microdollars: spent, reserved_microdollars: reserved } = cap;
  const left = Math.max(0, most - spent - reserved);
  const of = (n: number) => (most > 0 ? (100 * n) / most : 100);
  const used = of(spent + reserved);
  return (
    <>
      <span class="between">
        <span title={cap.setting}>{cap.of === "all" ? "Everyone" : <Name of={cap.of} />}, {cap.span === "day" ? "today" : "this month"}</span>
        <span>{exactDollars(spent)} of {exactDollars(most)}</span>
      </span>
      <Bar spent={of(spent)} kept={of(reserved)} look={used >= 100 ? "over" : used >= 80 ? "near" : ""} />
      <span class="aside">{left > 0 ? `${exactDollars(left)} left` : "nothing left"}{reserved > 0 && `, ${exactDollars(reserved)} reserved`}</span>
    </>
  );
}
