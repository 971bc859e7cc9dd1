package worker_test

import (
	"context"
	"fmt"
	"testing"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/tools"
)

// Memories of a person are shown in turns that are marked private, and in those of a release that marked none if nobody
// else can read the chat.
func TestWhichTurnsArePrivate(t *testing.T) {
	prompted, called := make(chan bool, 1), make(chan bool, 1)
	look := tools.New(tools.Spec{Name: "look", Effect: tools.Pure}, func(_ context.Context, c tools.Call, _ struct{}) (any, error) {
		called <- c.Private
		return "seen", nil
	})
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleUser && last.Blocks[0].Kind == llm.BlockText {
			return callsAnswer("look {}"), nil
		}
		return textAnswer("fine"), nil
	}, look)
	b.agent.Prompt = func(_ context.Context, who agent.Asker) (string, error) {
		prompted <- who.Private
		return "be brief", nil
	}
	b.run()
	for i, c := range []struct {
		says string
		want bool
	}{
		{`"kind":"said","private":true`, true},
		{`"kind":"said","private":false`, false},
		{`"kind":"said","group":true,"private":false`, false},
		{`"kind":"said"`, true},
		{`"kind":"said","group":true`, false},
		{`"kind":"scheduled","schedule":"s","private":true`, true},
		{`"kind":"scheduled","schedule":"s","private":false`, false},
		{`"kind":"job_ended","private":false`, false},
		{`"kind":"job_ended","private":true`, true},
	} {
		id := fmt.Sprintf("p%d", i)
		body := fmt.Sprintf(`{"id":%q,%s,"from":{"id":"test:ann"},"at":{"channel":"test","chat":"1"},"text":"go","mentioned":true}`, id, c.says)
		if err := b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: "main:test:1", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		b.wantReply(id, "fine")
		if inPrompt, inCall := <-prompted, <-called; inPrompt != c.want || inCall != c.want {
			t.Errorf("%s: private is %t in the prompt and %t in the call", c.says, inPrompt, inCall)
		}
	}
}
