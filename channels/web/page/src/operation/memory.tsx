// Memory: what agents remember beyond a conversation, to view, edit and erase.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes } from "../amounts.ts";
import { Failure, get, put, remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, ErrorNote, useOpened } from "../parts.tsx";
import { go, linkTo } from "../route.ts";
import type { ViewProps } from "../views.ts";
import { Badge, Block, Listing, Name, type Outcome, Pages, SessionLink, Sheet, State, useConfirmation, useOutcome, Verbatim } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { KeptMemory, MemoryText } from "./schemas.ts";

interface Kept {
  memories: KeptMemory[];
  next?: string;
}

const scopes = { session: "Conversation", person: "Person", agent: "Agent" } as const;

const examples = { session: "main:telegram:42", person: "telegram:42", agent: "main" } as const;

// Agents change what they remember during turns.
const news = ["turn_complete", "turn_error"] as const;

export function Memory({ rest }: ViewProps): JSX.Element {
  const outcome = useOutcome();
  const [after, setAfter] = useState("");
  const [scope = "", owner = ""] = rest;
  const list = useRefreshed((signal) => get<Kept>(["memory"], { after, limit: 100 }, signal), after, 30, [...news]);
  return (
    <Sheet title="Memory" done={outcome} about="What agents remember for all conversations, and about people. Agents read this with every message it applies to.">
      <Find key={scope + " " + owner} scope={scope} owner={owner} />
      {owner && <One key={scope + " " + owner} scope={scope} owner={owner} outcome={outcome} changed={list.again} />}
      <Block title="All memories" wide>
        <Listing
          read={list}
          rows={(v) => v.memories}
          label="Memories of agents and about people"
          id={(k) => k.scope + " " + k.owner}
          empty="Agents remember nothing about people, and nothing for all conversations."
          columns={[
            { title: "Whose", cell: (k) => <><strong><Name of={k.owner} /></strong><br /><span class="aside">{nameOf(k.scope).toLowerCase()}</span></> },
            { title: "Size", cell: (k) => bytes(k.bytes), number: true },
            { title: "From strangers", cell: (k) => (k.untrusted ? <Badge look="warn">maybe</Badge> : "no") },
            { title: "Changed", cell: (k) => <Ago at={k.changed} /> },
            { title: "Actions", cell: (k) => <a href={linkTo("memory", k.scope, k.owner)} aria-label={`View the memory of ${k.owner}`}>View</a> },
          ]}
        />
        <Pages after={after} next={list.value?.next} go={setAfter} />
      </Block>
    </Sheet>
  );
}

function nameOf(scope: string): string {
  return scope in scopes ? scopes[scope as keyof typeof scopes] : scope;
}

// Find is a form that asks whose memory to show. The memories of conversations aren't in the list.
function Find({ scope, owner }: { scope: string; owner: string }): JSX.Element {
  const [of, setOf] = useState(scope in scopes ? (scope as keyof typeof scopes) : "session");
  const [given, setGiven] = useState(owner);
  const show = () => go("memory", of, given.trim());
  return (
    <form class="filters" onSubmit={(e) => { e.preventDefault(); if (given.trim()) show(); }}>
      <label>
        Memory of
        <select value={of} onChange={(e) => setOf(e.currentTarget.value as keyof typeof scopes)}>
          {Object.entries(scopes).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
        </select>
      </label>
      <label class="long">
        {scopes[of]}
        <input value={given} placeholder={examples[of]} spellcheck={false} onInput={(e) => setGiven(e.currentTarget.value)} />
      </label>
      <Button look="main" disabled={!given.trim()} onPress={show}>Show</Button>
    </form>
  );
}

interface OneProps {
  scope: string;
  owner: string;
  outcome: Outcome;
  changed: () => void;
}

// One shows a memory, and lets people edit or erase it.
function One({ scope, owner, outcome, changed }: OneProps): JSX.Element {
  const read = useRefreshed((signal) => get<MemoryText>(["memory", scope, owner], {}, signal), scope + " " + owner, 30, [...news]);
  const [editing, setEditing] = useState<MemoryText | null>(null);
  const again = () => {
    read.again();
    changed();
  };
  const done = (what: string) => {
    outcome.say(what);
    setEditing(null);
    again();
  };
  const erasing = useConfirmation<MemoryText>((m) => ({
    title: "Erase this memory?",
    confirm: "Erase it",
    text: <>This erases everything in the memory of <Name of={owner} />. You can't undo it.</>,
    act: async () => {
      await remove(["memory", scope, owner], m.version).catch((err: unknown) => outdated(err, again));
      done(`Erased the memory of ${showHidden(owner)}.`);
    },
  }));
  const m = read.value;
  return (
    <Block title={`Memory of ${showHidden(owner)}`} wide>
      <State {...read} />
      {m && (
        <>
          <p class="aside">
            {scope === "session" ? <>Conversation <SessionLink of={owner} /></> : nameOf(scope)}
            {m.content !== "" && <>, {bytes(size(m.content))} of {bytes(m.most_bytes)}</>} {m.untrusted && <Badge look="warn">strangers may have written some of this</Badge>}
          </p>
          {m.redacted && <p class="note">Secrets are hidden here. If you save your edit, they're removed from the memory, too.</p>}
          {m.content === "" ? <p class="none">There's no memory here.</p> : <Verbatim of={m.content} label="The memory" />}
          {editing ? (
            <Editor base={editing} now={m} again={again} close={() => setEditing(null)} saved={() => done(`Saved the memory of ${showHidden(owner)}.`)} />
          ) : (
            <div class="after">
              <Button onPress={() => setEditing(m)}>{m.content === "" ? "Write" : "Edit"}</Button>
              {m.content !== "" && <Button look="danger" onPress={() => erasing.ask(m)}>Erase…</Button>}
            </div>
          )}
        </>
      )}
      {erasing.dialog}
    </Block>
  );
}

// outdated throws an error again. If the error says that the memory has changed, outdated first has it read again.
function outdated(err: unknown, again: () => void): never {
  if (err instanceof Failure && err.status === 412) again();
  throw err;
}

function size(text: string): number {
  return new TextEncoder().encode(text).length;
}

interface EditorProps {
  base: MemoryText; // the memory as it was when the edit began
  now: MemoryText; // the memory as it is now
  again: () => void;
  saved: () => void;
  close: () => void;
}

// Editor changes the text. If somebody else changed it meanwhile, people see that change before they can replace it.
function Editor({ base, now, again, saved, close }: EditorProps): JSX.Element {
  const [text, setText] = useState(base.content);
  const [known, setKnown] = useState(base.version);
  const [error, setError] = useState<unknown>(null);
  const field = useOpened<HTMLTextAreaElement>();
  const behind = now.version !== known;
  const long = size(text) > base.most_bytes;
  const save = async () => {
    setError(null);
    await put(["memory", base.scope, base.owner], { content: text }, known).catch((err: unknown) => outdated(err, again));
    saved();
  };
  return (
    <form class="editor" onSubmit={(e) => { e.preventDefault(); save().catch(setError); }}>
      <label class="long">New text<textarea ref={field} rows={12} value={text} onInput={(e) => setText(e.currentTarget.value)} /></label>
      {behind && (
        <div class="note error" role="alert">
          <span>This memory changed while you were editing it. Its current text is above. Copy what you need from it.</span>
          <Button onPress={() => { setKnown(now.version); setError(null); }}>Replace it with my text</Button>
        </div>
      )}
      {long && <p class="note error" role="alert">That's too long: {bytes(size(text))} of {bytes(base.most_bytes)}.</p>}
      {!behind && <ErrorNote error={error} />}
      <div class="after">
        <Button look="main" disabled={behind || long || !text.trim() || text === now.content} onPress={save} onError={setError}>Save</Button>
        <Button onPress={close}>Cancel</Button>
      </div>
    </form>
  );
}
