// The events of the whole server, about what starts and ends there: one stream for all views and tabs, open while the page
// is visible.
import { useEffect, useRef } from "preact/hooks";
import { path } from "./api.ts";

// The events of GET /v1/events. After reset, views read everything again.
const kinds = ["reset", "turn_start", "parked", "turn_complete", "turn_error", "ask", "ask_resolved", "dead_letter", "job", "job_output", "task", "channel"] as const;

export type Kind = (typeof kinds)[number];

// News is an event: what happened, and to what, as far as that is known.
export interface News {
  kind: Kind;
  session?: string;
  id?: string;
}

// How long the stream stays closed after the server refused it, in milliseconds. Views also read at intervals meanwhile.
const pause = 20_000;

// A browser has few connections to a server, so its tabs share one stream. The tab that holds this lock has the stream,
// and tells the others over the channel of the same name.
const shared = "parley-events";

class Feed {
  private readonly followers = new Set<(news: News) => void>();
  private readonly tabs = new BroadcastChannel(shared);
  private leave: AbortController | undefined; // as long as this tab wants the stream

  constructor() {
    this.tabs.onmessage = (e: MessageEvent<News | undefined>) => {
      const kind = kinds.find((k) => k === e.data?.kind);
      if (kind) this.hear({ ...e.data, kind });
    };
  }

  // follow calls hear for each event, until the function that it returns is called.
  follow(hear: (news: News) => void): () => void {
    this.followers.add(hear);
    if (this.followers.size === 1) document.addEventListener("visibilitychange", this.look);
    this.look();
    return () => {
      this.followers.delete(hear);
      if (this.followers.size > 0) return;
      document.removeEventListener("visibilitychange", this.look);
      this.look();
    };
  }

  // look opens the stream while the page is visible, and closes it otherwise.
  private readonly look = (): void => {
    const wanted = this.followers.size > 0 && !document.hidden;
    if (wanted && !this.leave) {
      this.leave = new AbortController();
      void this.lead(this.leave.signal);
    } else if (!wanted) {
      this.leave?.abort();
      this.leave = undefined;
    }
  };

  // lead waits until no other tab has the stream, and then keeps it until left is aborted.
  private async lead(left: AbortSignal): Promise<void> {
    while (!left.aborted) {
      try {
        await navigator.locks.request(shared, { signal: left }, () => this.stream(left));
      } catch (err) {
        if (!left.aborted) throw err;
        return;
      }
      if (!left.aborted) await new Promise((done) => setTimeout(done, pause));
    }
  }

  // stream passes on events until left is aborted, or until the server refuses the stream. If the stream is only cut off,
  // the browser reconnects.
  private stream(left: AbortSignal): Promise<void> {
    return new Promise((over) => {
      const source = new EventSource(path(["events"]));
      for (const kind of kinds) source.addEventListener(kind, (e: MessageEvent<string>) => this.tell(kind, e.data));
      source.addEventListener("error", () => {
        if (source.readyState !== EventSource.CLOSED) return;
        this.tell("reset", "{}"); // each tab reads again, and so finds out if it may no longer do that
        over();
      });
      left.addEventListener("abort", () => {
        source.close();
        over();
      });
    });
  }

  private tell(kind: Kind, data: string): void {
    const { session, id } = JSON.parse(data) as News;
    const news = { kind, ...(session && { session }), ...(id && { id }) };
    this.tabs.postMessage(news);
    this.hear(news);
  }

  private hear(news: News): void {
    for (const follower of [...this.followers]) follower(news);
  }
}

const feed = new Feed();

// followNews calls hear for each event of the server, until the function that it returns is called.
export function followNews(hear: (news: News) => void): () => void {
  return feed.follow(hear);
}

// useNews calls hear soon after one of these events, and only once if several come together.
export function useNews(of: Kind[], hear: () => void): void {
  const latest = useRef(hear);
  latest.current = hear;
  const wanted = of.join(" ");
  useEffect(() => {
    if (!wanted) return undefined;
    const those = new Set<string>(["reset", ...wanted.split(" ")]);
    let soon = 0;
    const leave = feed.follow(({ kind }) => {
      if (!those.has(kind) || soon) return;
      soon = setTimeout(() => {
        soon = 0;
        latest.current();
      }, 250);
    });
    return () => {
      leave();
      clearTimeout(soon);
    };
  }, [wanted]);
}
