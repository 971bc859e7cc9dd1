// The navigation: the views in groups, in a column beside them, or on a small screen in a menu.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { linkTo } from "./route.ts";
import type { View } from "./views.ts";

export interface Menu {
  open: boolean;
  waiting: number; // how many requests are open: the menu button shows this while the menu is closed
  toggle: () => void;
  close: () => void;
  tell: (waiting: number) => void;
}

// useMenu keeps whether the menu is open. A press outside it closes it, and so does Escape.
export function useMenu(): Menu {
  const [open, setOpen] = useState(false);
  const [waiting, setWaiting] = useState(0);
  const close = () => setOpen(false);
  useEffect(() => {
    if (!open) return undefined;
    const elsewhere = (e: Event) => {
      if (e.target instanceof Element && !e.target.closest("#views, .top")) close();
    };
    const escape = (e: KeyboardEvent) => {
      if (e.key !== "Escape") return;
      close();
      document.querySelector<HTMLElement>(".menu-button")?.focus();
    };
    addEventListener("pointerdown", elsewhere);
    addEventListener("focusin", elsewhere); // what has the focus must not be behind the menu
    addEventListener("keydown", escape);
    return () => {
      removeEventListener("pointerdown", elsewhere);
      removeEventListener("focusin", elsewhere);
      removeEventListener("keydown", escape);
    };
  }, [open]);
  return { open, waiting, toggle: () => setOpen(!open), close, tell: setWaiting };
}

// MenuButton opens the menu on a small screen. It also says how many requests are open, because the closed menu can't.
export function MenuButton({ menu }: { menu: Menu }): JSX.Element {
  return (
    <button type="button" class="button quiet menu-button" aria-expanded={menu.open} aria-controls="views" onClick={menu.toggle}>
      <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="M4 6h16M4 12h16M4 18h16" /></svg>
      Menu
      {menu.waiting > 0 && !menu.open && <span class="badge warn">{menu.waiting}<span class="away"> open requests</span></span>}
    </button>
  );
}

// groupsOf returns the views by their groups, in the order in which they come.
function groupsOf(all: View[]): [string, View[]][] {
  const groups = new Map<string, View[]>();
  for (const v of all) groups.set(v.group, [...(groups.get(v.group) ?? []), v]);
  return [...groups];
}

export function Views({ all, view, menu }: { all: View[]; view?: View; menu: Menu }): JSX.Element {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    box.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [view]);
  // Following a link in the menu closes the menu, and so removes the link. Then the focus moves to the view.
  const follow = () => {
    if (!menu.open) return;
    menu.close();
    document.getElementById("content")?.focus();
  };
  return (
    <nav ref={box} id="views" class={"views" + (menu.open ? " open" : "")} aria-label="Views">
      {groupsOf(all).map(([group, views]) => {
        const id = "views-" + group.toLowerCase();
        return (
          <div key={group} class="views-group">
            <span id={id} class="views-title">{group}</span>
            <ul aria-labelledby={id}>
              {views.map((v) => (
                <li key={v.name}>
                  <a href={linkTo(v.name)} aria-current={v === view ? "page" : undefined} onClick={follow}>{v.title}{v.beside && <v.beside tell={menu.tell} />}</a>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}
