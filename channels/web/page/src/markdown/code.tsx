// Code, and other texts that stay as they were written.
import type { ComponentChildren, JSX, TargetedMouseEvent } from "preact";

// elementsOfCode is how many elements a Code has.
export const elementsOfCode = 6;

// Code shows code or output, with a button to copy it.
export function Code({ text, language = "" }: { text: string; language?: string }): JSX.Element {
  const copy = (e: TargetedMouseEvent<HTMLButtonElement>) => {
    const button = e.currentTarget;
    void navigator.clipboard?.writeText(text).then(() => {
      button.textContent = "Copied";
    });
  };
  return (
    <div class="code">
      <div class="code-bar"><span>{language}</span><button type="button" onClick={copy}>Copy</button></div>
      <pre tabIndex={0}><code>{piecesOf(text)}</code></pre>
    </div>
  );
}

// Rest shows what is left of a text as it was written, and says so.
export function Rest({ text }: { text: string }): JSX.Element {
  return (
    <>
      <p class="faint">The rest of this text is too long to format.</p>
      <div class="as-written">{piecesOf(text)}</div>
    </>
  );
}

// A piece of a text has so many lines, or more if there would be more than so many pieces.
const linesOfPiece = 100;
const mostPieces = 200;

// piecesOf returns a text in pieces of some lines, if it is long. Of a text that grows, only the last one is then laid
// out again.
function piecesOf(text: string): ComponentChildren {
  const lines = text.split("\n");
  let size = linesOfPiece;
  if (lines.length <= size) return text;
  while (lines.length > size * mostPieces) size *= 2;
  const pieces: JSX.Element[] = [];
  for (let n = 0; n < lines.length; n += size) {
    const end = n + size < lines.length ? "\n" : "";
    pieces.push(<span key={n} class="piece">{lines.slice(n, n + size).join("\n") + end}</span>);
  }
  return pieces;
}
