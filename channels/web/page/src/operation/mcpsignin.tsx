// Signing in to an MCP server that requires it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, ErrorNote, useOpened } from "../parts.tsx";

interface Begun {
  id: string;
  url: string;
  ends: string;
  until: string;
}

// every is how often the page asks whether the sign-in is finished, in milliseconds.
const every = 2000;

// SignInTo begins a sign-in, and shows the link to open until it is finished or has expired.
export function SignInTo({ server, done }: { server: string; done: () => void }): JSX.Element {
  const [begun, setBegun] = useState<Begun | null>(null);
  const [error, setError] = useState<unknown>(null);
  const begin = async () => {
    setError(null);
    setBegun(await post<Begun>(["mcp", server, "login"]));
  };
  const finished = () => {
    setBegun(null);
    done();
  };
  useEffect(() => {
    if (!begun) return undefined;
    const left = new AbortController();
    const ask = async () => {
      if (document.hidden) return;
      try {
        const now = await get<{ done: boolean }>(["mcp", server, "login"], { id: begun.id }, left.signal);
        if (now.done) finished();
        else if (Date.now() > Date.parse(begun.until)) {
          setBegun(null);
          setError(new Error("The link has expired. Sign in again."));
        }
      } catch (err) {
        if (!left.signal.aborted) setError(err);
      }
    };
    const ticks = setInterval(() => void ask(), every);
    return () => {
      left.abort();
      clearInterval(ticks);
    };
  }, [begun]);
  return (
    <>
      <ErrorNote error={error} />
      {begun ? <Link begun={begun} server={server} done={finished} /> : <Button onPress={begin} onError={setError} label={`Sign in to ${server}`}>Sign in…</Button>}
    </>
  );
}

// Link leads to the sign-in page. If the browser doesn't get back to this server, people paste where it ended up.
function Link({ begun, server, done }: { begun: Begun; server: string; done: () => void }): JSX.Element {
  const [address, setAddress] = useState("");
  const [error, setError] = useState<unknown>(null);
  const box = useOpened<HTMLDivElement>();
  const finish = async () => {
    await post(["mcp", server, "login"], { address: address.trim() });
    done();
  };
  const to = /^https?:\/\//i.test(begun.url);
  return (
    <div class="note">
      <div ref={box} tabIndex={-1} class="opened">
        <p>{to ? <a href={begun.url} target="_blank" rel="noopener noreferrer">Open the sign-in page</a> : showHidden(begun.url)} The link expires <Ago at={begun.until} />.</p>
        <p>Your browser ends up at <code>{showHidden(begun.ends)}</code>. If it can't open that page, paste its address here.</p>
        <ErrorNote error={error} />
        <form class="filters" onSubmit={(e) => { e.preventDefault(); if (address.trim()) finish().catch(setError); }}>
          <label class="long">Address of the last page<input value={address} autocomplete="off" spellcheck={false} onInput={(e) => setAddress(e.currentTarget.value)} /></label>
          <Button disabled={!address.trim()} onPress={finish} onError={setError}>Finish</Button>
        </form>
      </div>
    </div>
  );
}
