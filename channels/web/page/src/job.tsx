// A job in words: how it goes or ended, and what stopping it does.
import type { JSX } from "preact";
import { showHidden } from "./hidden.ts";
import type { Job } from "./schemas.ts";

// End is how good it is that a job runs or ended as it did.
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

// Stopping says what stopping a job does. With a session, it says whose job it is.
export function Stopping({ of, session }: { of: Job; session?: string }): JSX.Element {
  return <>This ends <code class="name">{showHidden(of.command)}</code>{session && <> of <span class="name">{showHidden(session)}</span></>}, which may leave its work half done. Parley tells its conversation.</>;
}
