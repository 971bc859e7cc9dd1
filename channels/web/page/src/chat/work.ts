// What goes on beside the turns of a session: the tasks of its sub-agents, and its jobs. The server's events say that
// something has changed, and only then the page reads it. What it couldn't read, it reads again.
import { Failure, get } from "../api.ts";
import { followNews, type News } from "../feed.ts";
import type { Job, Task } from "../schemas.ts";

// most is how many tasks and jobs are listed.
const most = 50;

// How many milliseconds pass before something is read, because several events often come together.
const gather = 250;

// After how many milliseconds the page reads again what it couldn't read.
const retryAfter = 5000;

// Work reads one thing at a time, so that no reading overtakes another.
export class Work {
  private readonly wanted = new Set<string>(); // "all", or tasks/ID or jobs/ID
  private begun = false; // whether the session may be read
  private reading = false; // whether it reads, or will soon

  // take gets what was read, as events for the log.
  constructor(
    private readonly session: string,
    private readonly mayJobs: boolean,
    private readonly take: (type: string, data: unknown) => void,
    private readonly left: AbortSignal,
  ) {
    left.addEventListener("abort", followNews((n) => this.hear(n)));
  }

  // readAll reads the lists.
  readAll(): void {
    this.begun = true;
    this.want("all");
  }

  // readJob reads a job with its output.
  readJob(id: string): void {
    this.want("jobs/" + id);
  }

  private hear({ kind, session, id }: News): void {
    if (!this.begun) return;
    if (kind === "reset") this.readAll();
    else if (session !== this.session) return;
    else if (kind === "task") this.want(id ? "tasks/" + id : "all");
    else if ((kind === "job" || kind === "job_output") && id) this.want("jobs/" + id);
  }

  private want(what: string): void {
    if (what.startsWith("jobs/") && !this.mayJobs) return;
    this.wanted.add(what);
    if (!this.reading) this.readIn(gather);
  }

  private readIn(ms: number): void {
    this.reading = true;
    setTimeout(() => void this.read(), ms);
  }

  private async read(): Promise<void> {
    let failed = false;
    for (const what of [...this.wanted]) {
      if (this.left.aborted) return;
      this.wanted.delete(what);
      try {
        await (what === "all" ? this.readLists() : this.readOne(what));
      } catch (err) {
        if (this.left.aborted) return;
        const status = err instanceof Failure ? err.status : 0;
        if (status === 404) this.take("gone", what.slice(what.indexOf("/") + 1));
        else if (status === 0 || status === 429 || status >= 500) {
          this.wanted.add(what);
          failed = true;
        } else this.begun = false; // this person may not read it anymore
      }
    }
    this.reading = false;
    if (this.wanted.size > 0) this.readIn(failed ? retryAfter : gather);
  }

  private async readLists(): Promise<void> {
    const { tasks } = await get<{ tasks: Task[] }>(["tasks"], { session: this.session, limit: most }, this.left);
    this.take("tasks", tasks);
    if (!this.mayJobs) return;
    const { jobs } = await get<{ jobs: Job[] }>(["jobs"], { session: this.session, limit: most }, this.left);
    this.take("jobs", jobs);
    for (const j of jobs) if (j.state === "running") this.wanted.add("jobs/" + j.id);
  }

  private async readOne(what: string): Promise<void> {
    const [kind = "", id = ""] = what.split("/");
    this.take(kind === "tasks" ? "task" : "job", await get<Task | Job>([kind, id], {}, this.left));
  }
}
