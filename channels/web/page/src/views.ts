// The list of views. A new view needs a row here and a component.
import type { ComponentType } from "preact";
import { Chat } from "./chat/chat.tsx";
import { Agents } from "./operation/agents.tsx";
import { Approvals } from "./operation/approvals.tsx";
import { Audit } from "./operation/audit.tsx";
import { Browsers } from "./operation/browsers.tsx";
import { Configuration } from "./operation/config.tsx";
import { DeadLetters } from "./operation/deadletters.tsx";
import { Doctor } from "./operation/doctor.tsx";
import { Jobs } from "./operation/jobs.tsx";
import { McpServers } from "./operation/mcp.tsx";
import { Memory } from "./operation/memory.tsx";
import { Nodes } from "./operation/nodes.tsx";
import { OpenAsks } from "./operation/openasks.tsx";
import { Overview } from "./operation/overview.tsx";
import { People } from "./operation/people.tsx";
import { Schedules } from "./operation/schedules.tsx";
import { ServerLog } from "./operation/serverlog.tsx";
import { UsageView } from "./operation/usage.tsx";
import { Why } from "./operation/why.tsx";
import type { Me } from "./schemas.ts";

// ViewProps says who is looking, and has the parts of the address after the name of the view.
export interface ViewProps {
  me: Me;
  rest: string[];
}

export interface View {
  name: string; // in the address: #/NAME
  title: string; // in the navigation
  group: string; // the group that it belongs to in the navigation
  may: (me: Me) => boolean; // whether this person may see it
  show: ComponentType<ViewProps>;
  beside?: ComponentType<{ tell: (waiting: number) => void }>; // shown next to the title in the navigation; it tells its number
}

// views returns all views, group by group, in the order of the navigation. The page opens with the first one.
export function views(): View[] {
  return [
    { name: "chat", title: "Chat", group: "Conversations", may: (me) => me.may.agent || me.may.own || me.may.read, show: Chat },
    { name: "approvals", title: "Approvals", group: "Conversations", may: (me) => me.may.approve || me.may.agent, show: Approvals, beside: OpenAsks },
    { name: "people", title: "People", group: "Conversations", may: (me) => me.may.admin, show: People },
    { name: "overview", title: "Overview", group: "Now", may: (me) => me.may.read, show: Overview },
    { name: "dead-letters", title: "Dead letters", group: "Now", may: (me) => me.may.admin, show: DeadLetters },
    { name: "schedules", title: "Schedules", group: "Now", may: (me) => me.may.admin || me.may.own, show: Schedules },
    { name: "jobs", title: "Jobs", group: "Now", may: (me) => me.may.read, show: Jobs },
    { name: "agents", title: "Agents", group: "Setup", may: (me) => me.may.read, show: Agents },
    { name: "mcp", title: "MCP servers", group: "Setup", may: (me) => me.may.admin, show: McpServers },
    { name: "nodes", title: "Nodes", group: "Setup", may: (me) => me.may.admin, show: Nodes },
    { name: "configuration", title: "Configuration", group: "Setup", may: (me) => me.may.admin, show: Configuration },
    { name: "memory", title: "Memory", group: "Setup", may: (me) => me.may.admin, show: Memory },
    { name: "browsers", title: "Browsers", group: "Setup", may: () => true, show: Browsers },
    { name: "usage", title: "Usage", group: "Records", may: (me) => me.may.read, show: UsageView },
    { name: "audit", title: "Audit", group: "Records", may: (me) => me.may.admin, show: Audit },
    { name: "why", title: "Why", group: "Records", may: (me) => me.may.admin, show: Why },
    { name: "doctor", title: "Doctor", group: "Records", may: (me) => me.may.admin, show: Doctor },
    { name: "log", title: "Log", group: "Records", may: (me) => me.may.admin, show: ServerLog },
  ];
}
