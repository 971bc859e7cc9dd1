// Reading again and again while the page is visible.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Kind, useNews } from "../feed.ts";

// After how many seconds, at most, the page reads again what it couldn't read.
const retryAfter = 5;

export interface Read<T> {
  value?: T;
  error?: unknown;
  again: () => void;
}

// useRefreshed reads something when a view appears or key changes, after certain events on the server, and every few
// seconds, while the page is visible. After an error, it keeps the last value next to the error, and tries again. apart is
// the shortest time between two readings after events, in milliseconds, for what takes the server some time.
export function useRefreshed<T>(read: (signal: AbortSignal) => Promise<T>, key: string, seconds: number, news: Kind[] = [], apart = 0): Read<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: unknown }>({ key });
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const again = () => setTurn((t) => t + 1);
  const soon = useRef(0);
  const last = useRef(0);
  useNews(news, () => {
    if (soon.current) return;
    soon.current = setTimeout(() => {
      soon.current = 0;
      last.current = Date.now();
      again();
    }, Math.max(0, last.current + apart - Date.now()));
  });
  useEffect(() => () => clearTimeout(soon.current), []);
  useEffect(() => {
    const left = new AbortController();
    let busy = false;
    let retry = 0;
    const once = async () => {
      if (busy || document.hidden) return;
      busy = true;
      clearTimeout(retry); // this reading replaces it
      try {
        const value = await latest.current(left.signal);
        if (!left.signal.aborted) setState({ key, value });
      } catch (error) {
        if (!left.signal.aborted) {
          setState((s) => (s.key === key ? { ...s, error } : { key, error }));
          retry = setTimeout(() => void once(), Math.min(seconds, retryAfter) * 1000);
        }
      } finally {
        busy = false;
      }
    };
    void once();
    const ticks = setInterval(() => void once(), seconds * 1000);
    const seen = () => void once();
    document.addEventListener("visibilitychange", seen);
    return () => {
      left.abort();
      clearInterval(ticks);
      clearTimeout(retry);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, seconds, turn]);
  const shown = state.key === key ? state : { key };
  return { ...shown, again };
}
