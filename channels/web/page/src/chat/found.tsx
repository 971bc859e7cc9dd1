// The search for words in what was said in all sessions.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api.ts";
import { Ago } from "../moments.tsx";
import { Empty, ErrorNote, Loading, useLoaded } from "../parts.tsx";
import { linkTo } from "../route.ts";
import type { Hit } from "../schemas.ts";
import { isWeb } from "../markdown/link.ts";
import { readable } from "./sending.ts";

// How many letters a search has at least, and how long it waits for the next letter, in milliseconds.
const fewest = 2;
const pause = 300;

export function isSearch(words: string): boolean {
  return words.trim().length >= fewest;
}

// Found searches for words once nobody has changed them for a moment, and lists what was said.
export function Found({ words, shown }: { words: string; shown: string }): JSX.Element {
  const [settled, settle] = useState("");
  useEffect(() => {
    const soon = setTimeout(() => settle(words), pause);
    return () => clearTimeout(soon);
  }, [words]);
  return (
    <section class="found" aria-label="Messages">
      <h2>What was said</h2>
      {settled ? <Hits words={settled} stale={settled !== words} shown={shown} /> : <Loading />}
    </section>
  );
}

// Hits lists what a search finds. Until the search has ended, it shows what the previous one found.
function Hits({ words, stale, shown }: { words: string; stale: boolean; shown: string }): JSX.Element {
  const { value, error, again } = useLoaded((signal) => get<{ hits: Hit[] }>(["search"], { q: words, limit: 20 }, signal).then(({ hits }) => ({ words, hits })), words);
  const current = !stale && value?.words === words;
  return (
    <div aria-busy={!current && !error}>
      <ErrorNote error={!stale && error} again={again} />
      {!value && !error && <Loading />}
      {current && value.hits.length === 0 && <Empty>No messages found with these words.</Empty>}
      <ul>{value?.hits.map((h) => <Line key={`${h.session} ${h.n}`} hit={h} current={`${h.session} ${h.n}` === shown} />)}</ul>
    </div>
  );
}

function Line({ hit: h, current }: { hit: Hit; current: boolean }): JSX.Element {
  return (
    <li>
      <a href={linkTo("chat", h.session, String(h.n))} aria-current={current ? "page" : undefined}>
        <span class="passage">{h.text}</span>
        {h.untrusted && <span class="badge warn">strangers may have written it</span>}
        <span class="line faint"><span class="line-title">{whoOf(h)} · {h.title || readable(h.session)}</span><Ago at={h.at} /></span>
      </a>
      {h.link && isWeb(h.link) && <a class="there" href={h.link} target="_blank" rel="noopener noreferrer" aria-label={`Open where it was said: ${h.text.slice(0, 60)}`}>Open where it was said</a>}
    </li>
  );
}

function whoOf(h: Hit): string {
  if (h.kind === "text") return "agent";
  if (h.kind === "summary") return "summary";
  return h.tool || h.name || h.person || h.kind;
}
