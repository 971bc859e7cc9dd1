// Browsers: where people are signed in to this page.
import type { JSX } from "preact";
import { get, remove } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { Button, useLoaded } from "../parts.tsx";
import type { ViewProps } from "../views.ts";
import { Badge, Listing, Name, Sheet, useConfirmation, useOutcome } from "./pieces.tsx";
import type { SignedIn } from "./schemas.ts";

export function Browsers({ me }: ViewProps): JSX.Element {
  const outcome = useOutcome();
  const read = useLoaded((signal) => get<{ sign_ins: SignedIn[] }>(["sign-ins"], {}, signal), "");
  const ending = useConfirmation<SignedIn>((s) => ({
    title: s.current ? "Sign out here?" : "Sign out this browser?",
    confirm: "Sign out browser",
    text: <>{deviceOf(s.device)} (<Name of={s.caller} />) will need to sign in again. {s.current && "That's the browser you're using now."}</>,
    act: async () => {
      await remove(["sign-ins", s.id]);
      outcome.say(`You signed out ${deviceOf(s.device)} (${showHidden(s.caller)}).`);
      read.again();
    },
  }));
  return (
    <Sheet title="Browsers" done={outcome} about={me.may.admin ? "Browsers that are signed in to this page." : "Browsers that are signed in to this page with your token."}>
      <Listing
        read={read}
        rows={(v) => v.sign_ins}
        label="Signed-in browsers, most recently used first"
        id={(s) => s.id}
        empty="No browsers are signed in."
        columns={[
          { title: "Browser", cell: (s) => <><span title={showHidden(s.device)}>{deviceOf(s.device)}</span> {s.current && <Badge look="good">this browser</Badge>}</> },
          { title: "Who", cell: (s) => <Name of={s.caller} /> },
          { title: "Signed in", cell: (s) => <Ago at={s.began} /> },
          { title: "Last used", cell: (s) => <Ago at={s.seen} /> },
          { title: "Actions", cell: (s) => <Button look="danger" onPress={() => ending.ask(s)} label={`Sign out ${deviceOf(s.device)} (${s.caller})`}>Sign out…</Button> },
        ]}
      />
      {ending.dialog}
    </Sheet>
  );
}

// deviceOf shortens the user agent string of a browser.
function deviceOf(says: string): string {
  const find = (known: [string, RegExp][]) => known.find(([, how]) => how.test(says))?.[0];
  const browser = find([["Edge", /Edg/], ["Opera", /OPR/], ["Firefox", /Firefox|FxiOS/], ["Chrome", /Chrome|CriOS/], ["Safari", /Safari/]]);
  const system = find([["Android", /Android/], ["iPhone", /iPhone/], ["iPad", /iPad/], ["Windows", /Windows/], ["macOS", /Mac OS X/], ["Linux", /Linux/]]);
  if (!browser) return showHidden(says) || "Unknown browser";
  return system ? `${browser} on ${system}` : browser;
}
