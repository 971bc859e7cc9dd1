// A small chart over time. What it shows is also in a table, for people who can't see it or want the numbers.
import type { JSX } from "preact";
import { type Column, Table } from "../parts.tsx";

const width = 720;
const height = 120;

// A Series is what one color of a chart stands for: one number for each point in time, or none where nothing was measured.
export interface Series {
  name: string;
  look: string; // the class that colors it
  values: (number | null)[];
}

interface ChartProps {
  title: string;
  times: string[]; // the names of the points in time
  series: Series[];
  says: (value: number) => string;
  lines?: boolean; // lines instead of stacked bars
  summary: string; // a sentence, for people who can't see the chart
}

// Chart draws bars or lines, with a legend, and offers a table.
export function Chart({ title, times, series, says, lines, summary }: ChartProps): JSX.Element {
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">{series.map((s) => <li key={s.name}><svg class={"key " + s.look + (lines ? " line" : "")} viewBox="0 0 14 10" aria-hidden="true" focusable="false">{lines ? <path d="M0 5H14" /> : <rect width="14" height="10" />}</svg>{s.name}</li>)}</ul>
      </figcaption>
      <Drawing label={`${title}. ${summary}`} times={times} series={series} says={says} tells={(i) => told(series, i, says)} lines={lines} />
      <Numbers title={title} times={times} series={series} says={says} />
    </figure>
  );
}

interface DrawingProps {
  label: string; // for people who can't see it
  times: string[];
  series: Series[];
  says: (value: number) => string;
  tells: (i: number) => string; // says everything about one point in time
  lines?: boolean;
}

// Drawing is a chart without anything around it.
export function Drawing({ label, times, series, says, tells, lines }: DrawingProps): JSX.Element {
  const most = lines ? Math.max(...series.flatMap((s) => s.values.map((v) => v ?? 0))) : Math.max(...times.map((_, i) => total(series, i)));
  const drawn = lines ? <Lines times={times} series={series} most={most} /> : <Bars times={times} series={series} most={most} />;
  return (
    <>
      <span class="aside">{says(most)}</span>
      <svg class="drawing" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <rect class="rule" width={width} y={height - 1} height="1" />
        {drawn}
        {times.map((time, i) => <rect key={i} class="over" x={(i * width) / times.length} width={width / times.length} height={height}><title>{time}: {tells(i)}</title></rect>)}
      </svg>
      <span class="between aside"><span>{times[0]}</span><span>{times.length > 1 && times.at(-1)}</span></span>
    </>
  );
}

function total(series: Series[], i: number): number {
  return series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0);
}

// told says everything about one point in time.
function told(series: Series[], i: number, says: (value: number) => string): string {
  const all = series.flatMap((s) => (s.values[i] ? [`${s.name} ${says(s.values[i])}`] : []));
  return all.length > 0 ? all.join(", ") : "nothing";
}

function Bars({ times, series, most }: { times: string[]; series: Series[]; most: number }): JSX.Element {
  const step = width / times.length;
  return (
    <>
      {times.map((_, i) => {
        let below = 0;
        return series.map((s) => {
          const value = s.values[i] ?? 0;
          if (value === 0) return null;
          const tall = Math.max(2, (height * value) / most);
          below += tall;
          return <rect key={i + s.name} class={s.look} x={i * step + step * 0.12} width={step * 0.76} y={Math.max(0, height - below)} height={tall} />;
        });
      })}
    </>
  );
}

// Lines draws a line for each series. It is interrupted where nothing was measured.
function Lines({ times, series, most }: { times: string[]; series: Series[]; most: number }): JSX.Element {
  const step = width / times.length;
  const pathOf = (values: (number | null)[]) =>
    values.map((v, i) => {
      if (v === null) return "";
      const x = (i + 0.5) * step;
      const y = height - 2 - ((height - 4) * v) / most;
      const before = values[i - 1];
      const alone = (before === null || before === undefined) && (values[i + 1] ?? null) === null;
      if (alone) return `M${x - step * 0.3} ${y}H${x + step * 0.3}`;
      return `${before === null || before === undefined ? "M" : "L"}${x} ${y}`;
    }).join("");
  return <>{series.map((s) => <path key={s.name} class={"line " + s.look} d={pathOf(s.values)} />)}</>;
}

interface Row {
  time: string;
  at: number;
}

// Numbers is the table of what a chart shows, without the times at which there was nothing.
function Numbers({ title, times, series, says }: { title: string; times: string[]; series: Series[]; says: (value: number) => string }): JSX.Element {
  const rows = times.map((time, at) => ({ time, at })).filter(({ at }) => series.some((s) => s.values[at]));
  const columns: Column<Row>[] = [
    { title: "Time", cell: (r) => r.time },
    ...series.map((s) => ({ title: s.name, cell: (r: Row) => (s.values[r.at] ? says(s.values[r.at] ?? 0) : "–"), number: true })),
  ];
  return (
    <details>
      <summary>Numbers<span class="away"> of {title}</span></summary>
      <Table label={title} columns={columns} rows={rows} id={(r) => String(r.at)} empty="Nothing was counted." />
    </details>
  );
}
