// What an agent has drawn for people to look at: a document of its own origin, in a frame.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path } from "../api.ts";
import { showHidden } from "../hidden.ts";
import { Button } from "../parts.tsx";
import type { Block } from "./log.ts";

interface CanvasCardProps {
  session: string;
  use: Block; // the call that has drawn it
  result: Block | undefined;
}

// CanvasCard offers a canvas. It is loaded only when somebody wants to see it, and goes away when they close it, so a
// script in it that never ends can be stopped. The frame gives the document no rights: it has no access to the page, to
// cookies or to storage, and opens no windows. The page's policy keeps the frame from going elsewhere.
export function CanvasCard({ session, use, result }: CanvasCardProps): JSX.Element | null {
  const [shown, setShown] = useState(false);
  const canvas = canvasOf(use, result);
  if (!canvas) return null;
  const title = showHidden(canvas.title || "Canvas");
  return (
    <figure class="canvas">
      <figcaption class="between">
        <span class="name">{title}</span>
        {shown
          ? <Button look="quiet" onPress={() => setShown(false)} label={`Close ${title}`}>Close</Button>
          : <Button onPress={() => setShown(true)} label={`Show ${title}`}>Show</Button>}
      </figcaption>
      {shown && <iframe title={title} sandbox="allow-scripts" referrerpolicy="no-referrer" src={path(["sessions", session, "canvases", canvas.file])} height={canvas.height} />}
    </figure>
  );
}

// The file of a canvas is in this folder. The server serves none from elsewhere.
const folder = ".agent/canvas/";

// canvasOf returns what a call has drawn; null if it has drawn nothing.
function canvasOf(use: Block, result: Block | undefined): { file: string; title: string; height: number } | null {
  if (use.tool !== "canvas" || !result || result.failed) return null;
  try {
    const told = JSON.parse(result.text) as { path?: unknown; title?: unknown; height?: unknown } | null;
    if (typeof told?.path !== "string" || !told.path.startsWith(folder)) return null;
    const height = typeof told.height === "number" ? Math.min(Math.max(told.height, 100), 2000) : 480;
    return { file: told.path.slice(folder.length), title: typeof told.title === "string" ? told.title : "", height };
  } catch {
    return null; // it is shortened
  }
}
