// A form that creates or changes a schedule.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, patch, post } from "../api.ts";
import { Button, ErrorNote, useLoaded, useOpened } from "../parts.tsx";
import { Block } from "./pieces.tsx";
import type { KnownChat, Schedule } from "./schemas.ts";

export function Editor({ of, done, close }: { of?: Schedule; done: () => void; close: () => void }): JSX.Element {
  const [session, setSession] = useState("");
  const [person, setPerson] = useState("");
  const [when, setWhen] = useState(of?.when ?? "");
  const [zone, setZone] = useState(of?.time_zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [text, setText] = useState(of?.text ?? "");
  const [key] = useState(() => crypto.randomUUID()); // pressing Save twice creates one schedule
  const [error, setError] = useState<unknown>(null);
  const box = useOpened();
  const save = async () => {
    setError(null);
    const plan = { when: when.trim(), text: text.trim(), time_zone: zone.trim() };
    if (of) await patch(["schedules", of.id], changesOf(of, plan));
    else await post(["schedules"], { ...plan, session: session.trim(), ...(person.trim() ? { person: person.trim() } : {}) }, key);
    done();
  };
  return (
    <Block title={of ? "Edit schedule" : "New schedule"} wide box={box}>
      <form class="editor" onSubmit={(e) => { e.preventDefault(); save().catch(setError); }}>
        {!of && <Place session={session} person={person} setSession={setSession} setPerson={setPerson} />}
        <label>
          When
          <input value={when} required placeholder="0 9 * * *" spellcheck={false} onInput={(e) => setWhen(e.currentTarget.value)} />
          <span class="aside">For example: in 2h, every 1d, 2030-01-31 09:00, or a cron expression</span>
        </label>
        <label>Time zone<input value={zone} spellcheck={false} onInput={(e) => setZone(e.currentTarget.value)} /></label>
        <label class="long">Message to the agent<textarea rows={3} required maxLength={4000} value={text} onInput={(e) => setText(e.currentTarget.value)} /></label>
        <ErrorNote error={error} />
        <div class="after">
          <Button look="main" disabled={!when.trim() || !text.trim() || (!of && !session.trim())} onPress={save} onError={setError}>Save</Button>
          <Button onPress={close}>Close</Button>
        </div>
      </form>
    </Block>
  );
}

// changesOf returns only what differs: setting the same time again would restart its interval.
function changesOf(of: Schedule, plan: { when: string; text: string; time_zone: string }): Partial<typeof plan> {
  const changes: Partial<typeof plan> = {};
  if (plan.when !== of.when) changes.when = plan.when;
  if (plan.text !== of.text) changes.text = plan.text;
  if (plan.time_zone !== of.time_zone) changes.time_zone = plan.time_zone;
  return changes;
}

interface PlaceProps {
  session: string;
  person: string;
  setSession: (key: string) => void;
  setPerson: (id: string) => void;
}

// Place asks for the session, and on whose behalf the agent acts.
function Place({ session, person, setSession, setPerson }: PlaceProps): JSX.Element {
  const chats = useLoaded((signal) => get<{ chats: KnownChat[] }>(["chats"], {}, signal), "");
  return (
    <>
      <label>
        Session
        <input value={session} required list="sessions-known" placeholder="main:telegram:42" spellcheck={false} onInput={(e) => setSession(e.currentTarget.value)} />
        <datalist id="sessions-known">{chats.value?.chats.map((c) => <option key={c.session} value={c.session}>{c.name ?? c.address}</option>)}</datalist>
      </label>
      <label>
        On behalf of
        <input value={person} placeholder="telegram:42" spellcheck={false} onInput={(e) => setPerson(e.currentTarget.value)} />
      </label>
    </>
  );
}
