// Jobs: commands that run in the background, and those that ended.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes } from "../amounts.ts";
import { get, remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { type End, endOf, Stopping } from "../job.tsx";
import { Ago, Since } from "../moments.tsx";
import { Button, Table } from "../parts.tsx";
import type { Job } from "../schemas.ts";
import type { ViewProps } from "../views.ts";
import { Badge, Name, Opened, SessionLink, Sheet, State, useConfirmation, useOutcome, Verbatim } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";

// most is how many jobs are listed.
const most = 100;

const looks: Partial<Record<End, "good" | "bad">> = { ok: "good", failed: "bad", unknown: "bad" };

export function Jobs({ me, rest }: ViewProps): JSX.Element {
  const outcome = useOutcome();
  const [session, setSession] = useState(rest[0] ?? "");
  const [shown, setShown] = useState<Job | null>(null);
  const read = useRefreshed((signal) => get<{ jobs: Job[]; more: boolean }>(["jobs"], { session, limit: most }, signal), session, 15, ["job"]);
  const stopping = useConfirmation<Job>((j) => ({
    title: "Stop this job?",
    confirm: "Stop job",
    text: <Stopping of={j} session={j.session} />,
    act: async () => {
      await remove(["jobs", j.id]);
      outcome.say(`Asked ${j.id} to stop.`);
      read.again();
    },
  }));
  return (
    <Sheet title="Jobs" done={outcome} about="Commands that agents run in the background, and those that ended in the last 30 days.">
      <OfSession session={session} choose={setSession} />
      <State {...read} />
      {read.value && <JobTable jobs={read.value.jobs} look={setShown} stop={me.may.admin ? stopping.ask : undefined} />}
      {read.value?.more && <p class="none after">There are more. Choose a session to see its jobs.</p>}
      {shown && <Output key={shown.id} of={shown} close={() => setShown(null)} />}
      {stopping.dialog}
    </Sheet>
  );
}

// OfSession narrows the list to one session.
function OfSession({ session, choose }: { session: string; choose: (session: string) => void }): JSX.Element {
  const [given, setGiven] = useState(session);
  return (
    <form class="filters" onSubmit={(e) => { e.preventDefault(); choose(given.trim()); }}>
      <label class="long">Session<input value={given} placeholder="main:telegram:42" spellcheck={false} onInput={(e) => setGiven(e.currentTarget.value)} /></label>
      <button class="button" type="submit">Apply</button>
    </form>
  );
}

function JobTable({ jobs, look, stop }: { jobs: Job[]; look: (j: Job) => void; stop?: (j: Job) => void }): JSX.Element {
  return (
    <Table
      label="Jobs: running ones first, then newest first"
      rows={jobs}
      id={(j) => j.id}
      empty="No jobs. A command that an agent runs in the background shows up here."
      columns={[
        { title: "State", cell: (j) => <Standing of={j} /> },
        { title: "Command", cell: (j) => <code class="name">{showHidden(j.command)}</code> },
        { title: "For", cell: (j) => <><Name of={j.person} /><br /><SessionLink of={j.session} /></> },
        { title: "Started", cell: (j) => <Ago at={j.started} /> },
        { title: "Printed", cell: (j) => bytes(j.printed), number: true },
        {
          title: "Actions",
          cell: (j) => (
            <div class="rowactions">
              <Button onPress={() => look(j)} label={`Output of ${j.id}`}>Output</Button>
              {stop && j.state === "running" && !j.stopping && <Button look="danger" onPress={() => stop(j)} label={`Stop ${j.id}`}>Stop…</Button>}
            </div>
          ),
        },
      ]}
    />
  );
}

// Standing says whether a job runs, or how it ended.
function Standing({ of: j }: { of: Job }): JSX.Element {
  const [end, word] = endOf(j);
  return (
    <>
      <Badge look={looks[end]}>{word}</Badge>
      <br />
      {j.state === "running" && <span class="aside">for <Since at={j.started} />; times out <Ago at={j.deadline} /></span>}
      {j.ended && <span class="aside"><Ago at={j.ended} /></span>}
      {j.detail && <span class="aside"><br />{showHidden(j.detail)}</span>}
    </>
  );
}

// Output shows the end of what a job printed.
function Output({ of, close }: { of: Job; close: () => void }): JSX.Element {
  const read = useRefreshed((signal) => get<Job>(["jobs", of.id], {}, signal), of.id, 5, ["job", "job_output"]);
  const text = read.value?.output ?? "";
  return (
    <Opened title="Output" close={close}>
      <p class="aside"><code class="name">{showHidden(of.command)}</code></p>
      <State {...read} />
      {read.value && !text && <p class="none">It printed nothing{read.value.state === "running" && " yet"}.</p>}
      {read.value && text && <Verbatim of={text} label={`Output of ${of.id}`} above={`Printed ${bytes(read.value.printed)}; this is the end`} />}
    </Opened>
  );
}
