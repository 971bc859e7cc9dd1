// The entry point of Parley's web page.
import { render } from "preact";
import { App } from "./app.tsx";
import "./style/base.css";
import "./style/frame.css";
import "./style/parts.css";
import "./style/asks.css";
import "./style/chat.css";
import "./style/markdown.css";
import "./style/operation.css";

const root = document.getElementById("page");
if (root) render(<App />, root);
