// Erasing: what a person said, or a session, everywhere; how far that is, and the receipt.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, grouped } from "../amounts.ts";
import { get, post } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button } from "../parts.tsx";
import { go } from "../route.ts";
import { Badge, Bar, Block, Name, type Outcome, State, useConfirmation } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { Erasure, Receipt } from "./schemas.ts";

const kinds = { user: "Everything a person said", session: "A session" };
type What = { kind: keyof typeof kinds; id: string };

// Erase is a form that asks what to erase. The erasure is in the address, so that it is found again after a reload.
export function Erase({ outcome }: { outcome: Outcome }): JSX.Element {
  const [kind, setKind] = useState<What["kind"]>("user");
  const [id, setId] = useState("");
  const erasing = useConfirmation<What>((what) => ({
    title: "Erase this for good?",
    confirm: "Erase it",
    text: <>This erases {what.kind === "user" ? "everything that was said and remembered by and about" : "the session"} <Name of={what.id} />, with its files. You can't undo it.</>,
    act: async () => {
      const begun = await post<Erasure>(["forget"], { [what.kind]: what.id }, undefined, { wait: false });
      setId("");
      go("people", begun.id);
    },
  }));
  const ask = () => { if (id.trim()) erasing.ask({ kind, id: id.trim() }); };
  return (
    <Block title="Erase" wide>
      <form class="filters" onSubmit={(e) => { e.preventDefault(); ask(); }}>
        <label>
          What to erase
          <select value={kind} onChange={(e) => setKind(e.currentTarget.value as What["kind"])}>
            {Object.entries(kinds).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
          </select>
        </label>
        <label>
          {kind === "user" ? "Person" : "Session"}
          <input value={id} placeholder={kind === "user" ? "telegram:42" : "main:telegram:42"} autocomplete="off" spellcheck={false} onInput={(e) => setId(e.currentTarget.value)} />
        </label>
        <Button look="danger" disabled={!id.trim()} onPress={ask} onError={outcome.fail}>Erase…</Button>
      </form>
      {erasing.dialog}
    </Block>
  );
}

// The steps of an erasure, in their order.
const steps = ["messages", "files", "records", "log"];

// Erasing shows how far an erasure is, and its receipt once it's done.
export function Erasing({ id }: { id: string }): JSX.Element {
  const [ended, setEnded] = useState("");
  const read = useRefreshed((signal) => get<Erasure>(["forget", id], {}, signal).then((e) => {
    if (e.state !== "running") setEnded(id);
    return e;
  }), id, ended === id ? 600 : 1);
  return (
    <Block title="Erasure" wide>
      <State {...read} />
      {read.value && <How of={read.value} />}
    </Block>
  );
}

function How({ of: e }: { of: Erasure }): JSX.Element {
  const { step, done, of } = e.progress;
  const part = (Math.max(0, steps.indexOf(step)) + (of > 0 ? done / of : 0)) / steps.length;
  return (
    <>
      <p>
        {e.state === "running" && <Badge look="warn">erasing</Badge>}
        {e.state === "done" && <Badge look="good">erased</Badge>}
        {e.state === "failed" && <Badge look="bad">not everything was erased</Badge>}
        {" "}<span class="aside">asked for <Ago at={e.asked} /></span>
      </p>
      {e.state === "running" && (
        <>
          <Bar spent={100 * part} look="" />
          <p class="aside" role="status">{step || "beginning"}{of > 1 && `: ${grouped(done)} of ${count(of, "session")}`}. It goes on if you leave this page.</p>
        </>
      )}
      {e.state === "failed" && <p class="note error" role="alert">{showHidden(e.error ?? "")}. Erase it again to erase the rest.</p>}
      {e.receipt && <Erased of={e.receipt} />}
    </>
  );
}

// Erased shows a receipt: what was erased, and what was kept.
function Erased({ of: r }: { of: Receipt }): JSX.Element {
  const counts: [string, number | undefined][] = [
    ["sessions erased entirely", r.log.sessions?.length],
    ["sessions erased in part", r.log.shared?.length],
    ["log entries", r.log.entries],
    ["workspaces with their files and memory", r.workspaces?.length],
    ["messages on their way", r.bus.messages],
    ["turns and sends cut off", r.bus.leases],
    ["dead letters", r.bus.dead_letters],
    ["records of what was sent", r.book.sends],
    ["records of what programs submitted", r.book.posts],
    ["records of chats", r.book.chats],
    ["requests to people", r.book.asks],
    ["ratings of answers", r.book.ratings],
    ["memories about the person, in all conversations", r.book.memories],
    ["files sent to conversations with others", r.attachments],
    ["files of erased turns in conversations that continue", r.old_files],
    ["records of tool calls in audit files", r.audit_files],
  ];
  const erased = counts.filter(([, n]) => n);
  return (
    <>
      <h3>Receipt: <Name of={r.what} /></h3>
      {erased.length === 0 && <p class="none">There was nothing to erase.</p>}
      <ul>{erased.map(([what, n]) => <li key={what}>{grouped(n ?? 0)} {what}</li>)}</ul>
      {r.kept && r.kept.length > 0 && <h3>Kept</h3>}
      <ul>{r.kept?.map((k) => <li key={k.what}>{showHidden(k.what)}: {showHidden(k.why)}</li>)}</ul>
    </>
  );
}
