package telegram_test

import (
	"log/slog"
	"net/http"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/telegram/telegramtest"
)

func TestPreviewsAreNotMessages(t *testing.T) {
	p := newPlatform(t)
	c := p.Channel(slog.New(slog.DiscardHandler))
	v, ok := channels.AsPreviewer(c)
	if !ok || v.Previews("7") <= 0 || v.Previews("-7") != 0 || v.Previews("@channel") != 0 {
		t.Fatalf("previews %t", ok)
	}
	to := bus.Address{Channel: "tg", Chat: "7"}
	for _, text := range []string{"<b>One</b>", "<b>One</b> two"} {
		if fades, err := v.Preview(t.Context(), to, "turn", channels.Part{Text: text, Plain: "x"}); err != nil || fades <= 0 {
			t.Errorf("a preview: %v, %v", fades, err)
		}
	}
	// If Telegram can't parse the markup, the text is shown without it.
	if _, err := v.Preview(t.Context(), to, "turn", channels.Part{Text: "<b>One", Plain: "One"}); err != nil {
		t.Error(err)
	}
	if got := p.Drafts(7); len(got) != 3 || got[0] != "One" || got[1] != "One two" || got[2] != "One" || len(p.Sent(7)) != 0 {
		t.Errorf("the person is shown %q, and %+v", got, p.Sent(7))
	}
	if _, err := c.Send(t.Context(), to, channels.Part{Text: "One two three", Plain: "x"}); err != nil || len(p.Drafts(7)) != 0 {
		t.Errorf("after the answer: %v, %q", err, p.Drafts(7))
	}
}

// If a Bot API server has no previews, or the account may not show any, previews are not tried again for a
// while. If one chat refuses, or a rate limit applies, other chats are not affected.
func TestAnAccountWithoutPreviews(t *testing.T) {
	for _, step := range []struct {
		fault telegramtest.Fault
		want  channels.Fault
		still bool
	}{
		{telegramtest.Fault{Status: http.StatusNotFound, Description: "Not Found"}, channels.Rejected, false},
		{telegramtest.Fault{Status: http.StatusBadRequest, Description: "Bad Request: the bot has no topics"}, channels.Rejected, false},
		{telegramtest.Fault{Status: http.StatusForbidden, Description: "Forbidden: bot was blocked by the user"}, channels.Rejected, true},
		{telegramtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 3}, channels.Retry, true},
	} {
		p := newPlatform(t)
		step.fault.Method = "sendMessageDraft"
		p.Fail(step.fault)
		v, _ := channels.AsPreviewer(p.Channel(slog.New(slog.DiscardHandler)))
		_, err := v.Preview(t.Context(), bus.Address{Channel: "tg", Chat: "7"}, "turn", channels.Part{Text: "One", Plain: "One"})
		if got := channels.FaultOf(err); got.Fault != step.want || v.Previews("7") > 0 != step.still {
			t.Errorf("%+v: %v, previews every %v", step.fault, err, v.Previews("7"))
		}
	}
}
