// What people write: drafts, and messages that are being sent.
//
// A message gets a key when it is first sent, so sending it again doesn't deliver it twice. The page shows it at once,
// until the log has it.
import { Failure, get, post } from "../api.ts";
import type { Me, Told } from "../schemas.ts";

export interface Upload {
  name: string;
  size: number;
  data: string; // base64
  preview?: string; // the URL of a picture, within this page
}

export interface Message {
  key: string; // by which the server recognizes it
  session: string; // the session's key
  text: string;
  files: Upload[];
  state: "sending" | "sent" | "done" | "refused"; // done: the agent has carried out the command
  id: string; // from the server, once it has the message
  problem: string;
  operator?: boolean; // it is for the people of the session, in place of the agent
}

// What the server accepts with one message.
export const mostFiles = 10;
export const mostBytes = 10 << 20;

// keyOfNew returns the key of a new session. Its name sorts by time.
export function keyOfNew(me: Me): string {
  const now = new Date();
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  const name = `${day}-${two(now.getHours())}${two(now.getMinutes())}-${crypto.randomUUID().slice(0, 4)}`;
  return ["main", "web", me.name, name].map(encodeURIComponent).join(":");
}

export function newMessage(session: string, text: string, files: Upload[]): Message {
  return { key: keyOfMessage(), session, text, files, state: "sending", id: "", problem: "" };
}

const keyOfMessage = (): string => "page-" + crypto.randomUUID();

const tries = 5;

// deliver sends a message, and tries again a few times if the server isn't reached, fails, or asks to wait. It records
// the result in the message.
export async function deliver(m: Message, changed: () => void): Promise<void> {
  m.state = "sending";
  m.problem = "";
  changed();
  const files = m.files.map((f) => ({ name: f.name, data: f.data }));
  const body = { to: "agent", session: m.session, text: m.text, ...(files.length > 0 && { files }) };
  for (let n = 1; ; n++) {
    try {
      const told = await post<Told>(["messages"], m.operator ? { session: m.session, as: "operator", text: m.text } : agentOf(body), m.key);
      m.id = told.id;
      m.state = "sent";
      changed();
      return;
    } catch (err) {
      const f = err instanceof Failure ? err : new Failure(0, "broken", String(err));
      const again = f.status === 0 || f.status === 429 || f.status >= 500;
      if (!again || n === tries) {
        m.state = "refused";
        m.problem = f.message;
        changed();
        return;
      }
      await new Promise((r) => setTimeout(r, Math.min(Math.max(f.retryAfter * 1000, 400 * 2 ** n), 8000)));
    }
  }
}

// How long the page waits before it first asks what became of an operator's message or a command that the session doesn't
// show yet, in milliseconds; and how many times it asks about an operator's message.
const firstLook = 1500;
const looks = 12;

// followDelivery asks what became of an operator's message, until the message is shown or it has asked often enough. If
// it can't be delivered, it gets the reason as its problem, and a new key, because sending it again makes another
// message.
export async function followDelivery(m: Message, changed: () => void, shown: () => boolean, left: AbortSignal): Promise<void> {
  for (let n = 0; n < looks && m.state === "sent"; n++) {
    await new Promise((r) => setTimeout(r, Math.min(firstLook * 1.5 ** n, 30_000)));
    if (left.aborted || shown()) return;
    try {
      const { destinations } = await get<{ destinations: { state: string; error?: { message: string } }[] }>(["messages", m.id], {}, left);
      const failed = destinations.find((d) => d.state === "failed");
      if (!failed) continue;
      Object.assign(m, { state: "refused", problem: failed.error?.message ?? "It couldn't be delivered.", id: "", key: keyOfMessage() });
      changed();
    } catch {
      // The next round asks again.
    }
  }
}

// isCommand reports whether a message may be a command.
export const isCommand = (m: Message): boolean => !m.operator && /^\s*\/[a-z]/i.test(m.text);

// followCommand asks whether a command was carried out, until its reply is shown: a command such as /approve is carried
// out without a reply, and no event of the session says so.
export async function followCommand(m: Message, changed: () => void, shown: () => boolean, left: AbortSignal): Promise<void> {
  for (let n = 0; m.state === "sent"; n++) {
    await new Promise((r) => setTimeout(r, Math.min(firstLook * 1.5 ** n, 30_000)));
    if (left.aborted || shown()) return;
    try {
      const { destinations } = await get<{ destinations: { state: string }[] }>(["messages", m.id], {}, left);
      if (!destinations.some((d) => d.state === "sent")) continue;
      m.state = "done";
      changed();
    } catch (err) {
      if (err instanceof Failure && err.status === 404) return;
      // Otherwise, the next round asks again.
    }
  }
}

// agentOf addresses a message to the agent of its session.
function agentOf<T extends { to: string; session: string }>(body: T): T {
  const [agent = "", channel] = body.session.split(":");
  return channel && agent !== "main" ? { ...body, to: "agent:" + decodeURIComponent(agent) } : body;
}

// A SessionName has the parts of a session's key.
export interface SessionName {
  agent: string;
  channel: string;
  chat: string;
  thread: string;
}

export function parseKey(key: string): SessionName {
  const [agent = "", channel = "", chat = "", thread = ""] = key.split(":").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { agent, channel, chat, thread };
}

// readable returns what people see of a session without a title.
export function readable(key: string): string {
  const { channel, chat, thread } = parseKey(key);
  if (channel === "web") return thread || "First session";
  return [chat, thread].filter(Boolean).join(" / ") || key;
}

// isOwn reports whether this person may write in a session.
export function isOwn(key: string, me: Me): boolean {
  if (!me.may.agent) return false;
  const { channel, chat } = parseKey(key);
  return (channel === "web" && chat === me.name) || (channel === "console" && me.owner);
}

// mayAnswer reports whether this person may answer people in a session in place of the agent. In sessions of these
// channels, nobody on a platform takes part.
export function mayAnswer(key: string, me: Me): boolean {
  return me.may.admin && !["", "web", "console", "agent", "webhook", "heartbeat"].includes(parseKey(key).channel);
}

// drafts keeps unsent texts by session, as long as the tab is open.
export const drafts = {
  get: (session: string): string => sessionStorage.getItem("draft " + session) ?? "",
  set: (session: string, text: string): void => {
    if (text.trim()) sessionStorage.setItem("draft " + session, text);
    else sessionStorage.removeItem("draft " + session);
  },
};

// outbox keeps messages that are being sent, by session, so that the page sends them again after a reload. The server
// recognizes them by their keys, and delivers each one once. Messages with files aren't kept.
export const outbox = {
  get: (session: string): Message[] => {
    try {
      const kept = JSON.parse(sessionStorage.getItem("outbox " + session) ?? "[]") as { key: string; session: string; text: string; operator?: boolean }[];
      return kept.map((m) => ({ ...m, files: [], state: "sending", id: "", problem: "" }));
    } catch {
      return [];
    }
  },
  set: (session: string, messages: Message[]): void => {
    const kept = messages.filter((m) => m.state === "sending" && m.files.length === 0).map(({ key, session, text, operator }) => ({ key, session, text, ...(operator && { operator }) }));
    if (kept.length > 0) sessionStorage.setItem("outbox " + session, JSON.stringify(kept));
    else sessionStorage.removeItem("outbox " + session);
  },
};

// readFiles adds files to those that a message has. It throws if there are too many or if they are too large.
export async function readFiles(picked: Iterable<File>, have: Upload[]): Promise<Upload[]> {
  const all = [...have];
  for (const file of picked) {
    if (all.length === mostFiles) throw new Error(`You can attach up to ${mostFiles} files to a message.`);
    const bytes = all.reduce((n, f) => n + f.size, file.size);
    if (bytes > mostBytes) throw new Error("The files are too large. You can attach up to 10 MB to a message.");
    if (file.size === 0) throw new Error(`The file ${file.name} is empty.`);
    const data = await base64(file);
    const upload: Upload = { name: plainName(file.name, all.length), size: file.size, data };
    if (/^image\/(png|jpeg|gif|webp)$/.test(file.type)) upload.preview = URL.createObjectURL(file);
    all.push(upload);
  }
  return all;
}

// plainName returns a name that the server accepts.
function plainName(name: string, n: number): string {
  const plain = name.replace(/[\p{C}/\\]/gu, "_").slice(-100);
  return plain || `file-${n + 1}`;
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error(`Can't read the file ${file.name}.`));
    reader.readAsDataURL(file);
  });
}
