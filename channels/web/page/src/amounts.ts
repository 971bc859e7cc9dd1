// Numbers, sizes, money, lengths of time and days as text. Numbers look American everywhere, as the page's words do.
const locale = "en-US";

// grouped writes a number with its digits in groups.
export function grouped(n: number): string {
  return n.toLocaleString(locale);
}

// count says how many there are of something: 1 message, 1,200 messages.
export function count(n: number, what: string): string {
  return grouped(n) + " " + plural(n, what);
}

// plural returns the word for that many of something.
export function plural(n: number, what: string): string {
  return n === 1 ? what : what + "s";
}

// dollars writes micro-dollars as dollars: less than a cent with up to six digits, more with two.
export function dollars(micro: number): string {
  if (micro === 0) return "$0";
  if (Math.abs(micro) < 10_000) return "$" + (micro / 1e6).toFixed(6).replace(/0+$/, "");
  return fixed(micro, 2);
}

// exactDollars writes micro-dollars so that amounts can be compared with each other and with a cap: like dollars, but
// with four digits for more than a cent that isn't whole cents.
export function exactDollars(micro: number): string {
  return Math.abs(micro) < 10_000 || micro % 10_000 === 0 ? dollars(micro) : fixed(micro, 4);
}

// dollarsAlike returns a function that writes the amounts of a column, all with 2, 4 or 6 digits: as many as the
// smallest one needs.
export function dollarsAlike(amounts: number[]): (micro: number) => string {
  let digits = 2;
  for (const m of amounts) {
    if (m > 0 && m < 100) digits = 6;
    else if (m > 0 && m < 10_000) digits = Math.max(digits, 4);
  }
  return (micro) => fixed(micro, digits);
}

function fixed(micro: number, digits: number): string {
  return "$" + (micro / 1e6).toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// bytes writes a size. Its units are those of the server's limits: a MB has 1024 KB.
export function bytes(n: number): string {
  if (n < 1 << 10) return count(n, "byte");
  if (n < 1 << 20) return (n / (1 << 10)).toFixed(1) + " KB";
  return (n / (1 << 20)).toFixed(1) + " MB";
}

// length says how long something takes, in at most two units: 2 h 5 min.
export function length(ms: number): string {
  if (ms < 1000) return Math.max(0, Math.round(ms)) + " ms";
  const s = Math.round(ms / 1000);
  if (s < 60) return s + " s";
  if (s < 3600) return pair(s, 60, "min", 1, "s");
  if (s < 86_400) return pair(s, 3600, "h", 60, "min");
  return pair(s, 86_400, "d", 3600, "h");
}

function pair(s: number, big: number, bigName: string, small: number, smallName: string): string {
  const rest = Math.floor((s % big) / small);
  return Math.floor(s / big) + " " + bigName + (rest > 0 ? ` ${rest} ${smallName}` : "");
}

// mostBetween is how many moments momentsBetween returns at most: the days of a leap year.
const mostBetween = 366;

// momentsBetween returns the moments from one to another, both included, one step after the other, in milliseconds: the
// first mostBetween of them.
export function momentsBetween(from: number, to: number, step: number): number[] {
  const all: number[] = [];
  for (let at = from; at <= to && all.length < mostBetween; at += step) all.push(at);
  return all;
}

// dayOf returns the day of a moment in UTC, as in 2026-01-31.
export function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10);
}

// daysBetween returns the days from one to another, both included: the first mostBetween of them.
export function daysBetween(from: string, to: string): string[] {
  return momentsBetween(Date.parse(from), Date.parse(to), 86_400_000).map(dayOf);
}
