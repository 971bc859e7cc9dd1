// A stream of events from the server. It is read with fetch, and resumes where it was cut off.
//
// A browser opens at most six connections to a server, for all its tabs. So a hidden tab closes its stream after a
// while, and resumes it once it is visible again.
import { Failure, failureOf } from "./api.ts";

// Told contains the functions that follow calls with what it learns from a stream.
export interface Told {
  event: (type: string, data: unknown) => void;
  state: (state: "live" | "away", why?: string) => void; // whether it is open; why is "" while it reconnects
}

// How long nothing may arrive before the stream is opened again, in milliseconds. The server sends something at least
// every 23 seconds.
const silence = 45_000;
const firstWait = 400;
const mostWait = 10_000;
const unseen = 10_000; // how long a hidden tab keeps its stream

// follow follows the stream at a path until left is aborted, or until the server refuses it for good.
export async function follow(at: string, told: Told, left: AbortSignal): Promise<void> {
  const place = { last: "" };
  let wait = firstWait;
  while (!left.aborted) {
    try {
      await once(at, place, told, left, () => {
        wait = firstWait;
      });
      told.state("away");
    } catch (err) {
      if (left.aborted) return;
      if (err instanceof Failure && err.status >= 400 && err.status < 500 && err.status !== 429) {
        told.state("away", err.message); // trying again wouldn't help
        return;
      }
      told.state("away");
    }
    await pause(document.hidden ? Number.POSITIVE_INFINITY : wait * (0.75 + Math.random() / 2), left);
    wait = Math.min(wait * 2, mostWait);
  }
}

// once reads one response of the server until it ends, left is aborted, nothing arrives for too long, or the tab has been
// hidden for a while.
async function once(at: string, place: { last: string }, told: Told, left: AbortSignal, up: () => void): Promise<void> {
  const cut = new AbortController();
  const end = () => cut.abort();
  left.addEventListener("abort", end);
  let alarm = setTimeout(end, silence);
  let looksAway = setTimeout(() => {}, 0);
  const looked = () => {
    clearTimeout(looksAway);
    if (document.hidden) looksAway = setTimeout(end, unseen);
  };
  document.addEventListener("visibilitychange", looked);
  try {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (place.last) headers["Last-Event-ID"] = place.last;
    const answer = await fetch(at, { headers, signal: cut.signal, credentials: "same-origin", cache: "no-store" });
    if (!answer.ok || !answer.body) throw await failureOf(answer);
    up();
    told.state("live");
    const parser = new Parser((id, type, data) => {
      if (id) place.last = id;
      told.event(type, JSON.parse(data));
    });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(alarm);
      alarm = setTimeout(end, silence);
      parser.take(value);
    }
  } finally {
    clearTimeout(alarm);
    clearTimeout(looksAway);
    document.removeEventListener("visibilitychange", looked);
    left.removeEventListener("abort", end);
    cut.abort();
  }
}

// A Parser parses server-sent events, whatever pieces they arrive in.
export class Parser {
  private rest = "";
  private id = "";
  private type = "";
  private data: string[] = [];

  constructor(private readonly tell: (id: string, type: string, data: string) => void) {}

  take(piece: string): void {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.replace(/\r$/, ""));
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length > 0) this.tell(this.id, this.type, this.data.join("\n"));
      this.id = this.type = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment, which keeps the connection alive
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.id = value;
    else if (field === "event") this.type = value;
    else if (field === "data") this.data.push(value);
  }
}

// pause waits, but only until the browser is online again, the page is visible again, or left is aborted.
function pause(ms: number, left: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      document.removeEventListener("visibilitychange", seen);
      left.removeEventListener("abort", done);
      resolve();
    };
    const seen = () => {
      if (document.visibilityState === "visible") done();
    };
    const timer = Number.isFinite(ms) ? setTimeout(done, ms) : undefined;
    addEventListener("online", done);
    document.addEventListener("visibilitychange", seen);
    left.addEventListener("abort", done);
  });
}
