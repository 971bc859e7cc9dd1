// Dead letters: messages that couldn't be delivered or answered, to view, replay or forget.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes, grouped } from "../amounts.ts";
import { get, post, remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, Table, useLoaded, WhyLink } from "../parts.tsx";
import type { ViewProps } from "../views.ts";
import { Json, Name, Opened, Pages, Sheet, State, useConfirmation, useOutcome } from "./pieces.tsx";
import { useRefreshed } from "./refresh.ts";
import type { DeadLetter, ServerStatus } from "./schemas.ts";

interface Letters {
  letters: DeadLetter[];
  more: boolean;
  next?: string;
}

// most is the number of letters on a page.
const most = 100;

export function DeadLetters({ me }: ViewProps): JSX.Element {
  const outcome = useOutcome();
  const [topic, setTopic] = useState("");
  const [after, setAfter] = useState("");
  const [shown, setShown] = useState<DeadLetter | null>(null);
  const read = useRefreshed((signal) => get<Letters>(["dead-letters"], { topic, after, order: "desc", limit: most }, signal), topic + " " + after, 30, ["dead_letter"]);
  const topics = useTopics(me.may.read);
  const choose = (t: string) => {
    setTopic(t);
    setAfter("");
  };
  const done = (what: string) => {
    outcome.say(what);
    setShown(null);
    read.again();
  };
  const replay = async (l: DeadLetter) => {
    const { id } = await post<{ id: string }>(["dead-letters", l.topic, l.id, "replay"]);
    done(`Replayed as ${id}.`);
  };
  const dropping = useConfirmation<DeadLetter>((l) => ({
    title: "Forget this message?",
    confirm: "Forget it",
    text: <>This deletes the message <Name of={l.id} /> for <Name of={l.key} />. You can't undo it.</>,
    act: async () => {
      await remove(["dead-letters", l.topic, l.id]);
      done(`Forgot the dead letter ${l.id}.`);
    },
  }));
  return (
    <Sheet title="Dead letters" done={outcome} about="Messages that couldn't be delivered or answered after several tries. Once you've fixed the cause, you can replay them.">
      <Topics topics={topics} chosen={topic} choose={choose} />
      <State {...read} />
      {read.value && <LetterTable letters={read.value.letters} look={setShown} replay={replay} drop={dropping.ask} fail={outcome.fail} />}
      {read.value && <More page={read.value} topic={topic} after={after} go={setAfter} />}
      {shown && <Letter key={shown.topic + " " + shown.id} of={shown} close={() => setShown(null)} />}
      {dropping.dialog}
    </Sheet>
  );
}

// useTopics returns the topics that have dead letters; none if this person may not read the status.
function useTopics(may: boolean): { topic: string; dead: number }[] {
  const read = useLoaded(async (signal) => (may ? (await get<ServerStatus>(["status"], { brief: true }, signal)).topics : []), "");
  return (read.value ?? []).filter((t) => t.dead > 0);
}

function Topics({ topics, chosen, choose }: { topics: { topic: string; dead: number }[]; chosen: string; choose: (topic: string) => void }): JSX.Element | null {
  if (topics.length < 2 && !chosen) return null;
  return (
    <div class="filters">
      <label>
        Topic
        <select value={chosen} onChange={(e) => choose(e.currentTarget.value)}>
          <option value="">All</option>
          {topics.map((t) => <option key={t.topic} value={t.topic}>{t.topic} ({grouped(t.dead)})</option>)}
        </select>
      </label>
    </div>
  );
}

interface LetterTableProps {
  letters: DeadLetter[];
  look: (l: DeadLetter) => void;
  replay: (l: DeadLetter) => Promise<void>;
  drop: (l: DeadLetter) => void;
  fail: (err: unknown) => void;
}

function LetterTable({ letters, look, replay, drop, fail }: LetterTableProps): JSX.Element {
  return (
    <Table
      label="Dead letters, newest first within each topic"
      rows={letters}
      id={(l) => l.topic + " " + l.id}
      empty="No dead letters. Messages that can't be delivered or answered after several tries show up here."
      columns={[
        { title: "Gave up", cell: (l) => <Ago at={l.buried_at} /> },
        { title: "For", cell: (l) => <><Name of={l.key} /><br /><span class="aside"><Name of={l.topic} /></span></> },
        { title: "Reason", cell: (l) => showHidden(l.reason) },
        { title: "Attempts", cell: (l) => grouped(l.attempts), number: true },
        { title: "Size", cell: (l) => bytes(l.bytes), number: true },
        {
          title: "Message",
          cell: (l) => (
            <div class="rowactions">
              <Button onPress={() => look(l)} label={`View ${l.id}`}>View</Button>
              <Button onPress={() => replay(l)} onError={fail} label={`Replay ${l.id}`}>Replay</Button>
              <Button look="danger" onPress={() => drop(l)} label={`Forget ${l.id}`}>Forget…</Button>
            </div>
          ),
        },
      ]}
    />
  );
}

// More leads to the next page. The server only has pages for a single topic.
function More({ page, topic, after, go }: { page: Letters; topic: string; after: string; go: (after: string) => void }): JSX.Element | null {
  if (page.more && !topic) return <p class="none after">There are more. Choose a topic to see them all.</p>;
  return <Pages after={after} next={page.next} go={go} />;
}

// Letter shows the message of a dead letter.
function Letter({ of, close }: { of: DeadLetter; close: () => void }): JSX.Element {
  const read = useLoaded((signal) => get<DeadLetter>(["dead-letters", of.topic, of.id], {}, signal), of.topic + " " + of.id);
  return (
    <Opened title="Message" close={close}>
      <p class="aside">
        <Name of={of.id} /> <WhyLink of={of.id} />
      </p>
      <State {...read} />
      {read.value && <Json of={read.value.message ?? "This message isn't JSON, so the page can't show it."} label="The message" />}
    </Opened>
  );
}
