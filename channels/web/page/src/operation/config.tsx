// Configuration: each setting in force, and where its value comes from.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { useLoaded } from "../parts.tsx";
import { Badge, hasWords, Listing, Name, Sheet, Words } from "./pieces.tsx";
import type { Configuration as Shown, Setting } from "./schemas.ts";

export function Configuration(): JSX.Element {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(false);
  const read = useLoaded((signal) => get<Shown>(["config"], {}, signal), "");
  const shown = (s: Setting) => (!chosen || s.from !== "default") && hasWords(words, s.key, valueOf(s), s.from);
  return (
    <Sheet title="Configuration" about="The settings in force. To change one, edit the file and send SIGHUP to the server, or restart it.">
      {read.value && <p class="aside">File: <Name of={read.value.file || "none"} /><br />Home: <Name of={read.value.home} /></p>}
      {read.value?.notices?.map((n) => <p key={n} class="note warn">{showHidden(n)}</p>)}
      <Words label="Find settings" value={words} set={setWords}>
        <label class="choice"><input type="checkbox" checked={chosen} onChange={(e) => setChosen(e.currentTarget.checked)} /> Hide defaults</label>
      </Words>
      <Listing
        read={read}
        rows={(v) => v.settings.filter(shown)}
        label="Settings in force; secrets are ***"
        id={(s) => s.key}
        empty="No matching settings."
        columns={[
          { title: "Setting", cell: (s) => <><code class="name">{showHidden(s.key)}</code> {s.no_effect && <Badge look="warn">no effect yet</Badge>}</> },
          { title: "Value", cell: (s) => <code class="name">{showHidden(valueOf(s))}</code> },
          { title: "From", cell: (s) => (s.from === "default" ? <span class="aside">default</span> : <Name of={s.from} />) },
        ]}
      />
    </Sheet>
  );
}

// valueOf writes the value of a setting.
function valueOf(s: Setting): string {
  return JSON.stringify(s.value);
}
