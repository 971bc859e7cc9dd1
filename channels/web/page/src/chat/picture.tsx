// Pictures among the files of a session.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { failureOf, path, reach } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { State } from "../operation/pieces.tsx";
import { useLoaded } from "../parts.tsx";

// largest is the size up to which pictures are shown, in bytes.
export const largest = 10 << 20;

// isNamedPicture reports whether a file has the name of a picture that can be shown.
export const isNamedPicture = (name: string): boolean => /\.(png|jpe?g|gif|webp)$/i.test(name);

// Picture reads a picture and shows it, or why it can't.
export function Picture({ session, name }: { session: string; name: string }): JSX.Element {
  const read = useLoaded((signal) => readPicture(session, name, signal), name);
  useEffect(() => () => { if (read.value) URL.revokeObjectURL(read.value); }, [read.value]);
  return (
    <>
      <State {...read} />
      {read.value && <img src={read.value} alt={`Picture ${showHidden(name)}`} />}
    </>
  );
}

// readPicture reads a picture, and returns a URL for it that is valid within this page. It goes by the file's first
// bytes, not by its name, so the page never shows anything but these kinds of pictures.
async function readPicture(session: string, name: string, signal: AbortSignal): Promise<string> {
  const answer = await reach(path(["sessions", session, "files", name]), { signal });
  if (!answer.ok) throw await failureOf(answer);
  if (Number(answer.headers.get("Content-Length")) > largest) {
    await answer.body?.cancel();
    throw new Error("This picture is too large to show here. You can download it.");
  }
  const content = await answer.arrayBuffer();
  const kind = kindOf(new Uint8Array(content));
  if (!kind) throw new Error("This file isn't a picture that the page can show. You can download it.");
  return URL.createObjectURL(new Blob([content], { type: kind }));
}

// kindOf returns the media type of a picture; "" if it isn't one.
function kindOf(content: Uint8Array): string {
  const begins = String.fromCharCode(...content.subarray(0, 12));
  if (begins.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (begins.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(begins)) return "image/gif";
  if (/^RIFF[^]{4}WEBP/.test(begins)) return "image/webp";
  return "";
}
