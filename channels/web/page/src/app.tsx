// The frame of the page: who is signed in, the navigation, and the view from the address.
import type { JSX } from "preact";
import { Component } from "preact";
import { useEffect, useState } from "preact/hooks";
import { onSignedOut, remove } from "./api.ts";
import { MenuButton, useMenu, Views } from "./nav.tsx";
import { Button, ErrorNote, Loading } from "./parts.tsx";
import { usePlace } from "./route.ts";
import type { Me } from "./schemas.ts";
import { enter, SignIn, takeCode } from "./signin.tsx";
import { views } from "./views.ts";

type Who = { state: "asking" } | { state: "out"; error?: unknown } | { state: "in"; me: Me };

export function App(): JSX.Element {
  const [who, setWho] = useState<Who>({ state: "asking" });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    onSignedOut(() => setWho((w) => (w.state === "in" ? { state: "out", error: new Error("You've been signed out. Sign in again.") } : w)));
    enter(takeCode()).then(
      (me) => setWho(me ? { state: "in", me } : { state: "out" }),
      (error: unknown) => setWho({ state: "out", error }),
    );
  }, [tries]);
  useEffect(() => {
    // "parley ui" may open its link in a tab that already shows the page.
    const moved = () => {
      if (location.hash.startsWith("#code=")) setTries((n) => n + 1);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  switch (who.state) {
    case "asking":
      return <main class="signin"><Loading /></main>;
    case "out":
      return <SignIn key={tries} error={who.error} onDone={(me) => setWho({ state: "in", me })} />;
    case "in":
      return <Frame me={who.me} onSignOut={() => setWho({ state: "out" })} />;
  }
}

function Frame({ me, onSignOut }: { me: Me; onSignOut: () => void }): JSX.Element {
  const place = usePlace();
  const menu = useMenu();
  const [failed, setFailed] = useState<unknown>(null);
  const all = views().filter((v) => v.may(me));
  const view = all.find((v) => v.name === place.view) ?? all[0];
  const signOut = async () => {
    await remove(["sign-ins", "current"]);
    onSignOut();
  };
  useEffect(() => {
    document.title = view ? `${view.title} – Parley` : "Parley";
  }, [view]);
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to content</a>
      <header class="top">
        <MenuButton menu={menu} />
        <strong class="brand">Parley</strong>
        <span class="here" aria-hidden="true">{view?.title}</span>
        <span class="who" title="You're signed in with this name">{me.name}</span>
        <Button look="quiet" onPress={signOut} onError={setFailed}>Sign out</Button>
      </header>
      <ErrorNote error={failed} />
      <div class="below">
        <Views all={all} view={view} menu={menu} />
        <main id="content" class="content" tabIndex={-1}>
          {view ? <Guarded key={view.name}><view.show me={me} rest={view.name === place.view ? place.rest : []} /></Guarded> : <p class="empty">Your token can't see anything here. It needs the agent, own or read scope.</p>}
        </main>
      </div>
    </div>
  );
}

// Guarded shows an error if a view breaks, and keeps the rest of the page working.
class Guarded extends Component<{ children: JSX.Element }, { error?: unknown }> {
  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ error });
  }
  override render(): JSX.Element {
    if (!this.state.error) return this.props.children;
    return <ErrorNote error={this.state.error} again={() => this.setState({ error: undefined })} />;
  }
}
