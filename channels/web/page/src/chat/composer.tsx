// Where people write messages. Enter sends, Shift+Enter starts a new line. Files can be dropped, pasted or selected.
// OperatorComposer is for an operator who answers people in place of the agent.
import type { JSX, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes } from "../amounts.ts";
import { Button, ErrorNote } from "../parts.tsx";
import { drafts, readFiles, type Upload } from "./sending.ts";

interface ComposerProps {
  session: string; // whose draft it keeps
  running: boolean;
  onSay: (text: string, files: Upload[]) => void;
  onStop: () => void;
}

export function Composer({ session, running, onSay, onStop }: ComposerProps): JSX.Element {
  const [text, write] = useDraft(session);
  const [files, setFiles] = useState<Upload[]>([]);
  const [failed, setFailed] = useState<unknown>(null);
  const [over, setOver] = useState(false); // whether files are being dragged over it
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, []);
  const add = (picked: Iterable<File>) => {
    setFailed(null);
    readFiles(picked, files).then(setFiles, setFailed);
  };
  const send = () => {
    if (!text.trim() && files.length === 0) return;
    onSay(text, files);
    write("");
    setFiles([]);
    setFailed(null);
    field.current?.focus();
  };
  return (
    <form
      class={"composer" + (over ? " over" : "")}
      aria-label="Write a message"
      onSubmit={(e) => { e.preventDefault(); send(); }}
      onDragOver={(e) => { e.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => { e.preventDefault(); setOver(false); add(e.dataTransfer?.files ?? []); }}
    >
      <ErrorNote error={failed} />
      <Chosen files={files} onRemove={(f) => setFiles(files.filter((x) => x !== f))} />
      <div class="composer-row">
        <input ref={picker} type="file" multiple hidden onChange={(e) => { add([...(e.currentTarget.files ?? [])]); e.currentTarget.value = ""; }} />
        <Button look="quiet" label="Add files" onPress={() => picker.current?.click()}><Clip /></Button>
        <Field box={field} label="Message" hint="Message the agent" text={text} write={write} send={send} paste={add} />
        {running && <Button look="danger" onPress={onStop}>Stop</Button>}
        <Button look="main" disabled={!text.trim() && files.length === 0} onPress={send}>Send</Button>
      </div>
    </form>
  );
}

interface OperatorComposerProps {
  session: string;
  channel: string;
  onSay: (text: string) => void;
}

export function OperatorComposer({ session, channel, onSay }: OperatorComposerProps): JSX.Element {
  const [text, write] = useDraft(session);
  const send = () => {
    if (!text.trim()) return;
    onSay(text);
    write("");
  };
  return (
    <form class="composer operator" aria-label="Answer as the operator" onSubmit={(e) => { e.preventDefault(); send(); }}>
      <p id="operator-note" class="operator-note">
        <strong>Answer as the operator.</strong> People on {channel} see your message, marked as yours. The agent knows of it, and doesn't answer it.
      </p>
      <div class="composer-row">
        <Field label="Answer as the operator" hint="Answer as the operator" about="operator-note" text={text} write={write} send={send} />
        <Button look="main" disabled={!text.trim()} onPress={send}>Send as operator</Button>
      </div>
    </form>
  );
}

// useDraft returns the unsent text of a session, and a function that keeps another one.
function useDraft(session: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => drafts.get(session));
  const write = (t: string) => {
    setText(t);
    drafts.set(session, t);
  };
  return [text, write];
}

interface FieldProps {
  label: string; // for people who can't see the page
  hint: string;
  about?: string; // the id of the element that explains the field
  text: string;
  write: (text: string) => void;
  send: () => void;
  paste?: (files: File[]) => void;
  box?: RefObject<HTMLTextAreaElement | null>;
}

// Field grows with its text, up to 12 lines.
function Field({ label, hint, about, text, write, send, paste, box }: FieldProps): JSX.Element {
  return (
    <textarea
      ref={box}
      rows={Math.min(text.split("\n").length, 12)}
      aria-label={label}
      aria-describedby={about}
      placeholder={hint}
      value={text}
      onInput={(e) => write(e.currentTarget.value)}
      onKeyDown={(e) => {
        if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
        e.preventDefault();
        send();
      }}
      onPaste={(e) => {
        const pasted = [...(e.clipboardData?.files ?? [])];
        if (!paste || pasted.length === 0) return;
        e.preventDefault();
        paste(pasted);
      }}
    />
  );
}

function Clip(): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d="M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6" />
    </svg>
  );
}

function Chosen({ files, onRemove }: { files: Upload[]; onRemove: (f: Upload) => void }): JSX.Element | null {
  if (files.length === 0) return null;
  return (
    <ul class="files" aria-label="Files to send">
      {files.map((f, i) => (
        <li key={i} class="file">
          {f.preview && <img src={f.preview} alt="" />}
          <span>{f.name}</span> <span class="faint">{bytes(f.size)}</span>
          <button type="button" class="button quiet" aria-label={"Remove " + f.name} onClick={() => onRemove(f)}>×</button>
        </li>
      ))}
    </ul>
  );
}
