// Doctor: what the server finds when it checks everything that it needs, and what to do about it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count, length } from "../amounts.ts";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, ErrorNote, Table, useLoaded } from "../parts.tsx";
import { Badge, Sheet } from "./pieces.tsx";
import type { Checkup, Finding } from "./schemas.ts";

// How long to wait before asking again while the server still checks, in milliseconds. The server itself waits, too.
const pause = 1000;

export function Doctor(): JSX.Element {
  const read = useLoaded((signal) => get<Checkup>(["doctor"], {}, signal), "");
  const checkup = read.value;
  const [asked, setAsked] = useState(false); // and no answer yet
  const running = asked || (checkup?.running ?? false);
  useEffect(() => {
    setAsked(false);
    if (!checkup?.running) return undefined;
    const soon = setTimeout(read.again, pause);
    return () => clearTimeout(soon);
  }, [checkup, read.error]);
  const again = () => {
    setAsked(true);
    read.again();
  };
  return (
    <Sheet title="Doctor" about="What the server finds when it checks its settings, its data, the model and the platforms, like parley doctor. This takes a few seconds, and sends the model a short request.">
      <div class="filters"><Again checkup={checkup} running={running} again={again} /></div>
      <ErrorNote error={read.error} again={again} />
      <p class="aside">
        <span role="status">{running || (!checkup && !read.error) ? "Checking…" : checkup && summaryOf(checkup.findings)}</span>{" "}
        {checkup?.at && <>Checked <Ago at={checkup.at} />, in {length(checkup.took_ms)}.</>}
      </p>
      {checkup?.at && <Findings of={checkup.findings} />}
    </Sheet>
  );
}

// Again starts the next check. The server keeps its findings for a short while, so the button waits for that.
function Again({ checkup, running, again }: { checkup?: Checkup; running: boolean; again: () => void }): JSX.Element {
  const [, tick] = useState(0);
  const wait = checkup?.again ? Math.max(0, new Date(checkup.again).getTime() - Date.now()) : 0;
  useEffect(() => {
    if (wait === 0) return undefined;
    const soon = setTimeout(() => tick((n) => n + 1), Math.min(wait, 1000));
    return () => clearTimeout(soon);
  });
  return (
    <>
      <Button look="main" disabled={!checkup || running || wait > 0} onPress={again}>Check again</Button>
      {wait > 0 && !running && <span class="aside">in {length(Math.ceil(wait / 1000) * 1000)}</span>}
    </>
  );
}

function summaryOf(findings: Finding[]): string {
  const bad = findings.filter((f) => f.state === "wrong").length;
  if (bad > 0) return count(bad, "thing") + (bad === 1 ? " needs" : " need") + " a change.";
  return "Everything works.";
}

const looks = { wrong: "bad", note: "warn", ok: "good" } as const;

const order = ["wrong", "note", "ok"];

function Findings({ of }: { of: Finding[] }): JSX.Element {
  const rows = of.map((f, n) => ({ ...f, n })).sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.n - b.n);
  return (
    <Table
      label="What was checked, problems first"
      rows={rows}
      id={(f) => String(f.n)}
      empty="Nothing was checked."
      columns={[
        { title: "Part", cell: (f) => <strong class="name part">{showHidden(f.part)}</strong> },
        { title: "State", cell: (f) => <Badge look={looks[f.state]}>{f.state}</Badge> },
        { title: "Finding", cell: (f) => <span class="name">{showHidden(f.detail)}</span> },
        { title: "What to do", cell: (f) => f.remedy && <span class="name">{showHidden(f.remedy)}</span> },
      ]}
    />
  );
}
