// Who may answer a request, and how an answer is sent.
import { post } from "../api.ts";
import type { Ask, Me } from "../schemas.ts";

// refusal says why somebody can't answer a request; "" if they can. The server has the last word.
export function refusal(ask: Ask, me: Me): string {
  if (me.owner) return "";
  const own = ask.person === "web:" + me.name;
  if (ask.kind === "question") return own && (me.may.agent || me.may.approve) ? "" : "Only an owner or the person who started this turn can answer.";
  if (own) return "You started this turn yourself, so someone else needs to approve the call.";
  return me.may.approve ? "" : "Your token needs the approve scope to decide this.";
}

// decide sends an answer, and returns the request as it is now.
export function decide(ask: Ask, answer: string, reason = ""): Promise<Ask> {
  return post<Ask>(["asks", ask.id], reason ? { answer, reason } : { answer });
}
