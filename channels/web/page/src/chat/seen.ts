// Which sessions have something new since this person last looked at them in this browser.
//
// The browser keeps, by session, the number of the newest entry that the person could see, and no texts.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Me, Session } from "../schemas.ts";

// mostSessions is how many sessions the browser keeps this for.
export const mostSessions = 500;

// What is written this soon after somebody left a session, in milliseconds, belongs to what they saw: the end of a turn
// is recorded a moment after its answer.
const afterwards = 4000;

// A Look says up to where a session was seen.
interface Look {
  entries: number;
  at: number; // when that entry was written, in milliseconds
}

interface Kept {
  since: number; // what is older counts as seen
  looks: Record<string, Look>; // by session, the latest last
}

const placeOf = (me: Me): string => "seen " + me.name;

function read(me: Me): Kept | undefined {
  try {
    return JSON.parse(localStorage.getItem(placeOf(me)) ?? "") as Kept;
  } catch {
    return undefined;
  }
}

function write(me: Me, kept: Kept): void {
  const all = Object.entries(kept.looks);
  const gone = all.splice(0, Math.max(0, all.length - mostSessions));
  const since = gone.reduce((latest, [, look]) => Math.max(latest, look.at), kept.since);
  try {
    localStorage.setItem(placeOf(me), JSON.stringify({ since, looks: Object.fromEntries(all) }));
  } catch {
    // The browser stores nothing, so the marks are lost when the page is loaded again.
  }
}

const writtenAt = (s: Session): number => Date.parse(s.updated) || 0;

function isNew(kept: Kept, s: Session): boolean {
  const look = kept.looks[s.key];
  const since = look?.at ?? kept.since;
  return look?.entries !== s.entries && writtenAt(s) > since;
}

// useUnread returns the keys of the sessions that have something new. The one that is shown counts as seen.
export function useUnread(me: Me, sessions: Session[] | undefined, shown: string): Set<string> {
  const [unread, setUnread] = useState(new Set<string>());
  const [others, setOthers] = useState(0); // counts the changes that other tabs have stored
  const left = useRef({ key: "", until: 0 });
  useEffect(() => {
    const told = (e: StorageEvent) => e.key === placeOf(me) && setOthers((n) => n + 1);
    addEventListener("storage", told);
    return () => removeEventListener("storage", told);
  }, []);
  useEffect(() => () => {
    left.current = { key: shown, until: Date.now() + afterwards };
  }, [shown]);
  useEffect(() => {
    if (!sessions) return;
    // On a person's first visit, nothing is new.
    const kept = read(me);
    const now = kept ?? { since: sessions.reduce((latest, s) => Math.max(latest, writtenAt(s)), 0), looks: {} };
    const looked = (key: string) => (key === shown && !document.hidden) || (key === left.current.key && Date.now() < left.current.until);
    const fresh = sessions.filter((s) => looked(s.key) && now.looks[s.key]?.entries !== s.entries);
    for (const s of fresh) {
      delete now.looks[s.key]; // it becomes the latest
      now.looks[s.key] = { entries: s.entries, at: writtenAt(s) };
    }
    if (!kept || fresh.length > 0) write(me, now);
    setUnread(new Set(sessions.filter((s) => isNew(now, s)).map((s) => s.key)));
  }, [sessions, shown, others]);
  return unread;
}
