// Log: what the server writes about its work, newest first, as it happens.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { path } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Clock } from "../moments.tsx";
import { Button, ErrorNote, Table, WhyLink } from "../parts.tsx";
import { follow } from "../stream.ts";
import { Badge, Sheet } from "./pieces.tsx";
import type { LogLine } from "./schemas.ts";

// How many lines the page keeps at most.
const most = 500;

// How many milliseconds the page waits for further lines, so that it shows lines together that arrive together.
const gather = 200;

const levels = { debug: "Everything", info: "Info and above", warn: "Warnings and errors", error: "Errors" } as const;

export function ServerLog(): JSX.Element {
  const [level, setLevel] = useState<string>("info");
  const [paused, setPaused] = useState(false);
  const log = useLog(level, paused);
  return (
    <Sheet title="Log" about="What this server logs about its work. It doesn't contain what people or models said. If there are several servers, each has its own log.">
      <div class="filters">
        <label>
          Level
          <select value={level} onChange={(e) => setLevel(e.currentTarget.value)}>
            {Object.entries(levels).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
          </select>
        </label>
        <Button onPress={() => setPaused(!paused)}>{paused ? "Follow" : "Pause"}</Button>
        <span role="status" class="aside">{paused ? "Paused." : log.live ? "Following." : log.why ? "" : "Connecting…"}</span>
      </div>
      <ErrorNote error={log.why && new Error(log.why)} />
      <Table
        label="Lines of the log, newest first"
        rows={log.lines}
        id={(l) => String(l.id)}
        empty="No lines of this level yet."
        columns={[
          { title: "Time", cell: (l) => <Clock at={l.at} /> },
          { title: "Level", cell: (l) => <Level of={l.level} /> },
          { title: "Message", cell: (l) => <span class="name">{showHidden(l.message)}</span> },
          { title: "Details", cell: (l) => <Fields of={l.fields} /> },
        ]}
      />
    </Sheet>
  );
}

function Level({ of }: { of: string }): JSX.Element {
  return <Badge look={of === "ERROR" ? "bad" : of === "WARN" ? "warn" : undefined}>{of.toLowerCase()}</Badge>;
}

// Fields shows what a line is about. A turn has a link to what happened in it.
function Fields({ of }: { of: Record<string, unknown> }): JSX.Element {
  const turn = typeof of.turn === "string" ? of.turn : undefined;
  const said = Object.entries(of).filter(([, value]) => value !== "").map(([name, value]) => name + "=" + (typeof value === "string" ? value : JSON.stringify(value)));
  return <><span class="name aside">{showHidden(said.join(" "))}</span> <WhyLink of={turn} /></>;
}

// useLog follows the log of a level while it isn't paused. It returns the newest lines, the newest first.
function useLog(level: string, paused: boolean): { lines: LogLine[]; live: boolean; why: string } {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [state, setState] = useState({ live: false, why: "" });
  const waiting = useRef<LogLine[]>([]); // the newest last
  useEffect(() => {
    if (paused) return undefined;
    const left = new AbortController();
    let anew = false; // whether to drop the lines that are shown
    let soon: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      soon = undefined;
      const [fresh, all] = [waiting.current.reverse(), anew];
      waiting.current = [];
      anew = false;
      setLines((old) => (all ? fresh : [...fresh, ...old]).slice(0, most));
    };
    const event = (type: string, data: unknown) => {
      if (type === "reset") {
        anew = true;
        waiting.current = [];
      } else if (type === "line") {
        waiting.current.push(data as LogLine);
        if (waiting.current.length > most) waiting.current.shift();
      }
      soon ??= setTimeout(show, gather);
    };
    const told = { event, state: (now: "live" | "away", why = "") => setState({ live: now === "live", why }) };
    void follow(path(["logs", "events"], { level }), told, left.signal);
    return () => {
      left.abort();
      clearTimeout(soon);
      waiting.current = [];
      setState({ live: false, why: "" });
    };
  }, [level, paused]);
  return { lines, ...state };
}
