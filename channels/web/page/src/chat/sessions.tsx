// The list of sessions, most recently used first. It marks those where the agent is working or waiting for people, and
// those with something new.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, tellOf } from "../api.ts";
import { useNews } from "../feed.ts";
import { Ago } from "../moments.tsx";
import { Empty, ErrorNote, Loading } from "../parts.tsx";
import { linkTo } from "../route.ts";
import type { Me, Session, Status } from "../schemas.ts";
import { Found, isSearch } from "./found.tsx";
import { parseKey, readable } from "./sending.ts";

// How often a visible page reads the list again, even without news from the server.
const pace = 30_000;

export interface Known {
  sessions?: Session[];
  running: Set<string>;
  waiting: Set<string>;
  error?: string;
}

// useSessions reads the sessions, and again after news from the server or when again() is called.
export function useSessions(me: Me): Known & { again: () => void } {
  const [known, setKnown] = useState<Known>({ running: new Set(), waiting: new Set() });
  const read = useRef(() => {});
  useNews(["turn_start", "parked", "turn_complete", "turn_error", "ask", "ask_resolved"], () => read.current());
  useEffect(() => {
    const left = new AbortController();
    let busy = false;
    let missed = false;
    read.current = () => {
      if (left.signal.aborted) return;
      missed = busy;
      if (busy) return;
      busy = true;
      load(me, left.signal)
        .then(setKnown, (err: unknown) => left.signal.aborted || setKnown((k) => ({ ...k, error: tellOf(err) })))
        .finally(() => {
          busy = false;
          if (missed) read.current(); // the last reading may have been too early
        });
    };
    read.current();
    const timer = setInterval(() => !document.hidden && read.current(), pace);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }, []);
  return { ...known, again: () => read.current() };
}

async function load(me: Me, signal: AbortSignal): Promise<Known> {
  const list = get<{ sessions: Session[] }>(["sessions"], { order: "desc", limit: 200 }, signal);
  const status = me.may.read ? get<Status>(["status"], {}, signal) : Promise.resolve(undefined);
  const [{ sessions }, now] = await Promise.all([list, status]);
  return {
    sessions,
    running: new Set(now?.turns?.list.map((t) => t.session)),
    waiting: new Set(now?.asks?.list.map((a) => a.session)),
  };
}

interface SessionsProps {
  known: Known;
  unread: Set<string>;
  shown: string;
  at: number; // the entry that is shown; 0 for the newest ones
}

export function Sessions({ known, unread, shown, at }: SessionsProps): JSX.Element {
  const [filter, setFilter] = useState("");
  const { sessions, error } = known;
  const wanted = filter.trim().toLowerCase();
  const found = sessions?.filter((s) => !wanted || `${s.title ?? ""} ${s.key}`.toLowerCase().includes(wanted));
  return (
    <nav class="sessions" aria-label="Sessions">
      <div class="sessions-top">
        <input type="search" aria-label="Filter sessions and search messages" placeholder="Search" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        <a class="button main" href={linkTo("chat")} aria-current={shown === "" ? "page" : undefined}>New chat</a>
      </div>
      <ErrorNote error={error} />
      {!sessions && !error && <Loading />}
      {found?.length === 0 && <Empty>{wanted ? "No matching sessions." : "No conversations yet."}</Empty>}
      <ul>{found?.map((s) => <Line key={s.key} session={s} current={s.key === shown} known={known} unread={unread.has(s.key)} />)}</ul>
      {isSearch(filter) && <Found words={filter.trim()} shown={at > 0 ? `${shown} ${at}` : ""} />}
    </nav>
  );
}

function Line({ session: s, current, known, unread }: { session: Session; current: boolean; known: Known; unread: boolean }): JSX.Element {
  const { agent, channel } = parseKey(s.key);
  const waits = known.waiting.has(s.key);
  const runs = !waits && known.running.has(s.key);
  return (
    <li>
      <a href={linkTo("chat", s.key)} aria-current={current ? "page" : undefined}>
        <span class="line">
          {unread && <span class="unread" role="img" aria-label="new" />}
          <span class={"line-title" + (unread ? " strong" : "")}>{s.title || readable(s.key)}</span>
          {waits && <span class="badge warn">waiting</span>}
          {runs && <span class="dot" role="img" aria-label="working" />}
        </span>
        <span class="line faint"><span>{channel}{agent !== "main" && ` · ${agent}`}</span><Ago at={s.updated} /></span>
      </a>
    </li>
  );
}
