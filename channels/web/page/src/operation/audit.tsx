// The audit: who did what, newest first.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, dollars, grouped, length } from "../amounts.ts";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, Table, useLoaded, WhyLink } from "../parts.tsx";
import { Badge, Json, Name, SessionLink, Sheet, State } from "./pieces.tsx";
import type { AuditRecord } from "./schemas.ts";

const kinds = ["turn", "refusal", "tool", "pairing", "export", "replay", "forget", "job", "approval", "schedule", "operator", "memory", "sign_in", "judgement"];

interface Filter {
  kind: string;
  session: string;
  person: string;
}

interface Page {
  records: AuditRecord[];
  next?: number;
}

export function Audit({ rest }: { rest: string[] }): JSX.Element {
  const [filter, setFilter] = useState<Filter>({ kind: "", session: rest[0] ?? "", person: "" });
  const [pages, setPages] = useState<number[]>([]); // the record before each page; the current page comes last
  const after = pages.at(-1);
  const read = useLoaded((signal) => get<Page>(["audit"], { ...filter, order: "desc", limit: 50, after }, signal), JSON.stringify([filter, after]));
  const choose = (f: Filter) => {
    setFilter(f);
    setPages([]);
  };
  return (
    <Sheet title="Audit" about="What happened, newest first.">
      <Filters filter={filter} choose={choose} refresh={read.again} />
      <State {...read} />
      {read.value && <Records records={read.value.records} />}
      {read.value && (
        <div class="after">
          {pages.length > 0 && <Button onPress={() => setPages(pages.slice(0, -1))}>Newer</Button>}
          {read.value.next !== undefined && <Button onPress={() => setPages([...pages, read.value?.next ?? 0])}>Older</Button>}
        </div>
      )}
    </Sheet>
  );
}

// Filters narrow the list. A typed filter applies once it is submitted.
function Filters({ filter, choose, refresh }: { filter: Filter; choose: (f: Filter) => void; refresh: () => void }): JSX.Element {
  const [session, setSession] = useState(filter.session);
  const [person, setPerson] = useState(filter.person);
  const apply = () => {
    const next = { ...filter, session: session.trim(), person: person.trim() };
    if (JSON.stringify(next) === JSON.stringify(filter)) refresh();
    else choose(next);
  };
  return (
    <form class="filters" onSubmit={(e) => { e.preventDefault(); apply(); }}>
      <label>
        Kind
        <select value={filter.kind} onChange={(e) => choose({ ...filter, kind: e.currentTarget.value })}>
          <option value="">All</option>
          {kinds.map((k) => <option key={k} value={k}>{k.replace("_", " ")}</option>)}
        </select>
      </label>
      <label>Session<input value={session} placeholder="main:telegram:42" onInput={(e) => setSession(e.currentTarget.value)} /></label>
      <label>Person<input value={person} placeholder="telegram:42" onInput={(e) => setPerson(e.currentTarget.value)} /></label>
      <button class="button" type="submit">Apply</button>
    </form>
  );
}

function Records({ records }: { records: AuditRecord[] }): JSX.Element {
  return (
    <Table
      label="What happened, newest first"
      rows={records}
      id={(r) => String(r.id)}
      empty="No matching records. The audit lists what agents, people and programs did."
      columns={[
        { title: "When", cell: (r) => <Ago at={r.at} /> },
        { title: "Kind", cell: (r) => r.kind.replace("_", " ") },
        { title: "Who", cell: (r) => <Name of={r.by} /> },
        { title: "Where", cell: (r) => (r.session ? <SessionLink of={r.session} /> : <Name of={r.address} />) },
        { title: "Result", cell: (r) => <Result of={r} /> },
        { title: "Details", cell: (r) => <About of={r} /> },
      ]}
    />
  );
}

const fine = new Set(["ok", "done", "answered", "admitted", "replayed", "signed in", "read", "erased", "changed", "offered", "login", "accepted", "approved", "approved for the session"]);
const wrong = new Set(["failed", "given_up", "timeout", "permission_denied", "denied"]);

function Result({ of: r }: { of: AuditRecord }): JSX.Element {
  const look = fine.has(r.result) ? "good" : wrong.has(r.result) ? "bad" : undefined;
  return (
    <>
      <Badge look={look}>{showHidden(r.result)}{r.exit_code !== undefined && ` (${r.exit_code})`}</Badge>{" "}
      {(r.kind === "tool" || r.kind === "turn" || r.kind === "job" || r.kind === "judgement") && <span class="aside">{length(r.elapsed_ms)}</span>}
    </>
  );
}

// About shows the details of a record: a call with its arguments, what a turn used, or which messages were refused.
function About({ of: r }: { of: AuditRecord }): JSX.Element {
  const said = r.used ? [usedOf(r.used), r.detail].filter(Boolean).join("; ") : r.kind === "refusal" ? refusedOf(r) : r.kind === "judgement" ? r.verdict : r.detail;
  const message = r.turn ?? r.messages?.at(-1);
  return (
    <>
      {r.tool && <code>{showHidden(r.tool)}</code>} {said && <Name of={said} />} {message && <WhyLink of={message} />}
      {r.arguments !== undefined && r.arguments !== null && (
        <details>
          <summary>Arguments</summary>
          <Json of={r.arguments} label="Arguments" />
        </details>
      )}
    </>
  );
}

function usedOf(u: NonNullable<AuditRecord["used"]>): string {
  const parts = [u.model, count(u.model_calls, "model call"), count(u.calls, "tool call"), grouped(u.input) + " tokens in", grouped(u.output) + " out"];
  if (u.microdollars !== undefined) parts.push(dollars(u.microdollars));
  return parts.filter(Boolean).join(", ");
}

function refusedOf(r: AuditRecord): string {
  return count(r.count ?? r.messages?.length ?? 1, "message") + (r.detail ? "; " + r.detail : "");
}
