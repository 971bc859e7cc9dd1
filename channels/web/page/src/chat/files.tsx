// The files of a session: its folders, downloads, and pictures.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes } from "../amounts.ts";
import { get, path } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Pages, State } from "../operation/pieces.tsx";
import { useRefreshed } from "../operation/refresh.ts";
import { Button, useOpened } from "../parts.tsx";
import { isNamedPicture, largest, Picture } from "./picture.tsx";

interface SessionFile {
  name: string; // within the workspace
  folder: boolean;
  bytes: number;
  changed?: string;
}

const most = 100; // files on a page

// Files lists one folder at a time.
export function Files({ session, close }: { session: string; close: () => void }): JSX.Element {
  const [{ folder, after }, setPlace] = useState({ folder: "", after: "" });
  const [shown, setShown] = useState<SessionFile | null>(null);
  const read = useRefreshed((signal) => get<{ files: SessionFile[]; next?: string }>(["sessions", session, "files"], { folder, after, limit: most }, signal), folder + "\n" + after, 20, ["turn_complete"]);
  const box = useOpened();
  const open = (name: string) => {
    setShown(null);
    setPlace({ folder: name, after: "" });
    box.current?.focus(); // because the pressed button disappears
  };
  const found = read.value;
  return (
    <section ref={box} class="files-panel" aria-label="Files of this session" tabIndex={-1}>
      <div class="between">
        <Trail folder={folder} open={open} />
        <Button look="quiet" onPress={close} label="Close the files">Close</Button>
      </div>
      <State {...read} />
      {found?.files.length === 0 && <p class="none">{folder || after ? "No files here." : "This session has no files yet."}</p>}
      <ul class="items">
        {found?.files.map((f) => <li key={f.name}><FileLine session={session} file={f} open={open} look={setShown} /></li>)}
      </ul>
      <Pages after={after} next={found?.next} go={(to) => setPlace({ folder, after: to })} />
      {shown && <Shown key={shown.name} session={session} name={shown.name} close={() => setShown(null)} />}
    </section>
  );
}

// Trail leads back to the folders above.
function Trail({ folder, open }: { folder: string; open: (name: string) => void }): JSX.Element {
  const parts = folder ? folder.split("/") : [];
  return (
    <nav class="trail" aria-label="Folders">
      <Button look="quiet" disabled={!folder} onPress={() => open("")}>All files</Button>
      {parts.map((p, i) => <span key={i}>/ <Button look="quiet" disabled={i === parts.length - 1} onPress={() => open(parts.slice(0, i + 1).join("/"))}>{showHidden(p)}</Button></span>)}
    </nav>
  );
}

interface FileLineProps {
  session: string;
  file: SessionFile;
  open: (name: string) => void;
  look: (f: SessionFile) => void;
}

function FileLine({ session, file: f, open, look }: FileLineProps): JSX.Element {
  const name = showHidden(f.name.slice(f.name.lastIndexOf("/") + 1));
  if (f.folder) return <span><Button look="quiet" onPress={() => open(f.name)} label={`Open the folder ${name}`}>{name}/</Button></span>;
  const seen = isNamedPicture(f.name) && f.bytes <= largest;
  return (
    <div class="file-line">
      <span class="name">{name} <span class="faint">{bytes(f.bytes)}{f.changed && <>, changed <Ago at={f.changed} /></>}</span></span>
      {seen && <Button onPress={() => look(f)} label={`Show ${name}`}>Show</Button>}
      <a class="button" href={path(["sessions", session, "files", f.name])} download="" aria-label={`Download ${name}`}>Download</a>
    </div>
  );
}

// Shown shows a picture, and takes the focus.
function Shown({ session, name, close }: { session: string; name: string; close: () => void }): JSX.Element {
  const box = useOpened();
  return (
    <figure ref={box} class="picture" tabIndex={-1}>
      <figcaption class="between"><span class="name">{showHidden(name)}</span> <Button look="quiet" onPress={close} label="Close the picture">Close</Button></figcaption>
      <Picture session={session} name={name} />
    </figure>
  );
}
