// An open request: what it is about, and its buttons. The chat and the approvals view both show it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { showHidden } from "../hidden.ts";
import { Button, Dialog, ErrorNote } from "../parts.tsx";
import type { Ask, Me } from "../schemas.ts";
import { linesOf, partsOf, Preview } from "./preview.tsx";
import { decide, refusal } from "./rules.ts";

// AskTitle says what a request wants.
export function AskTitle({ ask }: { ask: Ask }): JSX.Element {
  if (ask.kind === "question") return <>The agent has a question</>;
  return <><code>{showHidden(ask.tool ?? "A tool")}</code> needs approval</>;
}

interface OpenAskProps {
  ask: Ask;
  me: Me;
  most: number; // how many lines of a call are shown at first
  onDone: (ask: Ask) => void;
}

export function OpenAsk({ ask, me, most, onDone }: OpenAskProps): JSX.Element {
  const no = refusal(ask, me);
  return (
    <>
      {ask.reason && <p>Reason: {showHidden(ask.reason)}</p>}
      {ask.kind === "question" ? <Question ask={ask} closed={no !== ""} onDone={onDone} /> : <Approval ask={ask} closed={no !== ""} most={most} onDone={onDone} />}
      {no && <p class="note">{no}</p>}
    </>
  );
}

interface DecisionProps {
  ask: Ask;
  closed: boolean; // whether this person may not answer
  onDone: (ask: Ask) => void;
}

// Approval shows the call and the buttons. People who approve a call before they have seen all of it confirm that first.
function Approval({ ask, closed, most, onDone }: DecisionProps & { most: number }): JSX.Element {
  const parts = partsOf(ask);
  const lines = linesOf(parts);
  const [whole, setWhole] = useState(lines <= most);
  const [reason, setReason] = useState("");
  const [unseen, setUnseen] = useState(""); // the answer to confirm
  const [error, setError] = useState<unknown>(null);
  const tool = showHidden(ask.tool ?? "the call");
  const give = async (answer: string) => onDone(await decide(ask, answer));
  const approve = (answer: string) => () => (whole ? give(answer) : setUnseen(answer));
  const deny = async () => onDone(await decide(ask, "deny", reason.trim()));
  return (
    <>
      <Preview parts={parts} tool={ask.tool} most={whole ? Infinity : most} />
      {!whole && <div><Button onPress={() => setWhole(true)}>Show all {lines} lines</Button></div>}
      <ErrorNote error={error} />
      {!closed && (
        <>
          <div class="decide">
            <Button look="main" onPress={approve("approve")} onError={setError} label={`Approve once: ${tool}`}>Approve once</Button>
            <Button onPress={approve("session")} onError={setError} label={`Approve for this session: ${tool}`}>Approve for this session</Button>
            <label class="away" for={"reason-" + ask.id}>Reason for denying, which the agent sees</label>
            <input id={"reason-" + ask.id} placeholder="Why not? (optional)" value={reason} onInput={(e) => setReason(e.currentTarget.value)} />
            <Button look="danger" onPress={deny} onError={setError} label={`Deny: ${tool}`}>Deny</Button>
          </div>
          <p class="faint">If you approve it for this session, exactly the same call runs there again without asking.</p>
        </>
      )}
      {unseen && (
        <Dialog title="You haven't seen all of it" confirm="Approve anyway" onConfirm={() => give(unseen)} onClose={() => setUnseen("")}>
          The call has {lines} lines. You see the first {most}.
        </Dialog>
      )}
    </>
  );
}

// Question shows the choices, and a field for any other answer.
function Question({ ask, closed, onDone }: DecisionProps): JSX.Element {
  const [words, setWords] = useState("");
  const [error, setError] = useState<unknown>(null);
  const give = async (answer: string) => onDone(await decide(ask, answer));
  const send = () => give(words.trim());
  return (
    <>
      <p class="question">{showHidden(ask.question ?? "")}</p>
      <ErrorNote error={error} />
      {!closed && ask.choices && ask.choices.length > 0 && (
        <div class="decide">
          {ask.choices.map((c, i) => <Button key={i} onPress={() => give(c)} onError={setError}>{showHidden(c)}</Button>)}
        </div>
      )}
      {!closed && (
        <form class="decide" onSubmit={(e) => { e.preventDefault(); if (words.trim()) send().catch(setError); }}>
          <label class="away" for={"words-" + ask.id}>Your answer</label>
          <input id={"words-" + ask.id} placeholder="Answer in your own words" value={words} onInput={(e) => setWords(e.currentTarget.value)} />
          <Button disabled={!words.trim()} onPress={send} onError={setError}>Answer</Button>
        </form>
      )}
    </>
  );
}
