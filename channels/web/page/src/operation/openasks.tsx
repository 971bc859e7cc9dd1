// The number of open requests, next to the link to them.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get } from "../api.ts";
import { useRefreshed } from "./refresh.ts";

// OpenAsks also passes the number to tell, so that the menu button can show it while the link is hidden.
export function OpenAsks({ tell }: { tell: (open: number) => void }): JSX.Element | null {
  const read = useRefreshed((signal) => get<{ asks: unknown[] }>(["asks"], {}, signal), "", 60, ["ask", "ask_resolved"]);
  const open = read.value?.asks.length ?? 0;
  useEffect(() => tell(open), [open]);
  return open === 0 ? null : <span class="badge warn">{open}<span class="away"> open</span></span>;
}
