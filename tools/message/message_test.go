package message_test

import (
	"context"
	"errors"
	"flag"
	"reflect"
	"slices"
	"testing"

	"parley/tools"
	"parley/tools/message"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write the golden files")

var args = toolstest.Args

// post remembers the messages that the tool delivers.
type post struct {
	sent []message.Request
	err  error
}

func (p *post) deliver(_ context.Context, l message.Request) error {
	p.sent = append(p.sent, l)
	return p.err
}

func newCaller() (*toolstest.Caller, *post) {
	p := &post{}
	return toolstest.New(message.New(p.deliver)), p
}

func TestGolden(t *testing.T) {
	c, _ := newCaller()
	c.Golden(t, "testdata/specs.json")
}

func TestSend(t *testing.T) {
	c, p := newCaller()
	c.Call.Owner = true
	c.Want(t, "message", args("channel", " telegram", "chat_id", 43, "content", "h\x00i\x7f\x1b\tä\r\n"),
		`{"status":"sent","channel":"telegram","chat_id":"43","content_length":7}`)
	want := message.Request{
		ID: "turn-1/call-1", Session: "main:telegram:42", Turn: "turn-1", From: "telegram:42", Person: "telegram:42", Owner: true,
		Channel: "telegram", Chat: "43", Content: "hi\tä\r\n", Attempt: 1,
	}
	if len(p.sent) != 1 || !reflect.DeepEqual(p.sent[0], want) {
		t.Errorf("delivered was %+v, want %+v", p.sent, want)
	}
	c.Want(t, "message", args("channel", "oncall", "content", "x"), `{"status":"sent","channel":"oncall","chat_id":"","content_length":1}`)
	c.Want(t, "message", args("channel", "oncall", "content", "", "files", []string{"a.png", "b"}), `{"status":"sent","channel":"oncall","chat_id":"","content_length":0,"files":2}`)
	if l := p.sent[len(p.sent)-1]; !slices.Equal(l.Files, []string{"a.png", "b"}) {
		t.Errorf("delivered was %+v", l)
	}
	if got := c.Effect(t, "message", args("channel", "a", "content", "b")); got != tools.Idempotent {
		t.Errorf("message is %s", got)
	}
}

func TestRefusals(t *testing.T) {
	c, p := newCaller()
	c.WantError(t, "message", args("channel", "telegram", "chat_id", "43"), tools.InvalidArgs, "content")
	c.WantError(t, "message", args("channel", "telegram", "chat_id", "43", "content", "\x00 \n"), tools.InvalidArgs, "empty")
	c.WantError(t, "message", args("channel", " ", "content", "x"), tools.InvalidArgs, "channel")
	c.WantError(t, "message", args("chat_id", "43", "content", "x"), tools.InvalidArgs, "channel")
	if len(p.sent) != 0 {
		t.Errorf("refused and delivered: %+v", p.sent)
	}
	p.err = tools.Errorf(tools.PermissionDenied, "you may reach telegram:44")
	c.WantError(t, "message", args("channel", "telegram", "chat_id", "43", "content", "x"), tools.PermissionDenied, "telegram:44")
	p.err = errors.New("the bus is away")
	if _, err := c.Try(t.Context(), "message", args("channel", "a", "content", "x")); !errors.Is(err, p.err) {
		t.Errorf("another error came back as %v", err)
	}
}
