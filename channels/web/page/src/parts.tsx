// Building blocks of all views: buttons, tables, errors, a menu, and a dialog that asks for confirmation.
import type { ComponentChildren, JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { tellOf } from "./api.ts";
import { linkTo } from "./route.ts";

interface ButtonProps {
  children: ComponentChildren;
  onPress: () => void | Promise<void>; // the button is disabled while this runs
  look?: "main" | "danger" | "quiet";
  disabled?: boolean;
  label?: string; // for people who can't see the page, if the text alone isn't clear
  onError?: (err: unknown) => void;
}

export function Button({ children, onPress, look, disabled, label, onError }: ButtonProps): JSX.Element {
  const [busy, setBusy] = useState(false);
  // A busy button is disabled, and so loses the focus. If onPress returns no promise, the button never becomes busy.
  const press = async () => {
    try {
      const doing = onPress();
      if (!(doing instanceof Promise)) return;
      setBusy(true);
      await doing;
    } catch (err) {
      if (!onError) throw err;
      onError(err);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class={"button " + (look ?? "")} disabled={disabled || busy} aria-label={label} aria-busy={busy} onClick={() => void press()}>
      {children}
    </button>
  );
}

// ErrorNote shows an error, with a button to try again if that can help.
export function ErrorNote({ error, again }: { error: unknown; again?: () => void }): JSX.Element | null {
  if (!error) return null;
  return (
    <div class="note error" role="alert">
      <span>{tellOf(error)}</span>
      {again && <Button look="quiet" onPress={again}>Try again</Button>}
    </div>
  );
}

// Empty says why there is nothing to show, or what to do about it.
export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}

export function Loading(): JSX.Element {
  return <p class="empty" role="status">Loading…</p>;
}

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  number?: boolean; // aligned to the right
}

export interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  id: (row: T) => string;
  empty: ComponentChildren;
}

// Table shows rows. On a small screen, each row is a card whose lines start with the titles of the columns.
export function Table<T>({ label, columns, rows, id, empty }: TableProps<T>): JSX.Element {
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <caption class="away">{label}</caption>
        <thead>
          <tr>{columns.map((c) => <th key={c.title} scope="col" class={c.number ? "number" : ""}>{c.title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>{columns.map((c) => <td key={c.title} class={c.number ? "number" : ""} data-title={c.title}>{c.cell(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// WhyLink leads to what happened to a message or a turn, or to the latest messages of a session.
export function WhyLink({ of }: { of?: string }): JSX.Element | null {
  return of ? <a href={linkTo("why", of)} aria-label={"Why? " + of}>Why?</a> : null;
}

// Menu is a button that opens a list of buttons. Pressing one of them, or Escape, closes it.
export function Menu({ label, children }: { label: string; children: ComponentChildren }): JSX.Element {
  const box = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (box.current) box.current.open = false;
  };
  useEffect(() => {
    const elsewhere = (e: Event) => {
      if (e.target instanceof Node && !box.current?.contains(e.target)) close();
    };
    addEventListener("pointerdown", elsewhere);
    return () => removeEventListener("pointerdown", elsewhere);
  }, []);
  return (
    <details
      ref={box}
      class="menu"
      onKeyDown={(e) => {
        if (e.key !== "Escape" || !box.current?.open) return;
        close();
        box.current.querySelector("summary")?.focus();
      }}
    >
      <summary class="button quiet" aria-label={label} title={label}>⋯</summary>
      <div class="menu-items" onClick={close}>{children}</div>
    </details>
  );
}

interface DialogProps {
  title: string;
  children: ComponentChildren;
  confirm: string; // the text of the button that does it
  danger?: boolean;
  onConfirm: () => void | Promise<void>; // the dialog closes afterwards, or shows the error
  onClose: () => void;
}

// Dialog asks people to confirm an action. Escape and Cancel close it.
export function Dialog({ title, children, confirm, danger, onConfirm, onClose }: DialogProps): JSX.Element {
  const box = useRef<HTMLDialogElement>(null);
  const left = useRef(false);
  const [error, setError] = useState<unknown>(null);
  useLayoutEffect(() => {
    const shown = box.current;
    shown?.showModal();
    return () => {
      left.current = true; // the close event comes only after a moment, when the next dialog may be open
      shown?.close(); // gives the focus back to what opened it
    };
  }, []);
  const done = async () => {
    await onConfirm();
    onClose();
  };
  return (
    <dialog ref={box} class="dialog" aria-labelledby="dialog-title" onClose={() => left.current || onClose()}>
      <h2 id="dialog-title">{title}</h2>
      <div>{children}</div>
      <ErrorNote error={error} />
      <div class="actions">
        <Button onPress={onClose}>Cancel</Button>
        <Button look={danger ? "danger" : "main"} onPress={done} onError={setError}>{confirm}</Button>
      </div>
    </dialog>
  );
}

// useOpened moves the focus to a part of the page that a button has opened, and back when it is closed.
export function useOpened<T extends HTMLElement = HTMLElement>(): RefObject<T | null> {
  const box = useRef<T>(null);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    box.current?.scrollIntoView({ block: "start" }); // at its top, because its content is still growing
    box.current?.focus({ preventScroll: true });
    return () => {
      if (opener instanceof HTMLElement && box.current?.contains(document.activeElement)) opener.focus();
    };
  }, []);
  return box;
}

// useLoaded reads something when a view appears, and again when key changes or again() is called. It keeps the previous
// value until then, and after an error.
export function useLoaded<T>(read: (signal: AbortSignal) => Promise<T>, key: string): { value?: T; error?: unknown; again: () => void } {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const left = new AbortController();
    read(left.signal).then(
      (value) => left.signal.aborted || setState({ value }),
      (error: unknown) => left.signal.aborted || setState((s) => ({ ...s, error })),
    );
    return () => left.abort();
  }, [key, turn]);
  return { ...state, again: () => setTurn((t) => t + 1) };
}
