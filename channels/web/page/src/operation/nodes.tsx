// Nodes: devices that run calls for agents, and what they offer that nobody has accepted yet.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { count } from "../amounts.ts";
import { get, post } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago, Clock, Since } from "../moments.tsx";
import { Button, Empty } from "../parts.tsx";
import { Accepted, Difference, schemaOf } from "./mcptool.tsx";
import { Badge, Name, Opened, type Outcome, Sheet, State, useConfirmation, useOutcome, Verbatim } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { Device, DeviceTool, Invitation } from "./schemas.ts";

const states = { waiting: "waiting to be accepted", accepted: "accepted", revoked: "removed" };
const looks = { waiting: "warn", accepted: "good", revoked: undefined } as const;

export function Nodes(): JSX.Element {
  const outcome = useOutcome();
  const [invited, setInvited] = useState<Invitation | null>(null);
  const read = useRefreshed((signal) => get<{ nodes: Device[] }>(["nodes"], {}, signal), "", 10);
  const devices = read.value?.nodes;
  const invite = async () => setInvited(await post<Invitation>(["nodes", "invite"]));
  const removing = useConfirmation<Device>((n) => ({
    title: `Remove ${n.name}?`,
    confirm: "Remove node",
    text: <>Its connection ends at once, and agents can't use it anymore. To be used again, <Name of={n.name} /> has to join again.</>,
    act: async () => {
      await post(["nodes", n.name, "revoke"]);
      outcome.say(`Removed ${n.name}.`);
      read.again();
    },
  }));
  return (
    <Sheet title="Nodes" done={outcome} about="Devices that run calls for agents. Agents can't use a device, or a new or changed tool of one, until you accept it.">
      <div class="filters"><Button onPress={invite} onError={outcome.fail}>Invite a device</Button></div>
      {invited && <Invited key={invited.code} by={invited} close={() => setInvited(null)} />}
      <State {...read} />
      {devices?.length === 0 && <Empty>No device has joined. See docs/nodes.md.</Empty>}
      {devices?.map((n) => <Shown key={n.name} of={n} outcome={outcome} again={read.again} remove={() => removing.ask(n)} />)}
      {removing.dialog}
    </Sheet>
  );
}

// Invited shows the command with which a device can join.
function Invited({ by, close }: { by: Invitation; close: () => void }): JSX.Element {
  // Devices use http only to reach their own machine.
  const reached = by.url || (location.protocol === "https:" ? location.origin : "");
  const command = `parley node join ${reached || "https://…"} ${by.code}`;
  return (
    <Opened title="Run this on the device" close={close}>
      <Verbatim of={command} label="The command to run on the device" />
      {by.broker && (
        <>
          <p>Or this, if it reaches only the MQTT broker:</p>
          <Verbatim of={`parley node join ${by.broker} ${by.broker_code}`} label="The command to run on a device that reaches only the broker" />
        </>
      )}
      <p>The code works once, until <Clock at={by.until} /> (<Ago at={by.until} />). Then start <code>parley node</code> there, and accept the device here.</p>
      {!reached && <p>Replace https://… with the address at which the device reaches this server. With <code>[http] public_url</code>, it's shown here.</p>}
    </Opened>
  );
}

interface ShownProps {
  of: Device;
  outcome: Outcome;
  again: () => void;
  remove: () => void;
}

// Shown shows one node.
function Shown({ of: n, outcome, again, remove }: ShownProps): JSX.Element {
  const title = "node-" + n.name;
  const isUsed = n.state !== "revoked";
  return (
    <article class="story" aria-labelledby={title}>
      <h2 id={title}>
        <Name of={n.name} /> <Badge look={looks[n.state]}>{states[n.state]}</Badge> {isUsed && <Badge look={n.here ? "good" : "bad"}>{n.here ? "here" : "away"}</Badge>}
      </h2>
      {isUsed && <p class="aside"><Link of={n} /></p>}
      {n.platform && <p class="aside">Platform: <Name of={n.platform} /></p>}
      {isUsed && <p class="aside">{n.agents.length > 0 ? `Used by ${n.agents.join(", ")}` : "No agent may use it"}. {n.trusted ? "What it returns is trusted." : "What it returns isn't trusted."}</p>}
      <p class="aside">{n.fingerprint ? <>Fingerprint of its key: <code>{n.fingerprint}</code></> : "It has no key."}</p>
      {isUsed && <div class="rowactions"><Button look="danger" onPress={remove} label={`Remove ${n.name}`}>Remove…</Button></div>}
      {isUsed && <Offered by={n} outcome={outcome} again={again} />}
      {n.tools.length > 0 && <details><summary>{count(n.tools.length, "tool")} in use</summary><Accepted server={n.name} tools={n.tools} /></details>}
    </article>
  );
}

// Link says since when a node is here or away.
function Link({ of: n }: { of: Device }): JSX.Element {
  if (!n.since) return <>It hasn't connected yet. Start <code>parley node</code> on the device.</>;
  return n.here ? <>Connected for <Since at={n.since} /></> : <>Away for <Since at={n.since} />, since <Ago at={n.since} /></>;
}

// Offered shows what a node offers that nobody has accepted yet. It stays as it was when it appeared, so that nobody
// accepts what they haven't seen.
function Offered({ by, outcome, again }: { by: Device; outcome: Outcome; again: () => void }): JSX.Element | null {
  const [, draw] = useState(0);
  const before = useRef<Device | null>(null); // the node as it is shown
  const waits = by.aside.length > 0 || (by.state === "waiting" && by.since !== undefined);
  if (!waits) before.current = null;
  else before.current ??= by;
  const shown = before.current;
  if (!shown) return null;
  const what = by.state === "waiting" ? "Accept this node" : "Accept these tools";
  const give = async () => {
    try {
      await post(["nodes", by.name, "accept"], { digest: shown.digest });
      outcome.say(`Accepted ${by.name}.`);
    } finally {
      again();
    }
  };
  const renew = () => {
    before.current = by;
    draw((n) => n + 1);
  };
  return (
    <>
      <div class="between"><h3>{shown.aside.length > 0 ? `${count(shown.aside.length, "tool")} to accept` : "It offers no tools"}</h3></div>
      {shown.aside.map((t) => <Waiting key={t.name} node={by.name} tool={t} />)}
      {shown.digest !== by.digest
        ? <p class="note warn">What it offers changed while you were looking. <Button onPress={renew} label={`Show it again: ${by.name}`}>Show it again</Button></p>
        : <Button look="main" onPress={give} onError={outcome.fail} label={`${what}: ${by.name}`}>{what}</Button>}
    </>
  );
}

// Waiting shows a tool that nobody has accepted yet.
function Waiting({ node, tool }: { node: string; tool: DeviceTool }): JSX.Element {
  const name = showHidden(tool.name);
  return (
    <section class="request" aria-label={`Tool ${name} of ${node}`}>
      <div class="between">
        <strong><code>{name}</code></strong>
        {tool.pure && <span class="aside">It says that it changes nothing</span>}
      </div>
      <Difference title="Description" of={`${name} of ${node}`} now={tool.description} isNew />
      <Difference title="Arguments" of={`${name} of ${node}`} now={schemaOf(tool)} isNew />
    </section>
  );
}
