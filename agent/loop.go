package agent

import (
	"context"
	"fmt"
	"strings"

	"parley/bus"
	"parley/sessions"
)

// Codes of notices for the model.
const (
	noticeDelivery   = "delivery" // of what the session had said
	noticeTold       = "told"     // said here by the agent, on behalf of somebody elsewhere
	noticeLastStep   = "last_step"
	noticeUnsendable = "unsendable" // the turn's answer is one that no bus takes
	codeGaveUp       = "gave_up"
	noticeRepeated   = "repeated_call"
)

// How often the same call may have the same result.
const (
	repeatWarn   = 3
	repeatRefuse = 5
)

// loop goes through the steps of a turn until its end is written. Each round
// begins with the turn as the log has it.
func (v *visit) loop(ctx context.Context, id string) error {
	prompt, err := v.agent.Prompt(ctx, v.lease.Claim().Key)
	if err != nil {
		return fmt.Errorf("make the prompt: %w", err)
	}
	for {
		t, err := fold(id, v.j.all())
		if err != nil {
			return err
		}
		if t.stopped {
			return errStopped
		}
		if t.done != nil {
			return nil
		}
		if open := t.open(); len(open) > 0 {
			err = v.runCalls(ctx, t, open)
		} else {
			err = v.step(ctx, t, prompt)
		}
		if err != nil {
			return err
		}
	}
}

// step asks the model once: C2, the call, and C3. An answer without calls is
// the turn's end and C6 as well.
func (v *visit) step(ctx context.Context, t *turn, prompt string) error {
	if err := v.prepare(ctx, t); err != nil {
		return err
	}
	r := Request{System: prompt, Tools: v.agent.Tools.Specs(), NoCalls: t.lastStep}
	answer, err := v.askWithin(ctx, t, r)
	if err != nil {
		return err
	}
	v.w.cfg.Observer.Step()
	entries, calls := v.written(t, answer)
	if calls == 0 {
		done := sessions.TurnDone{State: sessions.TurnCompleted, Outbound: []sessions.Reply{{ID: replyID(t.id), Text: v.lastWord(t, answer)}}}
		entries = append(entries, entry(t.id, sessions.KindTurnDone, done))
		v.w.cfg.Point("c6:before")
	}
	v.w.cfg.Point("c3:before")
	if err := v.j.append(ctx, entries...); err != nil {
		return err
	}
	v.w.cfg.Point("c3")
	if calls == 0 {
		v.w.cfg.Point("c6")
	}
	return nil
}

// prepare is C2: mail of the same sender that has come since, and the word that
// this is the last step where a limit is reached.
func (v *visit) prepare(ctx context.Context, t *turn) error {
	var entries []sessions.Entry
	var taken []item
	if v.agent.Steer && t.asked > 0 {
		taken = v.in.steering(t)
	}
	for _, it := range taken {
		if _, known := v.j.knows(it.in.ID); !known {
			entries = append(entries, said(t.id, it.in))
		}
	}
	if why := v.limit(t); why != "" && !t.lastStep {
		t.lastStep = true
		text := "This turn has reached a limit (" + why + "), so this is your last answer and tools are off: say what is done and what remains."
		entries = append(entries, entry(t.id, sessions.KindNotice, sessions.Notice{Code: noticeLastStep, Text: text}))
	}
	if len(entries) > 0 {
		v.w.cfg.Point("c2:before")
		if err := v.j.append(ctx, entries...); err != nil {
			return err
		}
		v.w.cfg.Point("c2")
	}
	v.in.handled(taken...)
	return nil
}

// limit says which limit makes the next model call the turn's last; "" if none.
func (v *visit) limit(t *turn) string {
	if t.asked >= v.agent.MaxIterations-1 {
		return fmt.Sprintf("%d model calls", v.agent.MaxIterations)
	}
	if v.agent.ErrorLimit > 0 && t.failures() >= v.agent.ErrorLimit {
		return fmt.Sprintf("%d steps in a row in which every tool call failed", v.agent.ErrorLimit)
	}
	if len(t.steps) > 0 {
		for _, c := range t.steps[len(t.steps)-1].calls {
			if t.repeats(c) >= repeatRefuse {
				return "the same call with the same result, again and again"
			}
		}
	}
	return ""
}

// written is an answer as entries, and the number of its calls.
func (v *visit) written(t *turn, answer Answer) (entries []sessions.Entry, calls int) {
	for _, b := range answer.Blocks {
		switch b.Kind {
		case BlockThinking:
			entries = append(entries, entry(t.id, sessions.KindThinking, sessions.Thinking{Text: b.Text, Provider: b.Provider}))
		case BlockText:
			entries = append(entries, entry(t.id, sessions.KindText, sessions.Text{Text: b.Text}))
		case BlockToolUse:
			if t.lastStep {
				continue
			}
			calls++
			e := entry(t.id, sessions.KindToolUse, sessions.ToolUse{
				Name: b.Name, Args: safeArgs(b.Args), ProviderID: b.ProviderID, Provider: b.Provider,
			})
			e.Call = newCallID()
			entries = append(entries, e)
		}
	}
	return append(entries, v.usage(t.id, t.person, answer)), calls
}

// usage is what an answer has cost, as an entry.
func (v *visit) usage(turn, person string, answer Answer) sessions.Entry {
	e := entry(turn, sessions.KindUsage, sessions.Usage{
		Model: v.agent.Model.Info().Name, Agent: v.agent.Name,
		Input: answer.Usage.Input, Cached: answer.Usage.Cached, Output: answer.Usage.Output, Estimated: answer.Usage.Estimated,
	})
	e.Person = person
	return e
}

// lastWord is the reply of a turn: the text of its last answer. A limit that was
// reached is said aloud, and so is an answer that says nothing.
func (v *visit) lastWord(t *turn, answer Answer) string {
	var texts []string
	for _, b := range answer.Blocks {
		if b.Kind == BlockText && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, b.Text)
		}
	}
	if note := answer.shortfall(len(texts) > 0); note != "" {
		texts = append(texts, note)
	}
	if t.lastStep {
		why := v.limit(t)
		if why == "" {
			why = "a limit"
		}
		texts = append(texts, "_(Stopped at "+why+". Say “go on” to continue.)_")
	}
	return strings.Join(texts, "\n\n")
}

// emit publishes news of a turn.
func (v *visit) emit(t *turn, e bus.Event) {
	e.Session, e.Turn, e.Route = v.lease.Claim().Key, t.id, t.route.At
	v.w.cfg.Events.Emit(e)
}
