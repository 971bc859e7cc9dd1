// A tool of an MCP server that agents can't use until somebody accepts it: what it says about itself now, compared with
// what somebody accepted before.
import type { JSX } from "preact";
import { post } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Button } from "../parts.tsx";
import { difference } from "./difference.ts";
import { Badge, Name, type Outcome } from "./pieces.tsx";
import type { AsideTool, McpTool } from "./schemas.ts";

interface WaitingProps {
  server: string;
  tool: AsideTool; // as it was when it appeared
  changed: boolean; // whether it has changed since
  renew: () => void; // shows it as it is now
  outcome: Outcome;
  done: () => void;
}

// accept accepts a tool as it was shown. The server refuses that if the tool has changed since.
export function accept(server: string, tool: AsideTool): Promise<{ accepted: string[] }> {
  return post(["mcp", server, "accept"], { tool: tool.name, digest: tool.digest });
}

// Waiting shows one tool.
export function Waiting({ server, tool, changed, renew, outcome, done }: WaitingProps): JSX.Element {
  const name = showHidden(tool.name);
  const give = async () => {
    await accept(server, tool);
    outcome.say(`Accepted ${name}.`);
    done();
  };
  return (
    <section class="request" aria-label={`${tool.was ? "Changed" : "New"} tool ${name} of ${server}`}>
      <div class="between">
        <strong><code>{name}</code></strong>
        <Badge look="warn">{tool.was ? "changed" : "new"}</Badge>
      </div>
      <Difference title="Description" of={`${name} of ${server}`} before={tool.was?.description} now={tool.description} isNew={!tool.was} />
      <Difference title="Arguments" of={`${name} of ${server}`} before={tool.was && schemaOf(tool.was)} now={schemaOf(tool)} isNew={!tool.was} />
      {changed
        ? <p class="note warn">The tool changed again while you were looking. <Button onPress={renew} label={`Show ${name} again`}>Show it again</Button></p>
        : <Button look="main" onPress={give} onError={outcome.fail} label={`Accept ${name}`}>Accept</Button>}
    </section>
  );
}

// schemaOf returns the arguments of a tool as text.
export function schemaOf(t: McpTool): string {
  return JSON.stringify(t.schema, null, 2);
}

interface DifferenceProps {
  title: string;
  of: string; // whose text it is, for people who can't see the page
  before?: string;
  now: string;
  isNew: boolean; // there is nothing to compare it with
}

// Difference shows what changed in a text, with invisible characters as escapes.
export function Difference({ title, of, before, now, isNew }: DifferenceProps): JSX.Element {
  const look = { " ": "", "+": "plus", "-": "minus" };
  const lines = difference(before === undefined ? undefined : showHidden(before), showHidden(now));
  const changed = lines.some((l) => l.mark !== " ");
  return (
    <div class="preview">
      <h3>{title}{!isNew && !changed && " (unchanged)"}</h3>
      <pre tabIndex={0} role="region" aria-label={`${title}: ${of}`}>
        {lines.map((l, i) => <span key={i} class={"preview-line " + (isNew ? "" : look[l.mark])}>{(isNew ? "" : l.mark + " ") + l.text + "\n"}</span>)}
      </pre>
    </div>
  );
}

// Accepted lists the tools of a server or a node that agents have, each with what it says about itself.
export function Accepted({ server, tools }: { server: string; tools: McpTool[] }): JSX.Element {
  return (
    <ul class="items">
      {tools.map((t) => (
        <li key={t.name}>
          <details>
            <summary><code><Name of={t.name} /></code></summary>
            <Difference title="Description" of={`${showHidden(t.name)} of ${server}`} now={t.description} isNew />
            <Difference title="Arguments" of={`${showHidden(t.name)} of ${server}`} now={schemaOf(t)} isNew />
          </details>
        </li>
      ))}
    </ul>
  );
}
