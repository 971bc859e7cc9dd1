// A request in a conversation: open, with its buttons, or as a line that says how it ended.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { AskTitle, OpenAsk } from "../asks/openask.tsx";
import { partsOf, Preview } from "../asks/preview.tsx";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import type { Ask, Me } from "../schemas.ts";

// How many lines of a call are shown at first. It is a small number, to keep the conversation readable.
const mostLines = 15;

export function AskCard({ ask, me }: { ask: Ask; me: Me }): JSX.Element {
  const [answered, setAnswered] = useState<Ask | null>(null); // until the stream says so
  const now = ask.state === "open" && answered ? answered : ask;
  if (now.state !== "open") return <EndedAsk ask={now} me={me} />;
  const title = "ask-" + ask.id;
  return (
    <div class="ask open" role="group" aria-labelledby={title}>
      <div class="ask-title" id={title}><AskTitle ask={ask} /></div>
      <OpenAsk ask={ask} me={me} most={mostLines} onDone={setAnswered} />
      <div class="faint">Expires <Ago at={ask.expires} /></div>
    </div>
  );
}

function EndedAsk({ ask, me }: { ask: Ask; me: Me }): JSX.Element {
  return (
    <details class="ask ended">
      <summary>{ask.kind === "question" ? showHidden(ask.question ?? "") : <code>{showHidden(ask.tool ?? "")}</code>} <strong>{endOf(ask, me)}</strong></summary>
      {ask.reason && <div>Reason: {showHidden(ask.reason)}</div>}
      {ask.kind === "approval" && <Preview parts={partsOf(ask)} tool={ask.tool} />}
    </details>
  );
}

const decisions: Record<string, string> = { approve: "Approved", session: "Approved for this session", deny: "Denied" };

// endOf says how a request ended.
function endOf(ask: Ask, me: Me): string {
  if (ask.state === "expired") return "Expired: nobody answered in time";
  if (ask.state === "withdrawn") return "Withdrawn";
  const by = !ask.by ? "" : ask.by === "web:" + me.name ? " by you" : " by " + showHidden(ask.by);
  const answer = ask.answer ?? "";
  return (ask.kind === "approval" ? (decisions[answer] ?? "Answered") : showHidden(answer)) + by;
}
