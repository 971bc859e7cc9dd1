// A tool call as one line: its name, its arguments and how it ended. It opens to show all of it.
import { Component, type JSX } from "preact";
import { useState } from "preact/hooks";
import { Preview } from "../asks/preview.tsx";
import { showHidden } from "../hidden.ts";
import type { Block, Call } from "./log.ts";
import { Code } from "../markdown/code.tsx";
import { isNamedPicture, Picture } from "./picture.tsx";

interface CallProps {
  session: string; // the session's key: the pictures that the call's result names are among its files
  call?: Call | undefined; // what events say about the call
  use?: Block; // the call in the log
  result?: Block | undefined;
  over: boolean; // whether its turn is over
}

type State = "writing" | "waiting" | "running" | "ok" | "failed" | "unknown" | "over";

const words: Record<State, string> = {
  writing: "writing",
  waiting: "waiting",
  running: "running",
  ok: "done",
  failed: "failed",
  unknown: "outcome unknown",
  over: "ended",
};

// CallCard draws again only when its call changed: a turn may have many calls, and usually only one of them changes.
export class CallCard extends Component<CallProps> {
  private drawn = "";

  override shouldComponentUpdate(next: CallProps): boolean {
    return signatureOf(next) !== this.drawn;
  }

  override render(): JSX.Element {
    this.drawn = signatureOf(this.props);
    return <Card {...this.props} />;
  }
}

// signatureOf returns a text that changes whenever the card of a call has to.
function signatureOf({ call, use, result, over }: CallProps): string {
  const progress = call?.progress ?? "";
  return JSON.stringify([
    over, call?.id, call?.state, call?.brief, progress.length, progress.slice(-80), call?.error?.code,
    use?.text.length, use?.done, use?.call, use?.tool, use?.cut, result?.text.length, result?.done, result?.failed, result?.cut,
  ]);
}

function Card({ session, call, use, result, over }: CallProps): JSX.Element {
  const [opened, setOpened] = useState(false); // pictures are read only then, because the audit records each time that somebody reads one
  const tool = use?.tool || call?.tool || "tool";
  const change = changeOf(use);
  const input = change ? pretty(change.others) : inputOf(use);
  const answer = result ? contentOf(result.text) : "";
  const state = stateOf(call, use, result, over);
  const error = call?.error;
  return (
    <details class={"call " + state} onToggle={(e) => e.currentTarget.open && setOpened(true)}>
      <summary>
        <span class="mark" aria-hidden="true" />
        <span class="call-name">{showHidden(tool)}</span>
        <span class="call-brief">{showHidden(call?.brief || brief(change ? change.others : use?.input, input))}</span>
        <span class="call-state">{words[state]}</span>
      </summary>
      <div class="call-body">
        {change && (
          <div class="labeled">
            <div class="faint">Change{use?.cut && shortened}</div>
            <Preview parts={[{ text: showHidden(change.lines) }]} tool={tool} />
          </div>
        )}
        {input !== "" && <Labeled title="Arguments" text={showHidden(input)} cut={use?.cut} />}
        {state === "running" && call?.progress && <Labeled title="Progress" text={call.progress} />}
        {error && <p class="call-error">{error.message} <span class="faint">({error.code})</span></p>}
        {state === "unknown" && <p class="call-error">The call was interrupted. It may or may not have taken effect.</p>}
        {result && answer !== "" && !(error && answer.includes(error.message)) && <Labeled title="Result" text={answer} cut={result.cut} />}
        {opened && result && !result.failed && picturesOf(result.text).map((name) => <Shown key={name} session={session} name={name} />)}
      </div>
    </details>
  );
}

const shortened = " (shortened; the log has the full text)";

function Labeled({ title, text, cut }: { title: string; text: string; cut?: boolean | undefined }): JSX.Element {
  return (
    <div class="labeled">
      <div class="faint">{title}{cut && shortened}</div>
      <Code text={text} />
    </div>
  );
}

// Shown shows a picture that a call has looked at or kept, as it is now.
function Shown({ session, name }: { session: string; name: string }): JSX.Element {
  return (
    <figure class="picture">
      <figcaption class="faint name">{showHidden(name)}</figcaption>
      <Picture session={session} name={name} />
    </figure>
  );
}

// How many pictures a card shows at most.
const mostPictures = 8;

// picturesOf returns the names of the pictures in a result: its path, or the paths of its pieces, which is how the server
// names pictures that MCP servers have sent. It looks nowhere else, because the rest of a result may be anybody's words.
function picturesOf(content: string): string[] {
  try {
    const result = JSON.parse(content) as { path?: unknown; content?: unknown } | null;
    const pieces = Array.isArray(result?.content) ? (result.content as ({ path?: unknown } | null)[]) : [];
    const names = [result?.path, ...pieces.map((p) => p?.path)].filter((name) => typeof name === "string").filter(isNamedPicture);
    return [...new Set(names)].slice(0, mostPictures);
  } catch {
    return []; // it is shortened
  }
}

function stateOf(call: Call | undefined, use: Block | undefined, result: Block | undefined, over: boolean): State {
  if (call?.error?.code === unknownOutcome || (result?.failed && codeOf(result.text) === unknownOutcome)) return "unknown";
  if (result) return result.failed ? "failed" : "ok";
  if (call && call.state !== "running") return call.state === "failed" ? "failed" : "ok";
  if (over) return "over";
  if (call) return "running";
  return use && !use.done ? "writing" : "waiting";
}

const unknownOutcome = "outcome_unknown";

// codeOf returns the error code in a result's content; "" if there is none.
function codeOf(content: string): string {
  const found = /"code"\s*:\s*"([a-z_]+)"/.exec(content);
  return found?.[1] ?? "";
}

// changeOf returns what a call changes in a file, as lines with marks, and its other arguments. It returns null for other
// calls, and while the model writes the call.
function changeOf(use: Block | undefined): { lines: string; others: object } | null {
  if (use?.input === null || typeof use?.input !== "object") return null;
  const { old_text: was, new_text: is, patch, ...others } = use.input as Record<string, unknown>;
  if (use.tool === "apply_patch" && typeof patch === "string") return { lines: patch, others };
  if (use.tool !== "edit_file" || typeof was !== "string" || typeof is !== "string") return null;
  return { lines: [...marked("-", was), ...marked("+", is)].join("\n"), others };
}

// marked returns the lines of a text with a mark before each.
const marked = (mark: string, text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => mark + line));

// inputOf returns the arguments of a call for people to read.
function inputOf(use: Block | undefined): string {
  if (!use) return "";
  if (use.input !== undefined) return pretty(use.input);
  try {
    return pretty(JSON.parse(use.text));
  } catch {
    return use.text; // the model is still writing it
  }
}

function pretty(v: unknown): string {
  if (typeof v === "string") return v;
  if (v !== null && typeof v === "object" && Object.keys(v).length === 0) return "";
  return JSON.stringify(v, null, 2);
}

// contentOf returns the content of a result for people to read.
function contentOf(text: string): string {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text;
  }
}

// brief returns one line about the arguments of a call: their values, or the beginning of what the model wrote so far.
function brief(args: unknown, written: string): string {
  const values = args !== null && typeof args === "object" ? Object.values(args).filter((v) => typeof v !== "object").join("  ") : written;
  const line = values.replace(/\s+/g, " ").trim();
  return line.length > 160 ? line.slice(0, 160) + "…" : line;
}
