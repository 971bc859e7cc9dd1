// The chat: the sessions, and the conversation of one of them, or the start of a new one.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { go } from "../route.ts";
import type { ViewProps } from "../views.ts";
import { Composer } from "./composer.tsx";
import { Conversation } from "./conversation.tsx";
import { keyOfNew, type Message, newMessage, type Upload } from "./sending.ts";
import { useUnread } from "./seen.ts";
import { Past } from "./past.tsx";
import { Sessions, useSessions } from "./sessions.tsx";

export function Chat({ me, rest }: ViewProps): JSX.Element {
  const shown = rest[0] ?? "";
  const at = Number(rest[1]) || 0; // the number of the log entry to show; 0 for the newest ones
  const known = useSessions(me);
  const unread = useUnread(me, known.sessions, shown);
  const begun = useRef(new Map<string, Message[]>()); // the first messages of new sessions, by key
  const title = known.sessions?.find((s) => s.key === shown)?.title ?? "";
  // The conversation sends the first message itself, once its stream is open.
  const begin = (text: string, files: Upload[]) => {
    const key = keyOfNew(me);
    begun.current.set(key, [newMessage(key, text, files)]);
    go("chat", key);
  };
  return (
    <div class={"chat " + (shown ? "one" : "all")}>
      <Sessions known={known} unread={unread} shown={shown} at={at} />
      {shown && at > 0 ? (
        <Past key={shown + " " + at} me={me} session={shown} title={title} at={at} />
      ) : shown ? (
        <Conversation key={shown} me={me} session={shown} title={title} begun={begun.current.get(shown) ?? []} onActivity={known.again} />
      ) : (
        <Beginning mayTalk={me.may.agent} onSay={begin} />
      )}
    </div>
  );
}

// Beginning starts a new session with its first message.
function Beginning({ mayTalk, onSay }: { mayTalk: boolean; onSay: (text: string, files: Upload[]) => void }): JSX.Element {
  if (!mayTalk) return <section class="conversation"><p class="empty">Select a session to read it.</p></section>;
  return (
    <section class="conversation beginning" aria-label="New chat">
      <div class="hello">
        <h1>What can the agent do for you?</h1>
        <p class="faint">Your first message starts a new session. Press Enter to send, Shift+Enter for a new line.</p>
      </div>
      <Composer session="" running={false} onSay={onSay} onStop={() => {}} />
    </section>
  );
}
