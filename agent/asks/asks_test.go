package asks_test

import (
	"encoding/json"
	"testing"

	"parley/agent/asks"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// TestResult checks what each end of an ask means for its call.
func TestResult(t *testing.T) {
	question := sessions.Ask{Kind: bus.AskQuestion, Question: "Which?", Choices: []string{"red", "blue"}}
	approval := sessions.Ask{Kind: bus.AskApproval}
	for name, c := range map[string]struct {
		ask     sessions.Ask
		state   string
		answer  bus.Answer
		runs    bool
		code    tools.Code
		content string
	}{
		"approved":              {ask: approval, state: bus.AskAnswered, answer: bus.Answer{Text: bus.Approve}, runs: true},
		"approved for session":  {ask: approval, state: bus.AskAnswered, answer: bus.Answer{Text: bus.ApproveSession}, runs: true},
		"denied":                {ask: approval, state: bus.AskAnswered, answer: bus.Answer{Text: bus.Deny}, code: tools.PermissionDenied},
		"denied with a reason":  {ask: approval, state: bus.AskAnswered, answer: bus.Answer{Text: bus.Deny, Reason: "no"}, code: tools.PermissionDenied},
		"expired":               {ask: approval, state: bus.AskExpired, code: tools.Timeout},
		"withdrawn":             {ask: question, state: bus.AskWithdrawn, code: tools.Cancelled},
		"a choice's number":     {ask: question, state: bus.AskAnswered, answer: bus.Answer{Text: "2."}, content: `{"answer":"blue"}`},
		"a choice's words":      {ask: question, state: bus.AskAnswered, answer: bus.Answer{Text: " RED "}, content: `{"answer":"red"}`},
		"a number of no choice": {ask: question, state: bus.AskAnswered, answer: bus.Answer{Text: "3"}, content: `{"answer":"3"}`},
	} {
		result, failed, runs := asks.Result(c.ask, bus.Ask{State: c.state, Answer: c.answer})
		var code tools.Code
		if failed != nil {
			code = failed.Code
		}
		if runs != c.runs || code != c.code || string(result.Content) != c.content {
			t.Errorf("%s: runs %t, code %q, content %s; want %t, %q, %s", name, runs, code, result.Content, c.runs, c.code, c.content)
		}
	}
}

// TestHash checks that an approval depends on the meaning of a call's arguments and not on their form, and that any
// other change makes a different approval.
func TestHash(t *testing.T) {
	call := tools.Call{Name: "shell", Session: "http:a", Args: json.RawMessage(`{"a":1,"b":"x"}`)}
	sum := asks.Hash(call, asks.InputsHash{Sum: "files"})
	same := call
	same.Args = json.RawMessage(`{ "b": "x", "a": 1 }`)
	if asks.Hash(same, asks.InputsHash{Sum: "files"}) != sum {
		t.Error("the order of the arguments changes what is approved")
	}
	for name, change := range map[string]func(*tools.Call){
		"tool":      func(c *tools.Call) { c.Name = "other" },
		"session":   func(c *tools.Call) { c.Session = "http:b" },
		"arguments": func(c *tools.Call) { c.Args = json.RawMessage(`{"a":2,"b":"x"}`) },
	} {
		other := call
		change(&other)
		if asks.Hash(other, asks.InputsHash{Sum: "files"}) == sum {
			t.Errorf("another %s is approved with it", name)
		}
	}
	if asks.Hash(call, asks.InputsHash{Sum: "other files"}) == sum {
		t.Error("other files are approved with it")
	}
}

// TestParse checks which answer a command gives to which ask.
func TestParse(t *testing.T) {
	for args, want := range map[string]struct {
		id     string
		answer bus.Answer
	}{
		"":                     {"", bus.Answer{Text: bus.Approve}},
		"`ABCDE23456`":         {"abcde23456", bus.Answer{Text: bus.Approve}},
		" abcde23456  Session": {"abcde23456", bus.Answer{Text: bus.ApproveSession}},
	} {
		if id, answer := asks.Parse(bus.Inbound{Text: asks.Approve, Args: args}); id != want.id || answer != want.answer {
			t.Errorf("%q: ask %q, answer %+v; want %q, %+v", args, id, answer, want.id, want.answer)
		}
	}
	if _, answer := asks.Parse(bus.Inbound{Text: asks.Deny, Args: "x not now"}); answer.Text != bus.Deny || answer.Reason != "not now" {
		t.Errorf("a denial is %+v", answer)
	}
}
