// What people decided on the page or through the API, from the audit.
import type { JSX } from "preact";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Ago } from "../moments.tsx";
import { useLoaded } from "../parts.tsx";
import { Badge, Block, Listing, Name, SessionLink } from "./pieces.tsx";
import type { AuditRecord } from "./schemas.ts";

// History lists the latest decisions. It reads again when decided changes.
export function History({ decided }: { decided: number }): JSX.Element {
  const read = useLoaded((signal) => get<{ records: AuditRecord[] }>(["audit"], { kind: "approval", order: "desc", limit: 20 }, signal), String(decided));
  return (
    <Block title="Recent decisions" wide>
      <Listing
        read={read}
        rows={(v) => v.records}
        label="Decisions made on this page and by programs, newest first"
        id={(r) => String(r.id)}
        empty="No decisions here yet. For decisions that people made in chats, see the tool calls in the audit."
        columns={[
          { title: "When", cell: (r) => <Ago at={r.at} /> },
          { title: "Who", cell: (r) => <Name of={r.by} /> },
          { title: "Decision", cell: (r) => <Badge look={r.result === "denied" ? "bad" : "good"}>{showHidden(r.result)}</Badge> },
          { title: "What", cell: (r) => <>{r.tool && <code>{showHidden(r.tool)}</code>} <span class="aside"><Name of={r.detail} /></span></> },
          { title: "Session", cell: (r) => <SessionLink of={r.session} /> },
        ]}
      />
    </Block>
  );
}
