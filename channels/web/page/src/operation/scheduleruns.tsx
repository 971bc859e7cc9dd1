// The runs of a schedule.
import type { JSX } from "preact";
import { get } from "../api.ts";
import { Ago } from "../moments.tsx";
import { WhyLink } from "../parts.tsx";
import { Badge, Listing, Opened } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { Schedule, ScheduleRun } from "./schemas.ts";

const looks: Record<string, "good" | "bad" | "warn"> = { done: "good", failed: "bad", running: "warn" };

export function Runs({ of, why, close }: { of: Schedule; why: boolean; close: () => void }): JSX.Element {
  const read = useRefreshed((signal) => get<{ runs: ScheduleRun[] }>(["schedules", of.id], { limit: 20 }, signal), of.id, 20, ["turn_start", "turn_complete", "turn_error"]);
  return (
    <Opened title="Runs" close={close}>
      <Listing
        read={read}
        rows={(v) => v.runs}
        label={`Turns that the schedule ${of.id} started, newest first`}
        id={(r) => r.id}
        empty="No runs yet."
        columns={[
          { title: "Started", cell: (r) => <Ago at={r.begun} /> },
          { title: "Due", cell: (r) => (r.due ? <Ago at={r.due} /> : "started manually") },
          { title: "State", cell: (r) => <><Badge look={looks[r.state]}>{r.state}</Badge> {r.code}</> },
          { title: "Turn", cell: (r) => (why ? <WhyLink of={r.id} /> : <code>{r.turn}</code>) },
        ]}
      />
    </Opened>
  );
}
