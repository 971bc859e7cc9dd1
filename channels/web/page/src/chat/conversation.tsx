// A conversation: its turns, messages that are still being sent, and the field for new ones.
import { Component, createRef, Fragment, type JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, Dialog, Empty, ErrorNote, Loading, Menu } from "../parts.tsx";
import { linkTo } from "../route.ts";
import type { Me } from "../schemas.ts";
import { Composer, OperatorComposer } from "./composer.tsx";
import { Files } from "./files.tsx";
import { grouped, type Spoken, type Turn, unsaid } from "./log.ts";
import { Nearby } from "./nearby.ts";
import { isOwn, mayAnswer, type Message, parseKey, readable } from "./sending.ts";
import { Talk } from "./talk.ts";
import { Aside, MessageWhy, Said, TurnView } from "./turn.tsx";

interface ConversationProps {
  me: Me;
  session: string;
  title: string;
  begun: Message[]; // the first messages of a new session
  onActivity: () => void; // something started or ended
}

export function Conversation({ me, session, title, begun, onActivity }: ConversationProps): JSX.Element {
  const [, draw] = useState(0);
  const [talk, setTalk] = useState<Talk | null>(null);
  const [files, setFiles] = useState(false); // whether they are shown
  useEffect(() => {
    const t = new Talk(session, () => draw((n) => n + 1), me.may.approve || me.may.agent || me.may.read || me.may.own, me.may.read || me.may.own, begun);
    setTalk(t);
    return () => t.close();
  }, [session]);
  const running = talk?.log.running();
  useEffect(onActivity, [talk?.log.moves]);
  const own = isOwn(session, me);
  const answers = !own && mayAnswer(session, me);
  return (
    <section class="conversation" aria-label="Conversation">
      <Head session={session} title={title} own={own} talk={talk} running={running !== undefined} files={files} setFiles={setFiles} />
      {files && <Files session={session} close={() => setFiles(false)} />}
      <Scroll mark={talk?.messages.length ?? 0}>
        <ErrorNote error={talk?.away || talk?.problem} />
        {talk && !talk.log.ready && !talk.away && <Loading />}
        {talk?.log.ready && talk.log.turns.length === 0 && talk.log.spoken.length === 0 && talk.messages.length === 0 && <Empty>No messages yet.</Empty>}
        {talk?.log.ready && <Earlier talk={talk} me={me} />}
        {talk && <Turns talk={talk} me={me} />}
      </Scroll>
      {talk && own && <Composer key={session} session={session} running={running !== undefined} onSay={(text, files) => talk.say(text, files)} onStop={() => talk.say("/stop", [])} />}
      {talk && answers && <OperatorComposer key={session} session={session} channel={parseKey(session).channel} onSay={(text) => talk.sayAsOperator(text)} />}
      {!own && !answers && <p class="reading">This conversation{parseKey(session).channel && ` on ${parseKey(session).channel}`} is read-only. Start a new chat to talk to the agent.</p>}
      <p class="away" role="status">{running ? "The agent is working" : "The agent is done"}</p>
    </section>
  );
}

function Turns({ talk, me }: { talk: Talk; me: Me }): JSX.Element {
  const { turns } = talk.log;
  const asks = grouped(talk.log.asks.values(), (a) => a.turn);
  const all = unsaid(talk.log);
  const said = grouped(all, (s) => s.turn);
  const ids = new Set(turns.map((t) => t.id));
  const aside = talk.aside(all, ids);
  const after = grouped(aside, (a) => a.spoken.after);
  const besides = talk.log.besidesByTurn();
  return (
    <>
      <Aside said={aside.filter((a) => !ids.has(a.spoken.after))} me={me} />
      {talk.drawn.all().map((t) => (
        <Fragment key={t.id}>
          <TurnView
            session={talk.key}
            turn={t}
            version={t.version}
            sent={talk.sentOf(t)}
            said={said.get(t.id) ?? none}
            asks={asks.get(t.id) ?? none}
            beside={besides.get(t.id) ?? none}
            readJob={talk.readJob}
            me={me}
          />
          {after.has(t.id) && <Aside said={after.get(t.id) ?? none} me={me} />}
        </Fragment>
      ))}
      {talk.pending().map((m) => <Pending key={m.key} message={m} talk={talk} me={me} />)}
    </>
  );
}

const none: never[] = [];

// Earlier shows the turns before the snapshot, on request, and what was said among them.
function Earlier({ talk, me }: { talk: Talk; me: Me }): JSX.Element {
  const [failed, setFailed] = useState<unknown>(null);
  const [nearby] = useState(() => new Nearby());
  return (
    <>
      {talk.mayHaveEarlier() && <div class="earlier"><Button look="quiet" onPress={() => talk.readEarlier()} onError={setFailed}>Show earlier messages</Button></div>}
      <ErrorNote error={failed} />
      {talk.earlier.map((part) => <EarlierPart key={part[0]?.id} part={part} talk={talk} besides={talk.log.besides} nearby={nearby} me={me} />)}
    </>
  );
}

// innerHeight returns the height of an element without its padding, in pixels.
function innerHeight(element: Element): number {
  const { paddingTop, paddingBottom } = getComputedStyle(element);
  return element.getBoundingClientRect().height - parseFloat(paddingTop) - parseFloat(paddingBottom);
}

interface EarlierPartProps {
  part: (Turn | Spoken)[];
  talk: Talk;
  besides: number; // changes whenever tasks or jobs do
  nearby: Nearby;
  me: Me;
}

// EarlierPart draws again only when it has to: there may be many of them, and a growing answer doesn't change them. While
// nobody is near, it keeps only its height.
class EarlierPart extends Component<EarlierPartProps, { height: number }> {
  override state = { height: 0 };
  private readonly at = createRef<HTMLDivElement>();
  private heights: number[] = []; // of its turns when it was cleared

  override componentDidMount(): void {
    if (this.at.current) this.props.nearby.add(this.at.current, () => this.setState({ height: 0 }), (height) => this.clear(height));
  }

  private clear(height: number): void {
    this.heights = [...(this.at.current?.children ?? [])].map(innerHeight);
    this.setState({ height });
  }

  // componentDidUpdate gives turns that are back the heights that they had, until the browser lays them out: whoever scrolls
  // would jump if they were lower at first.
  override componentDidUpdate(_: EarlierPartProps, { height }: { height: number }): void {
    if (height === 0 || this.state.height > 0) return;
    for (const [i, turn] of [...(this.at.current?.children ?? [])].entries()) {
      if (turn instanceof HTMLElement) turn.style.containIntrinsicHeight = `auto ${this.heights[i] ?? 0}px`;
    }
  }

  override componentWillUnmount(): void {
    if (this.at.current) this.props.nearby.leave(this.at.current);
  }

  override shouldComponentUpdate(next: EarlierPartProps, { height }: { height: number }): boolean {
    return next.part !== this.props.part || next.besides !== this.props.besides || height !== this.state.height;
  }

  override render(): JSX.Element {
    const { part, talk, me } = this.props;
    const { height } = this.state;
    if (height > 0) return <div ref={this.at} class="earlier-part" style={{ height: `${height}px` }} />;
    const besides = talk.log.besidesByTurn();
    return (
      <div ref={this.at} class="earlier-part">
        {part.map((e) => "blocks" in e
          ? <TurnView key={e.id} session={talk.key} turn={e} version={e.version} sent={none} said={e.said ?? none} asks={e.asks ?? none} beside={besides.get(e.id) ?? none} readJob={talk.readJob} me={me} />
          : <Aside key={e.id} said={[{ spoken: e }]} me={me} />)}
      </div>
    );
  }
}

// Pending shows a message that the log doesn't have yet.
function Pending({ message: m, talk, me }: { message: Message; talk: Talk; me: Me }): JSX.Element {
  return (
    <div class={"pending " + m.state + (m.operator ? " operator" : "")}>
      <Said text={m.text} name={m.operator ? "Operator" : ""} files={m.files}>
        {m.state === "refused" ? (
          <div class="refused" role="alert">
            <span>Not sent: {m.problem}</span>
            <Button onPress={() => void talk.send(m)}>Send again</Button>
            <Button look="quiet" onPress={() => talk.drop(m)}>Discard</Button>
          </div>
        ) : (
          <>
            <div class="faint">{m.state !== "sent" ? "Sending…" : m.operator ? "On its way." : "Sent. Waiting for the agent."}</div>
            <MessageWhy of={m.id} me={me} />
          </>
        )}
      </Said>
    </div>
  );
}

interface HeadProps {
  session: string;
  title: string;
  own: boolean;
  talk: Talk | null;
  running: boolean;
  files: boolean;
  setFiles: (shown: boolean) => void;
}

function Head({ session, title, own, talk, running, files, setFiles }: HeadProps): JSX.Element {
  const [asked, setAsked] = useState("");
  const { agent, channel } = parseKey(session);
  return (
    <div class="head">
      <a class="back" href={linkTo("chat")} aria-label="All sessions">‹</a>
      <div class="head-title">
        <h1>{title || readable(session)}</h1>
        <div class="faint">{agent} · {channel}{talk && !talk.live && talk.log.ready && !talk.away && <span class="badge warn"> reconnecting…</span>}</div>
      </div>
      <Button look="quiet" onPress={() => setFiles(!files)} label={files ? "Hide files" : "Show files"}>Files</Button>
      {own && talk && (
        <Menu label="Commands">
          <Button look="quiet" onPress={() => setAsked("/new")}>Start over…</Button>
          <Button look="quiet" disabled={running} onPress={() => setAsked("/undo")}>Undo the last changes…</Button>
          <Button look="quiet" disabled={running} onPress={() => talk.say("/compact", [])}>Summarize the conversation</Button>
        </Menu>
      )}
      {asked === "/new" && (
        <Dialog title="Start over?" confirm="Start over" onConfirm={() => talk?.say("/new", [])} onClose={() => setAsked("")}>
          The agent forgets everything said in this session so far. You can still read it.
        </Dialog>
      )}
      {asked === "/undo" && (
        <Dialog title="Undo the last changes?" confirm="Undo" danger onConfirm={() => talk?.say("/undo", [])} onClose={() => setAsked("")}>
          This restores the session's files to how they were before the last turn that changed any.
        </Dialog>
      )}
    </div>
  );
}

// Scroll follows its growing content, unless someone scrolled up or opened something that reaches out of sight. When mark
// changes, it jumps to the end. Content also grows without a change: a turn has its real height only once it comes into
// sight.
function Scroll({ children, mark }: { children: JSX.Element | (JSX.Element | null | false | undefined)[]; mark: number }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const top = useRef(0); // where it was scrolled to
  const clicked = useRef(false); // whether someone clicked in it since it was drawn: if it grows, they opened something
  const [up, setUp] = useState(false);
  const end = () => {
    const b = box.current;
    if (!b) return;
    b.scrollTop = b.scrollHeight;
    top.current = b.scrollTop;
  };
  const follow = () => {
    follows.current = true;
    end();
  };
  useEffect(follow, [mark]);
  const moved = (grew: boolean) => {
    const b = box.current;
    if (!b) return;
    const far = b.scrollHeight - b.scrollTop - b.clientHeight >= 60;
    // If the end is far away although nobody scrolled up or clicked, the content has grown: keep following it.
    if (!far) follows.current = true;
    else if (b.scrollTop < top.current || clicked.current) follows.current = false;
    top.current = b.scrollTop;
    setUp(!follows.current);
    if (follows.current && (far || grew)) end();
  };
  useEffect(() => {
    if (!column.current) return;
    const grown = new ResizeObserver(() => moved(true));
    grown.observe(column.current);
    return () => grown.disconnect();
  }, []);
  useLayoutEffect(() => {
    clicked.current = false;
    if (follows.current) end();
  });
  return (
    <div class="scroll-frame">
      <div ref={box} class="scroll" onScroll={() => moved(false)} onClick={() => { clicked.current = true; }} tabIndex={0} role="log" aria-label="Messages" aria-live="off">
        <div ref={column} class="column">{children}</div>
      </div>
      {up && <button type="button" class="button newest" onClick={follow}>Latest ↓</button>}
    </div>
  );
}
