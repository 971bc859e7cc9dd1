// People: who has access, who wants it, and where people talked to the agent.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post, remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, useLoaded, WhyLink } from "../parts.tsx";
import { Badge, Block, Listing, Name, type Outcome, SessionLink, Sheet, useConfirmation, useOutcome } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { KnownChat, Pairing } from "./schemas.ts";

const states = { owner: "owner", admitted: "has access", asks: "wants access" };

export function People(): JSX.Element {
  const outcome = useOutcome();
  const read = useRefreshed((signal) => get<{ pairings: Pairing[] }>(["pairings"], {}, signal), "", 10);
  const admit = async (code: string) => {
    const p = await post<Pairing>(["pairings"], { code });
    outcome.say(`${nameOf(p)} now has access.`);
    read.again();
  };
  const ending = useConfirmation<Pairing>((p) => ({
    title: p.state === "asks" ? "Refuse access?" : "Revoke access?",
    confirm: p.state === "asks" ? "Refuse" : "Revoke",
    text: <>{nameOf(p)} (<Name of={p.person} />) {p.state === "asks" ? "will need to ask for access again." : "can't talk to the agent anymore, unless someone gives them access again."}</>,
    act: async () => {
      await remove(["pairings", p.person]);
      outcome.say(p.state === "asks" ? `You refused ${nameOf(p)} access.` : `${nameOf(p)} no longer has access.`);
      read.again();
    },
  }));
  return (
    <Sheet title="People" done={outcome} about="People who got access with a code, and people who want it. The configuration can name others.">
      <Admit admit={admit} outcome={outcome} />
      <Listing
        read={read}
        rows={(v) => v.pairings}
        label="People who have access or want it"
        id={(p) => p.person}
        empty="Nobody has access or wants it yet. People who write to the agent on a channel with access = &quot;pairing&quot; get a code and show up here."
        columns={[
          { title: "Person", cell: (p) => <>{p.name && <><strong><Name of={p.name} /></strong><br /></>}<span class="aside"><Name of={p.person} /></span></> },
          { title: "State", cell: (p) => <Badge look={p.state === "asks" ? "warn" : "good"}>{states[p.state] ?? p.state}</Badge> },
          { title: "Code", cell: (p) => p.code && <code>{p.code}</code> },
          { title: "Since", cell: (p) => <Ago at={p.at} /> },
          { title: "Actions", cell: (p) => <Button look="danger" onPress={() => ending.ask(p)} label={(p.state === "asks" ? "Refuse " : "Revoke ") + nameOf(p)}>{p.state === "asks" ? "Refuse…" : "Revoke…"}</Button> },
        ]}
      />
      <Chats />
      {ending.dialog}
    </Sheet>
  );
}

function nameOf(p: Pairing): string {
  return showHidden(p.name || p.person);
}

// Admit gives access to the person who got a code from the agent.
function Admit({ admit, outcome }: { admit: (code: string) => Promise<void>; outcome: Outcome }): JSX.Element {
  const [code, setCode] = useState("");
  const send = async () => {
    await admit(code.trim());
    setCode("");
  };
  return (
    <form class="filters" onSubmit={(e) => { e.preventDefault(); if (code.trim()) send().catch(outcome.fail); }}>
      <label>
        Code that the person got from the agent
        <input value={code} autocomplete="off" spellcheck={false} onInput={(e) => setCode(e.currentTarget.value)} />
      </label>
      <Button look="main" disabled={!code.trim()} onPress={send} onError={outcome.fail}>Give access</Button>
    </form>
  );
}

// Chats lists where people talked to the agent.
function Chats(): JSX.Element {
  const read = useLoaded((signal) => get<{ chats: KnownChat[] }>(["chats"], {}, signal), "");
  return (
    <Block title="Chats" wide>
      <Listing
        read={read}
        rows={(v) => v.chats}
        label="Chats where people talked to the agent"
        id={(c) => c.address + " " + c.session}
        empty="Nobody has talked to the agent yet."
        columns={[
          { title: "Chat", cell: (c) => <>{c.name && <><strong><Name of={c.name} /></strong><br /></>}<span class="aside"><Name of={c.address} /></span></> },
          { title: "Kind", cell: (c) => (c.group ? "group" : "private") },
          { title: "Session", cell: (c) => <SessionLink of={c.session} /> },
          { title: "Since", cell: (c) => <Ago at={c.since} /> },
          { title: "Messages", cell: (c) => <WhyLink of={c.address} /> },
        ]}
      />
    </Block>
  );
}
