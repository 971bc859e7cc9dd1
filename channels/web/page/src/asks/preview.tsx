// A tool call, exactly as it would run.
import type { JSX } from "preact";
import { showHidden } from "../hidden.ts";
import type { Ask, Part } from "../schemas.ts";

// partsOf returns what people see of the call that a request is about, without anything invisible. If the server
// doesn't say what the call would do, people see its arguments.
export function partsOf(ask: Ask): Part[] {
  const shown = ask.shown ?? [];
  const parts = shown.length > 0 || ask.arguments === undefined ? shown : [{ text: JSON.stringify(ask.arguments, null, 2) }];
  return parts.map((p) => ({ ...p, text: showHidden(p.text) }));
}

// linesOf returns how many lines a call has.
export function linesOf(parts: Part[]): number {
  return parts.reduce((sum, p) => sum + p.text.split("\n").length, 0);
}

// Preview shows what a call would do, and the other arguments of the call. most is how many lines it shows at most.
export function Preview({ parts, tool, most = Infinity }: { parts: Part[]; tool?: string; most?: number }): JSX.Element {
  let left = most;
  const shown: { part: Part; lines: string[] }[] = [];
  for (const part of parts) {
    if (left <= 0) break;
    const lines = part.text.split("\n").slice(0, left);
    left -= lines.length;
    shown.push({ part, lines });
  }
  return (
    <div class="preview">
      {shown.map(({ part, lines }) => {
        const name = part.name && showHidden(part.name);
        return (
          <div key={part.name ?? ""}>
            {name && <h3>{name}</h3>}
            <pre tabIndex={0} role="region" aria-label={name || "What would run"}>{lines.map((line, i) => <Line key={i} text={line} marked={!part.name && isChange(part.text, tool)} />)}</pre>
          </div>
        );
      })}
    </div>
  );
}

// isChange reports whether a call is shown as a change of files, whose lines begin with marks. The lines of a new file
// have none.
function isChange(text: string, tool?: string): boolean {
  if (tool === "write_file") return !/^[^\n]*(a new file|all of it):\n/.test(text);
  return tool === "edit_file" || tool === "apply_patch";
}

// Line is one line of a call. In a change, its mark gives it a color.
function Line({ text, marked }: { text: string; marked: boolean }): JSX.Element {
  let look = "";
  if (marked && text.startsWith("+")) look = "plus";
  else if (marked && text.startsWith("-")) look = "minus";
  else if (marked && /^(@@|\*\*\*)/.test(text)) look = "head";
  return <span class={"preview-line " + look}>{text + "\n"}</span>;
}
