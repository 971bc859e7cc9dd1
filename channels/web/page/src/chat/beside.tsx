// What a call has started beside its turn: a sub-agent that works on a task, or a command in the background.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes, count, grouped } from "../amounts.ts";
import { remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { type End, endOf, Stopping } from "../job.tsx";
import { Since } from "../moments.tsx";
import { Button, Dialog } from "../parts.tsx";
import { linkTo } from "../route.ts";
import type { Job, Me, Task } from "../schemas.ts";
import type { Beside } from "./log.ts";
import { Markdown } from "../markdown/markdown.tsx";

interface BesideProps {
  of: Beside;
  me: Me;
  readJob: (id: string) => void; // reads what a job has printed
}

export function BesideCard({ of, me, readJob }: BesideProps): JSX.Element {
  return "command" in of ? <JobCard job={of} me={me} read={() => readJob(of.id)} /> : <TaskCard task={of} />;
}

// An Outlook says how a task or job is going. The color of its card shows that.
type Outlook = End | "waiting";

const ofTasks: Record<Task["state"], [Outlook, string]> = {
  prepared: ["waiting", "waiting to start"],
  running: ["running", "working"],
  waiting: ["waiting", "waiting for an answer"],
  done: ["ok", "done"],
  failed: ["failed", "failed"],
  cancelled: ["over", "stopped"],
  lost: ["unknown", "its session was erased"],
};

function TaskCard({ task: t }: { task: Task }): JSX.Element {
  const [look, word] = ofTasks[t.state];
  const running = t.state === "running" && t.tools ? "running " + t.tools.map(showHidden).join(", ") : word;
  const used = t.usage.input + t.usage.output;
  return (
    <div class={"beside task " + look} role="group" aria-label={"Sub-agent " + showHidden(t.agent)}>
      <div class="beside-line">
        <span class="mark" aria-hidden="true" />
        <span>Sub-agent <strong>{showHidden(t.agent)}</strong></span>
        <span class="beside-state">{t.stopping ? "stopping" : running}</span>
        {!t.ended && <span class="faint">for <Since at={t.started} /></span>}
        {t.usage.calls > 0 && <span class="faint" title={count(t.usage.calls, "model call")}>{grouped(used)} tokens</span>}
        {t.state !== "lost" && <a href={linkTo("chat", t.session)} aria-label={"Open its session: sub-agent " + showHidden(t.agent)}>Open its session</a>}
      </div>
      {t.title && <div class="faint">{showHidden(t.title)}</div>}
      {t.report && (
        <details class="beside-more">
          <summary>{t.state === "done" ? "Its answer" : "What it reported"}</summary>
          <Markdown text={t.report} />
          {t.cut && <p class="faint">This is only the beginning. The sub-agent's session has the rest.</p>}
        </details>
      )}
    </div>
  );
}

// How many lines of a running job's output are shown.
const newestLines = 12;

function JobCard({ job: j, me, read }: { job: Job; me: Me; read: () => void }): JSX.Element {
  const [asked, setAsked] = useState(false);
  const [look, word] = endOf(j);
  const command = showHidden(j.command);
  const stop = async () => {
    await remove(["jobs", j.id]);
    read();
  };
  return (
    <div class={"beside job " + look} role="group" aria-label={"Background job " + command}>
      <div class="beside-line">
        <span class="mark" aria-hidden="true" />
        <code class="beside-command">{command}</code>
        <span class="beside-state">{word}</span>
        {j.state === "running" && <span class="faint">for <Since at={j.started} /></span>}
        {me.may.admin && j.state === "running" && !j.stopping && <Button look="danger" onPress={() => setAsked(true)} label={"Stop " + command}>Stop…</Button>}
      </div>
      {j.detail && <div class="faint">{showHidden(j.detail)}</div>}
      {j.state === "running" ? <NewestOutput job={j} /> : <EndOfOutput job={j} read={read} />}
      {asked && (
        <Dialog title="Stop this job?" confirm="Stop job" danger onConfirm={stop} onClose={() => setAsked(false)}>
          <Stopping of={j} />
        </Dialog>
      )}
    </div>
  );
}

function NewestOutput({ job: j }: { job: Job }): JSX.Element | null {
  if (!j.output) return null;
  const lines = j.output.trimEnd().split("\n");
  return <Printed text={lines.slice(-newestLines).join("\n")} label={"Newest output of " + showHidden(j.command)} />;
}

// EndOfOutput shows what an ended job has printed. The page reads the output when somebody opens it.
function EndOfOutput({ job: j, read }: { job: Job; read: () => void }): JSX.Element | null {
  if (j.printed === 0) return null;
  const open = (e: Event) => {
    if (e.currentTarget instanceof HTMLDetailsElement && e.currentTarget.open && j.output === undefined) read();
  };
  return (
    <details class="beside-more" onToggle={open}>
      <summary>Output, {bytes(j.printed)}</summary>
      {j.output === undefined ? <p class="faint">Loading…</p> : <Printed text={j.output} label={"Output of " + showHidden(j.command)} />}
    </details>
  );
}

function Printed({ text, label }: { text: string; label: string }): JSX.Element {
  return <pre class="beside-output" tabIndex={0} role="region" aria-label={label}>{showHidden(text)}</pre>;
}
