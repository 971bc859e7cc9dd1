// What the operation views share: their frame, lists, links, and the result of an action.
import type { ComponentChildren, JSX, Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { showHidden } from "../hidden.ts";
import { Button, Dialog, ErrorNote, Loading, Table, type TableProps, useOpened } from "../parts.tsx";
import { linkTo } from "../route.ts";

// Sheet is the frame of a view: its title, the result of the last action, and its content.
export function Sheet({ title, about, done, children }: { title: string; about?: ComponentChildren; done?: Outcome; children: ComponentChildren }): JSX.Element {
  const head = useRef<HTMLHeadingElement>(null);
  const seen = useRef(0);
  useEffect(() => {
    // The button that was pressed may be gone together with its row. Then the focus moves to the top.
    if (!done?.said || done.turn === seen.current || document.activeElement !== document.body) return;
    seen.current = done.turn;
    head.current?.focus({ preventScroll: true });
  });
  return (
    <div class="page sheet">
      <h1 ref={head} tabIndex={-1}>{title}</h1>
      {about && <p class="about">{about}</p>}
      {done && <Done outcome={done} />}
      {children}
    </div>
  );
}

// An Outcome is the result of the last action in a view.
export interface Outcome {
  said: string;
  error: unknown;
  turn: number; // counts the actions that succeeded
  say: (what: string) => void;
  fail: (error: unknown) => void;
}

// useOutcome keeps the result of the last action.
export function useOutcome(): Outcome {
  const [last, setLast] = useState<{ said: string; error: unknown; turn: number }>({ said: "", error: null, turn: 0 });
  const say = (said: string) => {
    // The line is empty for a moment, so that screen readers announce the same words again.
    setLast((l) => ({ said: "", error: null, turn: l.turn }));
    setTimeout(() => setLast((l) => ({ said, error: null, turn: l.turn + 1 })), 50);
  };
  return { ...last, say, fail: (error) => setLast((l) => ({ said: "", error, turn: l.turn })) };
}

// Done shows an outcome. Its line is on the page even if it is empty, so that screen readers announce changes in it.
export function Done({ outcome }: { outcome: Outcome }): JSX.Element {
  return (
    <>
      <p class={outcome.said ? "note done" : "away"} role="status">{outcome.said}</p>
      <ErrorNote error={outcome.error} />
    </>
  );
}

// State says that something is loading, or why that failed.
export function State({ value, error, again }: { value?: unknown; error?: unknown; again: () => void }): JSX.Element | null {
  if (error) return <ErrorNote error={error} again={again} />;
  return value === undefined ? <Loading /> : null;
}

interface ListingProps<V, T> extends Omit<TableProps<T>, "rows"> {
  read: { value?: V; error?: unknown; again: () => void };
  rows: (value: V) => T[];
}

// Listing is a table of what a view reads.
export function Listing<V, T>({ read, rows, ...table }: ListingProps<V, T>): JSX.Element {
  return (
    <>
      <State {...read} />
      {read.value !== undefined && <Table {...table} rows={rows(read.value)} />}
    </>
  );
}

// A Confirmation is what people confirm before an action on one row of a list.
interface Confirmation {
  title: string;
  confirm: string; // the text of the button that does it
  text: ComponentChildren;
  act: () => Promise<void>;
}

// useConfirmation returns a function that asks people to confirm an action on a row, and the dialog that asks.
export function useConfirmation<T>(of: (row: T) => Confirmation): { ask: (row: T) => void; dialog: JSX.Element | null } {
  const [row, setRow] = useState<T | null>(null);
  if (row === null) return { ask: setRow, dialog: null };
  const { title, confirm, text, act } = of(row);
  return { ask: setRow, dialog: <Dialog title={title} confirm={confirm} danger onConfirm={act} onClose={() => setRow(null)}>{text}</Dialog> };
}

// Words is a field for words: the list below it shows only what contains them.
export function Words({ label, value, set, children }: { label: string; value: string; set: (words: string) => void; children?: ComponentChildren }): JSX.Element {
  return (
    <form class="filters" onSubmit={(e) => e.preventDefault()}>
      <label class="long">{label}<input type="search" value={value} spellcheck={false} onInput={(e) => set(e.currentTarget.value)} /></label>
      {children}
    </form>
  );
}

// hasWords reports whether the texts contain all the words, in any order.
export function hasWords(words: string, ...texts: string[]): boolean {
  const all = texts.join("\n").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((w) => all.includes(w));
}

interface BlockProps {
  title: string;
  children: ComponentChildren;
  wide?: boolean;
  box?: Ref<HTMLElement>; // of a block that gets the focus
}

// Block is a part of a view, with a title.
export function Block({ title, children, wide, box }: BlockProps): JSX.Element {
  const id = "block-" + title.toLowerCase().replace(/[^a-z]+/g, "-");
  return (
    <section ref={box} class={"block" + (wide ? " wide" : "")} aria-labelledby={id} tabIndex={box ? -1 : undefined}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

// Opened is a block that a button has opened below a list, with a button that closes it.
export function Opened({ title, children, close }: { title: string; children: ComponentChildren; close: () => void }): JSX.Element {
  const box = useOpened();
  return (
    <Block title={title} wide box={box}>
      {children}
      <div class="after"><Button onPress={close}>Close</Button></div>
    </Block>
  );
}

// Pages leads to the next page of a list, and back to the first one. next, from the server, says where the next one begins.
export function Pages({ after, next, go }: { after: string; next?: string; go: (after: string) => void }): JSX.Element | null {
  if (!after && !next) return null;
  return (
    <div class="after">
      {after && <Button onPress={() => go("")}>First page</Button>}
      {next && <Button onPress={() => go(next)}>Next page</Button>}
    </div>
  );
}

// Name shows an id, or a name that other people chose.
export function Name({ of }: { of?: string }): JSX.Element | null {
  return of ? <span class="name">{showHidden(of)}</span> : null;
}

// SessionLink leads to a conversation.
export function SessionLink({ of }: { of?: string }): JSX.Element | null {
  return of ? <a class="name" href={linkTo("chat", of)}>{showHidden(of)}</a> : null;
}

// Coded shows a text, with what is between backquotes as code.
export function Coded({ text }: { text: string }): JSX.Element {
  const parts = showHidden(text).split("`");
  if (parts.length % 2 === 0) return <>{parts.join("`")}</>;
  return <>{parts.map((p, i) => (i % 2 === 1 ? <code key={i}>{p}</code> : p))}</>;
}

// Verbatim shows a text as it is. above is a line above it, and label is for people who can't see the page.
export function Verbatim({ of, label, above }: { of: string; label: string; above?: string }): JSX.Element {
  return (
    <div class="preview">
      {above && <h3>{above}</h3>}
      <pre tabIndex={0} role="region" aria-label={label}><span class="preview-line">{showHidden(of)}</span></pre>
    </div>
  );
}

// Json shows any data. label is for people who can't see the page.
export function Json({ of, label }: { of: unknown; label: string }): JSX.Element {
  return <Verbatim of={JSON.stringify(of, null, 2)} label={label} />;
}

// Bar draws how much of something is spent, and how much more is reserved (kept), in percent. The words next to it say
// the same.
export function Bar({ spent, kept = 0, look }: { spent: number; kept?: number; look: "" | "near" | "over" }): JSX.Element {
  return (
    <svg class={"bar " + look} viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <rect class="all" width="100" height="1" />
      {kept > 0 && <rect class="kept" width={Math.min(100, spent + kept)} height="1" />}
      <rect class="spent" width={Math.min(100, spent)} height="1" />
    </svg>
  );
}

// Badge is a highlighted word.
export function Badge({ look, children }: { look?: "good" | "bad" | "warn"; children: ComponentChildren }): JSX.Element {
  return <span class={"badge " + (look ?? "")}>{children}</span>;
}
