// A job in words: how it is going or how it ended, and what stopping it does.
import type { JSX } from "preact";
import { showHidden } from "./hidden.ts";
import type { Job } from "./schemas.ts";

// An End says whether a job is running, or how well it ended. It decides the job's color.
export type End = "running" | "ok" | "failed" | "unknown" | "over";

// endOf says whether a job runs, or how it ended.
export function endOf(j: Job): [End, string] {
  switch (j.state) {
    case "running":
      return ["running", j.stopping ? "stopping" : "running"];
    case "exited":
      return [j.exit_code ? "failed" : "ok", `exit code ${j.exit_code ?? 0}`];
    case "stopped":
      return ["over", "stopped"];
    case "killed":
      return ["failed", "stopped at a limit"];
    case "failed":
      return ["failed", "couldn't be run"];
    default:
      return ["unknown", "outcome unknown"];
  }
}

// Stopping says what stopping a job does. If a session is given, it names that session as the job's.
export function Stopping({ of, session }: { of: Job; session?: string }): JSX.Element {
  return <>This ends <code class="name">{showHidden(of.command)}</code>{session && <> of <span class="name">{showHidden(session)}</span></>}, which may leave its work half done. Parley tells its conversation.</>;
}
