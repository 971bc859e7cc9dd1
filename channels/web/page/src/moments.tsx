// Points in time, mostly relative to now. Hovering over one shows the exact time.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { length } from "./amounts.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

// relative says how far a moment is from now: 5 min ago, in 2 h. If it is more than 30 days away, it says the date.
function relative(moment: Date): string {
  const away = moment.getTime() - Date.now();
  const far = Math.abs(away);
  if (far < 10_000) return "just now";
  if (far > 30 * day) return moment.toLocaleDateString();
  return away < 0 ? rounded(far) + " ago" : "in " + rounded(far);
}

// rounded says a length of time in a single unit, because nobody needs the minutes if it is days.
function rounded(far: number): string {
  if (far < minute) return length(far);
  if (far < hour) return length(far - (far % minute));
  if (far < day) return length(far - (far % hour));
  const n = Math.round(far / day);
  return n === 1 ? "1 day" : n + " days";
}

// useTick draws a component again every few seconds, because what it says depends on the current time.
function useTick(seconds: number): void {
  const [, tick] = useState(0);
  useEffect(() => {
    const ticks = setInterval(() => tick((n) => n + 1), seconds * 1000);
    return () => clearInterval(ticks);
  }, [seconds]);
}

// Moment shows a time in the words that says returns for it. A text that isn't a time is shown as it is.
function Moment({ at, says }: { at: string; says: (moment: Date) => string }): JSX.Element {
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return <span>{at}</span>;
  return <time dateTime={at} title={moment.toLocaleString()}>{says(moment)}</time>;
}

// Ago shows how far a moment is from now, in either direction.
export function Ago({ at }: { at: string }): JSX.Element {
  useTick(10);
  return <Moment at={at} says={relative} />;
}

// Since shows how long something has lasted.
export function Since({ at }: { at: string }): JSX.Element {
  useTick(1);
  return <Moment at={at} says={(moment) => length(Math.max(1000, Date.now() - moment.getTime()))} />;
}

// Clock shows a time of day to the second, for steps that follow each other closely.
export function Clock({ at }: { at: string }): JSX.Element {
  return <Moment at={at} says={(moment) => moment.toLocaleTimeString()} />;
}
