// People: who has access, who wants it, where people talked to the agent, and erasing what they said.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post, remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, useLoaded, WhyLink } from "../parts.tsx";
import { Erase, Erasing } from "./erasing.tsx";
import { Badge, Block, Listing, Name, type Outcome, SessionLink, Sheet, useConfirmation, useOutcome } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { Configuration, KnownChat, Pairing, Setting } from "./schemas.ts";

const states = { owner: "owner", admitted: "has access", asks: "wants access" };

export function People({ rest }: { rest: string[] }): JSX.Element {
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
    <Sheet title="People" done={outcome} about="People who got access with a code, people who want it, and people named in the configuration.">
      {rest[0] && <Erasing id={rest[0]} />}
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
          { title: "Linked with", cell: (p) => p.linked?.map((other) => <div key={other}><Name of={other} /></div>) },
          { title: "Code", cell: (p) => p.code && <code>{p.code}</code> },
          { title: "Since", cell: (p) => <Ago at={p.at} /> },
          { title: "Actions", cell: (p) => <Button look="danger" onPress={() => ending.ask(p)} label={(p.state === "asks" ? "Refuse " : "Revoke ") + nameOf(p)}>{p.state === "asks" ? "Refuse…" : "Revoke…"}</Button> },
        ]}
      />
      <Configured />
      <Chats />
      <Erase outcome={outcome} />
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

// What a setting of a channel says about the people that it lists, by the setting's name.
const roles: Record<string, string> = { owners: "owner", approvers: "approver", allow_from: "has access" };

interface Named {
  person: string;
  role: string;
  from: string;
}

// Configured lists the people whom the configuration names.
function Configured(): JSX.Element {
  const read = useLoaded((signal) => get<Configuration>(["config"], {}, signal), "");
  return (
    <Block title="In the configuration" wide>
      <Listing
        read={read}
        rows={(v) => v.settings.flatMap(namedBy)}
        label="People named in the configuration"
        id={(n) => n.person + " " + n.role}
        empty="Nobody is named in the configuration."
        columns={[
          { title: "Person", cell: (n) => <Name of={n.person} /> },
          { title: "Role", cell: (n) => <Badge look="good">{n.role}</Badge> },
          { title: "From", cell: (n) => <Name of={n.from} /> },
        ]}
      />
    </Block>
  );
}

function namedBy({ key, value, from }: Setting): Named[] {
  const [, channel, name = ""] = /^channels\.(.+)\.([a-z_]+)$/.exec(key) ?? [];
  const role = roles[name];
  return channel && role && Array.isArray(value) ? value.map((id) => ({ person: `${channel}:${String(id)}`, role, from })) : [];
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
