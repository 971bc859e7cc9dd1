// The router: the part of the address after "#" names the view and what it shows, as in #/chat/KEY.
import { useLayoutEffect, useState } from "preact/hooks";

// A Place is a view and what it shows.
export interface Place {
  view: string;
  rest: string[];
}

// placeOf returns the place that a fragment names. For one that it can't read, that is the first view.
export function placeOf(fragment: string): Place {
  const [view = "", ...rest] = fragment.replace(/^#?\/?/, "").split("/");
  try {
    return { view: decodeURIComponent(view), rest: rest.map(decodeURIComponent) };
  } catch {
    return { view: "", rest: [] };
  }
}

// linkTo returns the link to a view: linkTo("chat", key).
export function linkTo(view: string, ...rest: string[]): string {
  return "#/" + [view, ...rest].map(encodeURIComponent).join("/");
}

// go shows another view.
export function go(view: string, ...rest: string[]): void {
  location.hash = linkTo(view, ...rest);
}

// usePlace returns the current place, and draws again when it changes.
export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useLayoutEffect(() => { // at once: the place may change as soon as the page is shown
    const moved = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}
