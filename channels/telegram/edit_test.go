package telegram_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/telegram/telegramtest"
)

func TestEdit(t *testing.T) {
	r := newRig(t)
	id, err := r.Send(t.Context(), address("5"), textPart("<b>one</b>"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []channels.Part{textPart("<b>two</b>"), textPart("<b>two</b>"), {Text: "<what>3</b>", Plain: "3 <b"}} {
		if err := r.Edit(t.Context(), address("5"), id, p); err != nil {
			t.Errorf("edit to %q: %v", p.Text, err)
		}
	}
	sent := r.server.Sent(5)
	if len(sent) != 1 || sent[0].Text != "3 <b" || sent[0].Edited.IsZero() || strings.Join(sent[0].Earlier, " ") != "one two" {
		t.Errorf("the chat shows %+v", sent)
	}
}

func TestImpossibleEditsAreRejected(t *testing.T) {
	r := newRig(t)
	theirs := r.server.Say(5, 5, "hello")
	file, err := r.SendFile(t.Context(), address("5"), bus.File{Name: "f", Data: []byte("x")}, channels.Part{})
	if err != nil || theirs != 1 {
		t.Fatal(theirs, err)
	}
	for _, c := range []struct{ id, code string }{
		{"999", "edit_not_found"}, {"1", "not_editable"}, {file, "not_editable"}, {"x", "bad_id"},
	} {
		err := r.Edit(t.Context(), address("5"), c.id, textPart("new"))
		if e := requireSendError(t, err); e.Fault != channels.Rejected || e.Code != c.code {
			t.Errorf("message %s: got %v, want %s", c.id, e, c.code)
		}
	}
}

func TestSendFile(t *testing.T) {
	r := newRig(t)
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(i * i)
	}
	first, err := r.Send(t.Context(), address("-7"), textPart("report"))
	if err != nil {
		t.Fatal(err)
	}
	to := bus.Address{Channel: "tg", Chat: "-7", Thread: "1"}
	if _, err = r.SendFile(t.Context(), to, bus.File{Name: "größe 1.bin", Data: data}, channels.Part{Text: "<b>a</b> &amp; b", Plain: "a & b", Under: first}); err != nil {
		t.Fatal(err)
	}
	if _, err = r.SendFile(t.Context(), to, bus.File{Data: data[:1]}, channels.Part{}); err != nil {
		t.Fatal(err)
	}
	sent := r.server.Sent(-7)
	got := sent[1]
	if got.Text != "a & b" || got.ReplyTo != 1 || got.File == nil || got.File.Name != "größe 1.bin" || string(got.File.Data) != string(data) {
		t.Errorf("sent %q under %d with %d bytes", got.Text, got.ReplyTo, got.File.Size)
	}
	if bare := sent[2]; bare.Text != "" || bare.File.Name != "file" || bare.File.Size != 1 {
		t.Errorf("sent %+v", bare)
	}
	for name, c := range map[string]struct {
		data []byte
		text string
	}{
		"empty_file": {nil, "x"},
		"too_long":   {data, strings.Repeat("x", r.CaptionLength()+1)},
	} {
		_, err := r.SendFile(t.Context(), to, bus.File{Name: "f", Data: c.data}, channels.Part{Text: c.text})
		if e := requireSendError(t, err); e.Fault != channels.Rejected || e.Code != name {
			t.Errorf("got %v, want %s", e, name)
		}
	}
	if _, err := r.SendFile(t.Context(), to, bus.File{Name: "f", Data: data}, channels.Part{Text: strings.Repeat("x", r.CaptionLength())}); err != nil {
		t.Errorf("the longest caption: %v", err)
	}
}

// TestFaultsOfEditsAndFiles checks that failed edits and files have the same faults as failed sends.
func TestFaultsOfEditsAndFiles(t *testing.T) {
	r := newRig(t)
	if _, err := r.Send(t.Context(), address("5"), textPart("one")); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(context.Context) error{
		"editMessageText": func(ctx context.Context) error { return r.Edit(ctx, address("5"), "1", textPart("two")) },
		"sendDocument": func(ctx context.Context) error {
			_, err := r.SendFile(ctx, address("5"), bus.File{Name: "f", Data: []byte("x")}, textPart("look"))
			return err
		},
	}
	for _, c := range []struct {
		fault telegramtest.Fault
		want  channels.Fault
		code  string
	}{
		{telegramtest.Fault{Status: 429, RetryAfter: 7}, channels.Retry, "429"},
		{telegramtest.Fault{Status: 403, Description: "Forbidden: bot was blocked by the user"}, channels.Rejected, "blocked"},
		{telegramtest.Fault{Status: 413, Description: "Request Entity Too Large"}, channels.Rejected, "too_large"},
		{telegramtest.Fault{Status: 413, Raw: "<html>too large</html>"}, channels.Rejected, "too_large"},
		{telegramtest.Fault{Status: 401, Description: "Unauthorized"}, channels.Stop, "401"},
		{telegramtest.Fault{Status: 400, MigrateTo: -100777, Description: "Bad Request: group chat was upgraded"}, channels.Retry, "migrated"},
		{telegramtest.Fault{Status: 502, Raw: "<html></html>"}, channels.Unknown, "http_502"},
		{telegramtest.Fault{Act: telegramtest.Cut}, channels.Unknown, "cut_off"},
		{telegramtest.Fault{Act: telegramtest.Stall}, channels.Unknown, "cut_off"},
	} {
		for method, call := range calls {
			c.fault.Method, c.fault.Times = method, 1
			r.server.Fail(c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			e := requireSendError(t, call(ctx))
			cancel()
			if e.Fault != c.want || e.Code != c.code {
				t.Errorf("%s with %+v: got %v, want %s %s", method, c.fault, e, c.want, c.code)
			}
		}
	}
	for method, call := range calls {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s after all that: %v", method, err)
		}
	}
}
