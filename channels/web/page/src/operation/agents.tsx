// Agents: what the bot has. Its agents, their tools and skills, and the targets of messages.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { dollars, grouped } from "../amounts.ts";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { useLoaded } from "../parts.tsx";
import { linkTo } from "../route.ts";
import type { ViewProps } from "../views.ts";
import { Badge, Block, hasWords, Listing, Name, Sheet, Words } from "./pieces.tsx";
import type { AgentTool, KnownAgent, KnownSkill, ServerStatus, Target } from "./schemas.ts";

const origins = { builtin: "built in", mcp: "MCP server", skill: "skill" };

// most is how many characters of a description are shown at first.
const most = 160;

export function Agents({ me }: ViewProps): JSX.Element {
  const status = useLoaded((signal) => get<ServerStatus>(["status"], { brief: true }, signal), "");
  const works = status.value?.role !== "gateway";
  return (
    <Sheet title="Agents" about="What the bot has: its agents, their tools and skills, and where they may send messages.">
      {!works && <p class="note">A gateway serves this page. It runs no turns, so it can't say which tools work where turns run, and it lists no skills.</p>}
      <AgentList works={works} />
      <Tools />
      {me.may.admin && <p class="aside">To accept new tools of MCP servers, see <a href={linkTo("mcp")}>MCP servers</a>.</p>}
      {me.may.admin && works && <Skills />}
      <Targets />
    </Sheet>
  );
}

function AgentList({ works }: { works: boolean }): JSX.Element {
  const read = useLoaded((signal) => get<{ agents: KnownAgent[] }>(["agents"], {}, signal), "");
  return (
    <Listing
      read={read}
      rows={(v) => v.agents}
      label="Agents"
      id={(a) => a.name}
      empty="There are no agents."
      columns={[
        { title: "Agent", cell: (a) => <><strong><Name of={a.name} /></strong> {works && !a.answers && <Badge look="bad">no model</Badge>}</> },
        { title: "Models", cell: (a) => <Names of={a.models.map((m) => m.name ?? m.setting)} /> },
        { title: "Capabilities", cell: (a) => (a.capabilities.length > 0 ? a.capabilities.join(", ") : "none") },
        { title: "Tools", cell: (a) => grouped(a.tools.length), number: true },
        { title: "May message", cell: (a) => <Names of={a.may_message} /> },
        { title: "Cap per day", cell: (a) => (a.microdollars_day ? dollars(a.microdollars_day) : "none"), number: true },
      ]}
    />
  );
}

// Names lists names that others chose.
function Names({ of }: { of: string[] }): JSX.Element {
  return of.length > 0 ? <Name of={of.join(", ")} /> : <>none</>;
}

function Tools(): JSX.Element {
  const [words, setWords] = useState("");
  const read = useLoaded((signal) => get<{ tools: AgentTool[] }>(["tools"], {}, signal), "");
  return (
    <Block title="Tools" wide>
      <Words label="Find tools" value={words} set={setWords} />
      <Listing
        read={read}
        rows={(v) => v.tools.filter((t) => hasWords(words, t.name, t.description, t.permission ?? "", ...t.agents))}
        label="Tools that agents have; calls are those in this process since it started"
        id={(t) => t.name}
        empty={words ? "No matching tools." : "No agent has any tools."}
        columns={[
          { title: "Tool", cell: (t) => <><code>{showHidden(t.name)}</code><br /><span class="aside">{origins[t.origin] ?? t.origin}</span></> },
          { title: "Needs", cell: (t) => t.permission ?? "nothing" },
          { title: "Agents", cell: (t) => <Names of={t.agents} /> },
          { title: "Calls", cell: (t) => grouped(t.calls), number: true },
          { title: "Failed", cell: (t) => grouped(t.failed), number: true },
          { title: "Description", cell: (t) => <Description of={t.description} /> },
        ]}
      />
    </Block>
  );
}

// Description shows the description of a tool or skill, which models read. People can open a long one.
function Description({ of }: { of: string }): JSX.Element {
  const text = showHidden(of);
  if (text.length <= most) return <span class="saying">{text}</span>;
  return <details><summary>{text.slice(0, most)}…</summary><span class="saying">{text}</span></details>;
}

function Skills(): JSX.Element {
  const read = useLoaded((signal) => get<{ skills: KnownSkill[] }>(["skills"], {}, signal), "");
  return (
    <Block title="Skills" wide>
      <Listing
        read={read}
        rows={(v) => v.skills}
        label="Your skills"
        id={(s) => s.name}
        empty="You have no skills. See docs/skills.md to add one."
        columns={[
          { title: "Skill", cell: (s) => <><strong><Name of={s.name} /></strong> {s.trusted && <Badge look="good">trusted</Badge>}</> },
          { title: "Agents", cell: (s) => <Names of={s.agents} /> },
          { title: "Tools", cell: (s) => <Names of={s.tools} /> },
          { title: "Folder", cell: (s) => <code class="name">{showHidden(s.folder)}</code> },
          { title: "Description", cell: (s) => <Description of={s.description} /> },
        ]}
      />
    </Block>
  );
}

function Targets(): JSX.Element {
  const read = useLoaded((signal) => get<{ targets: Target[] }>(["targets"], {}, signal), "");
  return (
    <Block title="Targets" wide>
      <Listing
        read={read}
        rows={(v) => v.targets}
        label="Targets of messages"
        id={(t) => t.name}
        empty="No targets are configured. A target is a name for one or more addresses."
        columns={[
          { title: "Target", cell: (t) => <strong><Name of={t.name} /></strong> },
          { title: "Addresses", cell: (t) => <Names of={t.to} /> },
        ]}
      />
    </Block>
  );
}
