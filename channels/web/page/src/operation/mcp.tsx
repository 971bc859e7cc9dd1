// MCP servers: programs and services whose tools agents use, and the tools that nobody has accepted yet.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { count, length } from "../amounts.ts";
import { get, post } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Button, Empty } from "../parts.tsx";
import { Accepted, accept, Waiting } from "./mcptool.tsx";
import { SignInTo } from "./mcpsignin.tsx";
import { Badge, Name, type Outcome, Sheet, State, useConfirmation, useOutcome } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { AsideTool, McpServer, McpTrial } from "./schemas.ts";

const states = { up: "up", down: "down", sign_in: "sign-in needed", untried: "not tried here" };
const looks = { up: "good", down: "bad", sign_in: "warn", untried: undefined } as const;

export function McpServers(): JSX.Element {
  const outcome = useOutcome();
  const read = useRefreshed((signal) => get<{ servers: McpServer[] }>(["mcp"], {}, signal), "", 15);
  const servers = read.value?.servers;
  return (
    <Sheet title="MCP servers" done={outcome} about="Programs and services whose tools agents use. Agents can't use a new or changed tool until you accept it.">
      <State {...read} />
      {servers?.length === 0 && <Empty>No MCP servers are configured. See docs/tools.md to add one.</Empty>}
      {servers?.map((s) => <Server key={s.name} of={s} outcome={outcome} again={read.again} />)}
    </Sheet>
  );
}

function Server({ of: s, outcome, again }: { of: McpServer; outcome: Outcome; again: () => void }): JSX.Element {
  const [trial, setTrial] = useState<McpTrial | null>(null);
  const title = "server-" + s.name;
  const test = async () => {
    const got = await post<McpTrial>(["mcp", s.name, "test"]);
    setTrial(got);
    if (got.up) outcome.say(`${s.name} lists ${count(got.listed, "tool")}, after ${length(got.ms)}.`);
    else outcome.fail(new Error(`${s.name} can't be reached: ${showHidden(got.error ?? "")}`));
    again();
  };
  const signedIn = () => {
    outcome.say(`Signed in to ${s.name}.`);
    again();
  };
  return (
    <article class="story" aria-labelledby={title}>
      <h2 id={title}><Name of={s.name} /> <Badge look={looks[s.state]}>{states[s.state]}</Badge></h2>
      <p class="aside">{s.agents.length > 0 ? `Used by ${s.agents.join(", ")}` : "No agent uses it"}{s.state === "untried" && ". This process hasn't tried to reach it; in a fleet, workers do"}</p>
      {s.error && <p class="trouble">{showHidden(s.error)}</p>}
      <div class="rowactions">
        <Button onPress={test} onError={outcome.fail} label={`Test ${s.name}`}>Test</Button>
        {s.sign_in && s.state !== "up" && <SignInTo key={s.state} server={s.name} done={signedIn} />}
      </div>
      {trial && trial.unusable.length > 0 && (
        <ul class="hints">{trial.unusable.map((u) => <li key={u.reason}>{count(u.tools, "tool")} can't be used: {u.reason} {u.names && <Name of={`(${u.names.join(", ")})`} />}</li>)}</ul>
      )}
      <Aside server={s} outcome={outcome} again={again} />
      {s.tools.length > 0 && <details><summary>{count(s.tools.length, "tool")} in use</summary><Accepted server={s.name} tools={s.tools} /></details>}
    </article>
  );
}

// Aside shows the tools that nobody has accepted yet. Each stays as it was when it appeared, so that nobody accepts what
// they haven't seen.
function Aside({ server: s, outcome, again }: { server: McpServer; outcome: Outcome; again: () => void }): JSX.Element | null {
  const [, draw] = useState(0);
  const before = useRef(new Map<string, AsideTool>()); // the tools as they are shown, by name
  const shown = new Map(s.aside.map((t) => [t.name, before.current.get(t.name) ?? t]));
  before.current = shown;
  const renew = (t: AsideTool) => {
    shown.set(t.name, t);
    draw((n) => n + 1);
  };
  const all = useConfirmation<AsideTool[]>((tools) => ({
    title: `Accept ${count(tools.length, "tool")}?`,
    confirm: "Accept all",
    text: <>Agents read what these tools say about themselves as if you had said it: <Name of={tools.map((t) => t.name).join(", ")} />. Accept them only if you've read it.</>,
    act: async () => {
      try {
        for (const t of tools) await accept(s.name, t);
        outcome.say(`Accepted ${count(tools.length, "tool")} of ${s.name}.`);
      } finally {
        again();
      }
    },
  }));
  if (s.aside.length === 0) return null;
  return (
    <>
      <div class="between">
        <h3>{count(s.aside.length, "tool")} to accept</h3>
        {s.aside.length > 1 && <Button onPress={() => all.ask([...shown.values()])} label={`Accept all of ${s.name}`}>Accept all…</Button>}
      </div>
      {s.aside.map((t) => <Waiting key={t.name} server={s.name} tool={shown.get(t.name) ?? t} changed={shown.get(t.name)?.digest !== t.digest} renew={() => renew(t)} outcome={outcome} done={again} />)}
      {all.dialog}
    </>
  );
}
