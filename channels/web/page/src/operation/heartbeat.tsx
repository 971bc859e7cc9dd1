// The heartbeat: how often an agent goes through a checklist by itself, and when it last did.
import type { JSX } from "preact";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { ErrorNote, useLoaded } from "../parts.tsx";
import type { Session } from "../schemas.ts";
import { Name, SessionLink } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { Configuration } from "./schemas.ts";

// Heartbeat shows nothing if no heartbeat is configured.
export function Heartbeat(): JSX.Element | null {
  const { value, error, again } = useLoaded((signal) => get<Configuration>(["config"], {}, signal), "");
  if (error) return <ErrorNote error={error} again={again} />;
  const setting = (name: string) => wordsOf(value?.settings.find((s) => s.key === "heartbeat." + name)?.value);
  const [every, agent] = [setting("every"), setting("agent")];
  if (!every) return null;
  return (
    <p class="aside heartbeat">
      Heartbeat: every {showHidden(every)}, <Name of={agent} /> goes through <Name of={setting("file")} /> and tells <Name of={setting("to")} />. <LastBeat agent={agent} />
    </p>
  );
}

// LastBeat says when the agent was last active in the conversation of its beats.
function LastBeat({ agent }: { agent: string }): JSX.Element {
  const read = useRefreshed((signal) => get<{ sessions: Session[] }>(["sessions"], { agent, channel: "heartbeat", order: "desc", limit: 5 }, signal), agent, 60, ["turn_complete", "turn_error"]);
  const last = read.value?.sessions[0];
  if (read.error) return <>Couldn't load the last beat.</>;
  if (!read.value) return <>Loading the last beat…</>;
  return last ? <>Last beat: <Ago at={last.updated} />, in <SessionLink of={last.key} /></> : <>No beat yet.</>;
}

// wordsOf writes the value of a setting.
function wordsOf(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : "";
}
