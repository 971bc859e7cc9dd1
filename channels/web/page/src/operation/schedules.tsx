// Schedules: what the agent does later.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, patch, post, remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, Table } from "../parts.tsx";
import { Badge, Name, SessionLink, Sheet, State, useConfirmation, useOutcome } from "./pieces.tsx";
import type { ViewProps } from "../views.ts";
import { Heartbeat } from "./heartbeat.tsx";
import { useRefreshed } from "./refresh.ts";
import { Editor } from "./scheduleeditor.tsx";
import { Runs } from "./scheduleruns.tsx";
import type { Schedule } from "./schemas.ts";

// An Open is the form or list that is open beside the schedules.
type Open = { what: "new" } | { what: "change" | "runs"; of: Schedule } | null;

// Schedules shows all schedules to admins, who may change them. Others read their own.
export function Schedules({ me }: ViewProps): JSX.Element {
  const outcome = useOutcome();
  const [open, setOpen] = useState<Open>(null);
  const read = useRefreshed((signal) => get<{ schedules: Schedule[]; next?: string }>(["schedules"], { limit: 200 }, signal), "", 20, ["turn_start", "turn_complete"]);
  const done = (what: string) => {
    outcome.say(what);
    setOpen(null);
    read.again();
  };
  const actions = {
    pause: async (s: Schedule) => {
      await patch(["schedules", s.id], { paused: !s.paused });
      done(s.paused ? "Schedule resumed." : "Schedule paused. It won't catch up on the runs that it misses.");
    },
    run: async (s: Schedule) => {
      const { id } = await post<{ id: string }>(["schedules", s.id, "run"], {}, crypto.randomUUID());
      done(`Running now as ${id}.`);
    },
  };
  const ending = useConfirmation<Schedule>((s) => ({
    title: "Cancel this schedule?",
    confirm: "Cancel schedule",
    text: <>The agent won't get “{showHidden(s.text)}” anymore.</>,
    act: async () => {
      await remove(["schedules", s.id]);
      done("Schedule canceled.");
    },
  }));
  return (
    <Sheet title="Schedules" done={outcome} about={me.may.admin ? "What the agent does later, once or regularly." : "What the agent does later for you, once or regularly. To change it, ask the agent."}>
      {me.may.admin && open?.what !== "new" && <div class="filters"><Button look="main" onPress={() => setOpen({ what: "new" })}>New schedule</Button></div>}
      {open?.what === "new" && <Editor done={() => done("Schedule created.")} close={() => setOpen(null)} />}
      {me.may.admin && <Heartbeat />}
      <State {...read} />
      {read.value && (
        <ScheduleTable
          schedules={read.value.schedules}
          mayChange={me.may.admin}
          change={(s) => setOpen({ what: "change", of: s })}
          runs={(s) => setOpen({ what: "runs", of: s })}
          pause={actions.pause}
          run={actions.run}
          cancel={ending.ask}
          fail={outcome.fail}
        />
      )}
      {read.value?.next && <p class="none after">There are more schedules than these.</p>}
      {open?.what === "change" && <Editor key={open.of.id} of={open.of} done={() => done("Schedule saved.")} close={() => setOpen(null)} />}
      {open?.what === "runs" && <Runs key={open.of.id} of={open.of} why={me.may.admin} close={() => setOpen(null)} />}
      {ending.dialog}
    </Sheet>
  );
}

interface ScheduleTableProps {
  schedules: Schedule[];
  mayChange: boolean;
  change: (s: Schedule) => void;
  runs: (s: Schedule) => void;
  pause: (s: Schedule) => Promise<void>;
  run: (s: Schedule) => Promise<void>;
  cancel: (s: Schedule) => void;
  fail: (err: unknown) => void;
}

function ScheduleTable({ schedules, mayChange, change, runs, pause, run, cancel, fail }: ScheduleTableProps): JSX.Element {
  return (
    <Table
      label="Schedules, next due first"
      rows={schedules}
      id={(s) => s.id}
      empty={"Nothing is scheduled. Ask the agent to do something later, such as every morning" + (mayChange ? ", or create a schedule here." : ".")}
      columns={[
        { title: "Next", cell: (s) => (s.next ? <Ago at={s.next} /> : <Badge look="warn">{s.paused ? "paused" : "finished"}</Badge>) },
        { title: "When", cell: (s) => <><code>{showHidden(s.when)}</code><br /><span class="aside">{s.time_zone}</span></> },
        { title: "Message", cell: (s) => <span class="saying">{showHidden(s.text)}</span> },
        { title: "For", cell: (s) => <><Name of={s.person} /><br /><SessionLink of={s.session} /></> },
        {
          title: "Actions",
          cell: (s) => (
            <div class="rowactions">
              {mayChange && <Button onPress={() => run(s)} onError={fail} label={`Run now: ${s.id}`}>Run now</Button>}
              {mayChange && <Button onPress={() => pause(s)} onError={fail} label={`${s.paused ? "Resume" : "Pause"}: ${s.id}`}>{s.paused ? "Resume" : "Pause"}</Button>}
              {mayChange && <Button onPress={() => change(s)} label={`Edit: ${s.id}`}>Edit</Button>}
              <Button onPress={() => runs(s)} label={`Runs: ${s.id}`}>Runs</Button>
              {mayChange && <Button look="danger" onPress={() => cancel(s)} label={`Cancel: ${s.id}`}>Cancel…</Button>}
            </div>
          ),
        },
      ]}
    />
  );
}
