// What differs between two texts, line by line.

// A Changed is a line of both texts, or of one of them: "-" was there before, "+" is new.
export interface Changed {
  mark: " " | "+" | "-";
  text: string;
}

// most is how many pairs of lines are compared at most. Larger texts are shown one after the other.
const most = 4_000_000;

// difference returns the lines of both texts in their order. Without a text before, all lines are new.
export function difference(before: string | undefined, now: string): Changed[] {
  const old = before === undefined ? [] : before.split("\n");
  const fresh = now.split("\n");
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++;
  let end = 0;
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++;
  const same = (text: string): Changed => ({ mark: " ", text });
  return [
    ...fresh.slice(0, start).map(same),
    ...middle(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)),
    ...fresh.slice(fresh.length - end).map(same),
  ];
}

// middle compares what is left when the common lines at both ends are taken away.
function middle(old: string[], fresh: string[]): Changed[] {
  const gone = (text: string): Changed => ({ mark: "-", text });
  const added = (text: string): Changed => ({ mark: "+", text });
  if (old.length === 0 || fresh.length === 0 || old.length * fresh.length > most) return [...old.map(gone), ...fresh.map(added)];
  // common[i][j] is how many lines the rests from i and from j have in common, in the same order.
  const common = Array.from({ length: old.length + 1 }, () => new Uint32Array(fresh.length + 1));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    const row = common[i];
    if (!row) continue;
    for (let j = fresh.length - 1; j >= 0; j--) row[j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const all: Changed[] = [];
  for (let i = 0, j = 0; i < old.length || j < fresh.length;) {
    const [was, is] = [old[i], fresh[j]];
    if (was !== undefined && was === is) {
      all.push({ mark: " ", text: was });
      i++;
      j++;
    } else if (was !== undefined && (is === undefined || at(i + 1, j) >= at(i, j + 1))) {
      all.push(gone(was));
      i++;
    } else if (is !== undefined) {
      all.push(added(is));
      j++;
    }
  }
  return all;
}
