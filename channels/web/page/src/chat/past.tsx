// A part of a conversation around one entry of its log, such as one that a search found.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, Empty, ErrorNote, Loading } from "../parts.tsx";
import { linkTo } from "../route.ts";
import type { Entry, Me } from "../schemas.ts";
import { fold, readBetween } from "./earlier.ts";
import { readable } from "./sending.ts";
import { Aside, TurnView } from "./turn.tsx";

// How many entries before and after the one to show are read, and how many each further reading adds.
const around = 60;

interface Part {
  entries: Entry[];
  from: number; // the number of the first entry that was asked for
  to: number; // the number of the last entry that was asked for
  last: boolean; // whether the log has none after it
}

interface PastProps {
  me: Me;
  session: string;
  title: string;
  at: number; // the number of the entry
}

export function Past({ me, session, title, at }: PastProps): JSX.Element {
  const [part, setPart] = useState<Part | null>(null);
  const [error, setError] = useState<unknown>(null);
  const left = useRef(new AbortController());
  const read = async (from: number, to: number): Promise<Part> => {
    const { entries, last } = await readBetween(session, from - 1, to, left.current.signal);
    return { entries, from, to, last };
  };
  const begin = () => {
    setError(null);
    read(Math.max(1, at - around), at + around).then(setPart, (err: unknown) => left.current.signal.aborted || setError(err));
  };
  useEffect(() => {
    begin();
    return () => left.current.abort();
  }, []);
  const before = async (p: Part) => {
    const more = await read(Math.max(1, p.from - around), p.from - 1);
    setPart({ ...p, entries: [...more.entries, ...p.entries], from: more.from });
  };
  const after = async (p: Part) => {
    const more = await read(p.to + 1, p.to + around);
    setPart({ ...p, entries: [...p.entries, ...more.entries], to: more.to, last: more.last });
  };
  return (
    <section class="conversation" aria-label="Conversation">
      <div class="head">
        <a class="back" href={linkTo("chat")} aria-label="All sessions">‹</a>
        <div class="head-title">
          <h1>{title || readable(session)}</h1>
          <div class="faint">An earlier part of the conversation</div>
        </div>
        <a class="button" href={linkTo("chat", session)}>Latest messages</a>
      </div>
      <div class="scroll-frame">
        <div class="scroll" tabIndex={0} role="log" aria-label="Messages" aria-live="off">
          <div class="column">
            <ErrorNote error={error} again={begin} />
            {!part && !error && <Loading />}
            {part && part.from > 1 && <div class="earlier"><Button look="quiet" onPress={() => before(part)} onError={setError}>Show earlier messages</Button></div>}
            {part && <Turns entries={part.entries} session={session} at={at} me={me} />}
            {part && !part.last && <div class="earlier"><Button look="quiet" onPress={() => after(part)} onError={setError}>Show later messages</Button></div>}
          </div>
        </div>
      </div>
    </section>
  );
}

// Turns shows entries as turns. At first it scrolls to the entry with the number at, or to the last one before it.
function Turns({ entries, session, at, me }: { entries: Entry[]; session: string; at: number; me: Me }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const all = fold(entries, session, true);
  useLayoutEffect(() => {
    const shown = [...(box.current?.querySelectorAll<HTMLElement>("[data-n]") ?? [])];
    const found = shown.findLast((e) => Number(e.dataset["n"]) <= at) ?? shown[0];
    if (!found) return;
    found.classList.add("sought");
    found.tabIndex = -1;
    found.focus({ preventScroll: true });
    found.scrollIntoView({ block: "center" });
  }, []);
  return (
    <div ref={box} class="past">
      {all.length === 0 && <Empty>These messages have been erased.</Empty>}
      {all.map((e) => "blocks" in e
        ? <TurnView key={e.id} session={session} turn={e} version={e.blocks.length} sent={[]} said={e.said ?? []} asks={e.asks ?? []} beside={[]} readJob={() => undefined} me={me} numbered />
        : <Aside key={e.id} said={[{ spoken: e }]} me={me} />)}
    </div>
  );
}
