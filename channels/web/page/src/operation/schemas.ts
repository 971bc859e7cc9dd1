// What the API sends to the operation views, as docs/api.yaml describes it.

// Shown is a list of the first few things, and how many there are.
export interface Shown<T> {
  count: number;
  list: T[];
}

export interface RunningTurn {
  session: string;
  turn?: string;
  person?: string;
  agent: string;
  since: string;
  messages: number;
  calls: { call: string; tool: string; since: string }[];
}

export interface WaitingSession {
  session: string;
  messages: number;
  since: string;
  next?: string;
}

export interface WaitingAsk {
  id: string;
  kind: "approval" | "question";
  session: string;
  tool?: string;
  person: string;
  decides: string[];
  since: string;
  expires: string;
}

export interface RunningJob {
  id: string;
  session: string;
  person: string;
  agent: string;
  tool: string;
  since: string;
  deadline: string;
}

export interface DueSchedule {
  id: string;
  session: string;
  person: string;
  next: string;
}

export interface Topic {
  topic: string;
  waiting: number;
  leased: number;
  delayed: number;
  dead: number;
  oldest_seconds: number;
}

export interface ChannelState {
  name: string;
  up: boolean;
  reason?: string;
  platform?: string;
  bot?: string;
  since?: string;
  last_in?: string;
  last_out?: string;
}

// A ServerStatus is all of GET /v1/status.
export interface ServerStatus {
  version: string;
  role: string;
  started: string;
  channels: ChannelState[];
  topics: Topic[];
  turns?: Shown<RunningTurn>;
  waiting?: Shown<WaitingSession>;
  asks?: Shown<WaitingAsk>;
  jobs?: Shown<RunningJob>;
  schedules?: Shown<DueSchedule>;
}

export interface Readiness {
  ready: boolean;
  parts: Record<string, string>;
}

// ActivitySum is what happened in an hour or a day.
export interface ActivitySum {
  at: string;
  turns: { done: number; failed: number; given_up: number; stopped: number; refused: number };
  first_token: { count: number; p50_ms: number; p95_ms: number };
  answer: { count: number; p50_ms: number; p95_ms: number };
  calls: number;
  failed_calls: number;
  tools: ToolActivity[];
  more_tools: boolean;
}

export interface ToolActivity {
  tool: string;
  calls: number;
  outcomes: Record<string, number>;
}

export interface Activity {
  by: "hour" | "day";
  since: string;
  sums: ActivitySum[];
  total: ActivitySum;
}

export interface UsageSum {
  key: string;
  then?: string;
  calls: number;
  input: number;
  cached: number;
  output: number;
  reasoning: number;
  microdollars: number;
  estimated: number;
  unpriced: number;
}

export interface Cap {
  of: string;
  span: "day" | "month";
  setting: string;
  most_microdollars: number;
  spent_microdollars: number;
  reserved_microdollars: number;
}

export interface Usage {
  usage: UsageSum[];
  caps: Cap[];
  prices: string;
}

export interface DeadLetter {
  topic: string;
  id: string;
  key: string;
  reason: string;
  attempts: number;
  buried_at: string;
  bytes: number;
  message?: unknown;
}

export interface Pairing {
  person: string;
  name?: string;
  state: "owner" | "admitted" | "asks";
  code?: string;
  at: string;
  linked?: string[]; // other accounts of the same human
}

export interface KnownChat {
  address: string;
  session: string;
  name?: string;
  group: boolean;
  since: string;
}

export interface SignedIn {
  id: string;
  caller: string;
  device: string;
  began: string;
  seen: string;
  current: boolean;
}

// A ScheduleRun is a turn that a schedule started.
export interface ScheduleRun {
  id: string;
  due?: string;
  turn: string;
  begun: string;
  state: string;
  code?: string;
  ended?: string;
}

export interface Schedule {
  id: string;
  when: string;
  text: string;
  next?: string;
  paused?: string;
  time_zone: string;
  session: string;
  person: string;
  made: string;
}

// A Finding is the result of checking one part.
export interface Finding {
  part: string;
  state: "ok" | "note" | "wrong";
  detail: string;
  remedy?: string;
}

export interface Checkup {
  running: boolean;
  at?: string;
  again?: string;
  took_ms: number;
  findings: Finding[];
}

export interface LogLine {
  id: number;
  at: string;
  level: string;
  message: string;
  fields: Record<string, unknown>;
}

// A KeptMemory is a memory in the list, without its text.
export interface KeptMemory {
  scope: "person" | "agent";
  owner: string;
  bytes: number;
  untrusted: boolean;
  changed: string;
}

export interface MemoryText {
  scope: string;
  owner: string;
  content: string;
  untrusted: boolean;
  redacted: boolean;
  version: string;
  most_bytes: number;
}

export interface AuditRecord {
  id: number;
  at: string;
  kind: string;
  by?: string;
  agent?: string;
  session?: string;
  turn?: string;
  call?: string;
  tool?: string;
  arguments?: unknown;
  verdict?: string;
  result: string;
  exit_code?: number;
  bytes?: number;
  elapsed_ms: number;
  detail?: string;
  used?: { model?: string; model_calls: number; calls: number; input: number; output: number; microdollars?: number };
  address?: string;
  messages?: string[];
  count?: number;
}

export interface Story {
  message: string;
  session?: string;
  turn?: string;
  outcome: string;
  says: string;
  steps: { at?: string; kind: string; text: string }[];
}

export interface Told {
  about: "message" | "session" | "chat" | "person";
  id: string;
  messages: Story[];
  hints?: string[];
}

export interface KnownAgent {
  name: string;
  answers: boolean; // a model answers for it in this process
  models: { setting: string; name?: string }[];
  capabilities: string[];
  tools: string[];
  may_message: string[];
  microdollars_day?: number;
}

export interface AgentTool {
  name: string;
  description: string;
  origin: "builtin" | "mcp" | "skill";
  permission?: string;
  effect: string;
  agents: string[];
  calls: number;
  failed: number;
}

export interface KnownSkill {
  name: string;
  description: string;
  folder: string;
  agents: string[];
  trusted: boolean;
  tools: string[];
}

export interface Target {
  name: string;
  to: string[];
}

export interface McpTool {
  name: string;
  description: string;
  schema: unknown;
}

// An AsideTool is a tool that nobody has accepted yet; was is what somebody accepted before.
export interface AsideTool extends McpTool {
  digest: string;
  was?: McpTool;
}

export interface McpServer {
  name: string;
  state: "up" | "down" | "sign_in" | "untried";
  sign_in: boolean;
  tools: McpTool[];
  aside: AsideTool[];
  agents: string[];
  error?: string;
}

// A McpTrial is the result of asking a server for its tools.
export interface McpTrial extends McpServer {
  up: boolean;
  listed: number;
  unusable: { reason: string; tools: number; names?: string[] }[];
  ms: number;
}

// A DeviceTool is a tool of a node.
export interface DeviceTool extends McpTool {
  pure: boolean; // it says that it changes nothing
}

// A Device is a node.
export interface Device {
  name: string;
  state: "waiting" | "accepted" | "revoked";
  here: boolean; // it has a link now
  since?: string; // when the link was opened or lost
  platform?: string;
  tools: DeviceTool[]; // tools that agents get
  aside: DeviceTool[]; // tools that nobody has accepted yet
  agents: string[];
  trusted: boolean;
  fingerprint?: string; // of its key, if it has one
  digest: string; // of all that would be accepted now
}

// An Invitation is a code with which a device can join.
export interface Invitation {
  code: string;
  until: string;
  url?: string; // the server's public address
  broker?: string; // the MQTT broker through which the device can join instead, with its own code
  broker_code?: string;
}

export interface Setting {
  key: string;
  value: unknown;
  from: string; // the file and the line, the environment variable, or default
  no_effect?: boolean;
}

export interface Configuration {
  file: string;
  home: string;
  settings: Setting[];
  notices?: string[];
}

export interface Erasure {
  id: string;
  state: "running" | "done" | "failed";
  asked: string;
  progress: { step: string; done: number; of: number };
  receipt?: Receipt;
  error?: string;
}

// A Receipt says what was erased, and what was kept and why. Its lists may be missing.
export interface Receipt {
  what: string;
  log: { sessions?: string[] | null; shared?: string[] | null; entries: number };
  bus: { messages: number; dead_letters: number; leases: number };
  book: { sends: number; posts: number; chats: number; asks: number; ratings: number; memories?: number };
  workspaces?: string[] | null;
  attachments?: number;
  old_files?: number;
  audit_files?: number;
  kept?: { what: string; why: string }[] | null;
}
