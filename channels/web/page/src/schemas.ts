// What the API sends, as docs/api.yaml describes it.

// Me says who is signed in, and what they may do.
export interface Me {
  name: string;
  owner: boolean;
  scopes?: string[];
  may: { read: boolean; agent: boolean; own: boolean; approve: boolean; admin: boolean };
}

export interface Session {
  key: string;
  entries: number;
  created: string;
  updated: string;
  title?: string;
}

// A Part is one part of what people see of a call. Without a name, it is what the call would do.
export interface Part {
  name?: string;
  text: string;
}

// A Hit is an entry of a session's log that a search found.
export interface Hit {
  session: string;
  title?: string;
  n: number;
  turn?: string;
  kind: string;
  at: string;
  person?: string;
  name?: string;
  tool?: string;
  text: string;
  untrusted?: boolean;
  link?: string; // to the message on its platform
}

export interface Ask {
  id: string;
  kind: "approval" | "question";
  session: string;
  turn: string;
  person: string;
  tool?: string;
  arguments?: unknown;
  shown?: Part[]; // the call, as it would run
  reason?: string;
  to?: string[];
  question?: string;
  choices?: string[];
  at: string;
  expires: string;
  state: "open" | "answered" | "expired" | "withdrawn";
  answer?: string;
  by?: string;
}

export interface Told {
  id: string;
  session: string;
}

export interface Entry {
  n: number;
  turn: string;
  kind: string;
  at: string;
  cause?: string;
  person?: string;
  call?: string;
  data?: unknown;
}

// Status has the part of /v1/status that the chat uses.
export interface Status {
  version: string;
  role: string;
  started: string;
  uptime_seconds: number;
  channels: { name: string; up: boolean; reason?: string }[];
  turns?: { count: number; list: { session: string; turn?: string; agent: string; since: string }[] };
  waiting?: { count: number; list: { session: string; messages: number; since: string }[] };
  asks?: { count: number; list: { id: string; kind: string; session: string; tool?: string; since: string; expires: string }[] };
}

// A Task is something that an agent has handed to a sub-agent.
export interface Task {
  id: string;
  parent: string;
  session: string; // the session in which the sub-agent works
  turn: string; // the turn that handed it out, and its call
  call: string;
  agent: string;
  title: string;
  awaited: boolean;
  state: "prepared" | "running" | "waiting" | "done" | "failed" | "cancelled" | "lost";
  stopping: boolean;
  started: string;
  ended?: string;
  tools?: string[]; // the tools that run now
  usage: { calls: number; input: number; output: number };
  report?: string;
  cut?: boolean; // the report is longer
}

export interface Job {
  id: string;
  session: string;
  person: string;
  agent: string;
  turn: string; // the turn that started it, and its call
  call: string;
  tool: string;
  command: string;
  state: "running" | "exited" | "stopped" | "killed" | "failed" | "lost";
  stopping: boolean;
  started: string;
  deadline: string;
  ended?: string;
  exit_code?: number;
  detail?: string;
  printed: number;
  output?: string; // only if this job alone was read
}
