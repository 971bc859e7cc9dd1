// Signing in: with the code that "parley ui" puts into the address, or with a link or token that someone pastes.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Failure, get, post } from "./api.ts";
import { Button, ErrorNote } from "./parts.tsx";
import type { Me } from "./schemas.ts";

// takeCode takes a code out of the address at once, so that it doesn't stay in the browser's history.
export function takeCode(): string {
  const given = /^#code=([^&]+)$/.exec(location.hash);
  if (!given?.[1]) return "";
  history.replaceState(null, "", location.pathname);
  return decodeURIComponent(given[1]);
}

// enter signs in with the code from the address, if there is one. Otherwise, it returns who is already signed in, or null
// if nobody is.
export async function enter(code: string): Promise<Me | null> {
  if (code) return signIn({ code });
  try {
    return await get<Me>(["me"]);
  } catch (err) {
    if (err instanceof Failure && (err.status === 401 || err.status === 404)) return null;
    throw err;
  }
}

function signIn(by: { code: string } | { token: string }): Promise<Me> {
  return post<Me>(["sign-ins"], by);
}

// proofOf returns the code in a text that is a code or a link with one. Any other text is a token.
function proofOf(given: string): { code: string } | { token: string } {
  const code = /(?:#code=|^)([A-Z2-7]{26})$/.exec(given)?.[1];
  return code ? { code } : { token: given };
}

interface SignInProps {
  error: unknown;
  onDone: (me: Me) => void;
}

export function SignIn({ error, onDone }: SignInProps): JSX.Element {
  const [given, setGiven] = useState("");
  const [failed, setFailed] = useState<unknown>(error);
  const submit = async () => {
    const text = given.trim();
    if (!text) return;
    setFailed(null);
    onDone(await signIn(proofOf(text)));
  };
  return (
    <main class="signin">
      <h1>Parley</h1>
      <p>Run <code>parley ui</code> on the server. It opens this page and signs you in.</p>
      <ErrorNote error={failed} />
      <form
        onSubmit={(e) => {
          e.preventDefault();
          submit().catch(setFailed);
        }}
      >
        <label for="given">Or paste the link that it prints, or a token</label>
        <input id="given" type="password" autocomplete="off" value={given} onInput={(e) => setGiven(e.currentTarget.value)} />
        <Button look="main" disabled={!given.trim()} onPress={submit} onError={setFailed}>Sign in</Button>
      </form>
    </main>
  );
}
