// The HTTP API, as docs/api.yaml describes it: one function for each kind of request, and the errors.
//
// Requests carry the sign-in cookie, which no script can read. Requests that change something also carry the header
// Parley-Page, which no other page can send.

// A Failure says why the server refused a request, or that it wasn't reached (status 0).
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter = 0, // seconds
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | undefined>;

let signedOut: () => void = () => {};

// onSignedOut sets what a request calls when it finds that the sign-in has ended.
export function onSignedOut(call: () => void): void {
  signedOut = call;
}

// path joins the parts of a path, each encoded, with a query: path(["sessions", key], {limit: 5}). It leaves out what
// is "" or undefined in the query.
export function path(parts: string[], query: Query = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") asked.set(name, String(value));
  }
  const all = "/v1/" + parts.map(encodeURIComponent).join("/");
  return asked.size > 0 ? all + "?" + asked.toString() : all;
}

// get sends a GET request, and returns the decoded answer. Like the functions below, it throws a Failure if the server
// refuses the request or isn't reached.
export function get<T>(parts: string[], query: Query = {}, signal?: AbortSignal): Promise<T> {
  return request<T>("GET", path(parts, query), undefined, {}, signal);
}

// post, patch, put and remove change something. A post with a key can be repeated: the server runs it once.
export function post<T>(parts: string[], body: unknown = {}, key?: string, query: Query = {}): Promise<T> {
  return request<T>("POST", path(parts, query), body, key ? { "Idempotency-Key": key } : {});
}

export function patch<T>(parts: string[], body: unknown): Promise<T> {
  return request<T>("PATCH", path(parts), body);
}

// With a version, remove and put change something only if it still has the version that the caller has read.
export function remove(parts: string[], version?: string): Promise<void> {
  return request<void>("DELETE", path(parts), undefined, version ? { "If-Match": `"${version}"` } : {});
}

export function put<T>(parts: string[], body: unknown, version: string): Promise<T> {
  return request<T>("PUT", path(parts), body, { "If-Match": `"${version}"` });
}

async function request<T>(
  method: string,
  to: string,
  body?: unknown,
  more: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<T> {
  const headers: Record<string, string> = { ...more };
  if (method !== "GET") headers["Parley-Page"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers, credentials: "same-origin", redirect: "error" };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  const answer = await reach(to, init);
  if (!answer.ok) throw await failureOf(answer);
  const said = await answer.text();
  return (said ? JSON.parse(said) : undefined) as T;
}

// reach fetches something, and says in plain words if the server is unreachable.
export async function reach(to: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(to, { cache: "no-store", ...init });
  } catch (err) {
    if (init.signal?.aborted) throw err;
    throw new Failure(0, "unreachable", "Can't reach the server. Check that parley serve is running.");
  }
}

// failureOf returns the Failure that a response describes. It tells the page if the sign-in has ended.
export async function failureOf(answer: Response): Promise<Failure> {
  let code = "http_" + answer.status;
  let message = `The server responded with status ${answer.status}.`;
  try {
    const said = (await answer.json()) as { error?: { code?: string; message?: string } };
    code = said.error?.code || code;
    message = said.error?.message || message;
  } catch {
    // It isn't JSON: a proxy responded.
  }
  if (answer.status === 401) signedOut();
  return new Failure(answer.status, code, message, Number(answer.headers.get("Retry-After")) || 0);
}

// tellOf returns the text to show for an error. The server's texts begin with a lowercase letter.
export function tellOf(err: unknown): string {
  const text = err instanceof Error ? err.message : String(err);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
