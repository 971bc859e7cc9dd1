// Approvals: the open requests, and the latest decisions.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api.ts";
import { AskTitle, OpenAsk } from "../asks/openask.tsx";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Empty, WhyLink } from "../parts.tsx";
import type { Ask, Me } from "../schemas.ts";
import type { ViewProps } from "../views.ts";
import { History } from "./history.tsx";
import { Name, SessionLink, Sheet, State, useOutcome } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";

// How many lines of a call are shown at first.
const mostLines = 40;

export function Approvals({ me, rest }: ViewProps): JSX.Element {
  const named = rest[0] ?? "";
  const outcome = useOutcome();
  const [decided, setDecided] = useState(0);
  const read = useRefreshed((signal) => get<{ asks: Ask[] }>(["asks"], {}, signal), "", 20, ["ask", "ask_resolved"]);
  const asks = read.value?.asks;
  const done = (ask: Ask) => {
    outcome.say(outcomeOf(ask));
    setDecided((n) => n + 1);
    read.again();
  };
  return (
    <Sheet title="Approvals" done={outcome} about="What turns are waiting for. Nothing runs until someone decides. Opening a link to a request never decides it.">
      <State {...read} />
      {asks && named && !asks.some((a) => a.id === named) && (
        <p class="note">The request <code>{showHidden(named)}</code> isn't open. Someone decided it, it expired, or you can't see it.</p>
      )}
      {asks?.length === 0 && <Empty>No open requests. When a tool call needs approval or the agent has a question, you'll see it here.</Empty>}
      {asks?.map((a) => <Request key={a.id} ask={a} me={me} named={a.id === named} done={done} />)}
      {me.may.admin && <History decided={decided} />}
    </Sheet>
  );
}

// outcomeOf says what somebody's decision does.
function outcomeOf(ask: Ask): string {
  if (ask.kind === "question") return "Answer sent. The agent continues now.";
  const what = showHidden(ask.tool ?? "the call");
  if (ask.answer === "deny") return `You denied ${what}. The agent continues without it.`;
  return `You approved ${what}${ask.answer === "session" ? " for this session" : ""}. It's running now.`;
}

interface RequestProps {
  ask: Ask;
  me: Me;
  named: boolean; // whether the address names it
  done: (ask: Ask) => void;
}

// Request is one request. If the address names it, it scrolls into view.
function Request({ ask, me, named, done }: RequestProps): JSX.Element {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!named) return;
    box.current?.scrollIntoView({ block: "start" });
    box.current?.focus({ preventScroll: true });
  }, [named]);
  const title = "request-" + ask.id;
  return (
    <article ref={box} class={"request" + (named ? " named" : "")} aria-labelledby={title} tabIndex={-1}>
      <h2 id={title}><AskTitle ask={ask} /></h2>
      <p class="aside">
        For <Name of={ask.person} /> in <SessionLink of={ask.session} />; asked <Ago at={ask.at} />, expires <Ago at={ask.expires} />{" "}
        {me.may.admin && <WhyLink of={ask.turn} />}
      </p>
      {ask.to && ask.to.length > 0 && <p class="aside">Also asked in {ask.to.map(showHidden).join(", ")}.</p>}
      <OpenAsk ask={ask} me={me} most={mostLines} onDone={done} />
    </article>
  );
}
