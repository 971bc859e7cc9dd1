// Why: what happened to a message, step by step.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago, Clock } from "../moments.tsx";
import { Button, useLoaded } from "../parts.tsx";
import { go, linkTo } from "../route.ts";
import { Badge, Coded, SessionLink, Sheet, State } from "./pieces.tsx";
import type { Story, Told } from "./schemas.ts";

export function Why({ rest }: { rest: string[] }): JSX.Element {
  const id = rest[0] ?? "";
  return (
    <Sheet title="Why" about="What happened to a message: who let it in, what ran, what people were asked, and whether the answer was sent. It never shows what anyone said.">
      <Ask key={id} id={id} />
      {id && <Answer id={id} />}
    </Sheet>
  );
}

// Ask is a form that asks what to explain.
function Ask({ id }: { id: string }): JSX.Element {
  const [given, setGiven] = useState(id);
  const show = () => go("why", given.trim());
  return (
    <form class="filters" onSubmit={(e) => { e.preventDefault(); if (given.trim()) show(); }}>
      <label class="long">
        Message, session, chat or person
        <input value={given} placeholder="telegram:42" spellcheck={false} onInput={(e) => setGiven(e.currentTarget.value)} />
      </label>
      <Button look="main" disabled={!given.trim()} onPress={show}>Show</Button>
    </form>
  );
}

function Answer({ id }: { id: string }): JSX.Element {
  const read = useLoaded((signal) => get<Told>(["why", id], {}, signal).then((told) => ({ id, told })), id);
  const told = read.value?.id === id ? read.value.told : undefined;
  return (
    <div aria-live="polite">
      <State value={told} error={read.error} again={read.again} />
      {told && told.about !== "message" && told.messages.length > 0 && <p class="aside">Latest messages of the {told.about} {showHidden(told.id)}:</p>}
      {told?.messages.map((s) => <OneStory key={s.message} of={s} />)}
      {told && told.messages.length === 0 && <p class="none">No messages found for {showHidden(told.id)}.</p>}
      {told?.hints && told.hints.length > 0 && <ul class="hints">{told.hints.map((h, i) => <li key={i}><Coded text={h} /></li>)}</ul>}
    </div>
  );
}

const good = new Set(["answered", "done"]);
const open = new Set(["running", "waiting", "waiting_for_people", "sending"]);

function OneStory({ of: s }: { of: Story }): JSX.Element {
  const look = good.has(s.outcome) ? "good" : open.has(s.outcome) ? "warn" : "bad";
  const title = "story-" + s.message;
  return (
    <article class="story" aria-labelledby={title}>
      <h2 id={title}><span class="name">{showHidden(s.message)}</span> <Badge look={look}>{s.outcome.replaceAll("_", " ")}</Badge></h2>
      <p class="aside">{s.steps[0]?.at && <Ago at={s.steps[0].at} />}{s.session && <> in <SessionLink of={s.session} /></>}</p>
      <ol class="steps">
        {s.steps.map((step, i) => <li key={i}><span class="at">{step.at && <Clock at={step.at} />}</span> <span><Coded text={step.text} /></span></li>)}
      </ol>
      <p><strong><Coded text={s.says} /></strong> {s.outcome === "waiting_for_people" && <a href={linkTo("approvals")}>See open requests</a>}</p>
    </article>
  );
}
