package discord_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

func TestFilesOfAMessage(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	picture, voice := []byte("\x89PNG picture"), bytes.Repeat([]byte("opus"), 1000)
	l.server.Post("11", "501", map[string]any{"content": "look", "attachments": []any{
		l.server.AddFile("../etc/a\nb.png", "image/png", picture), l.server.AddFile("talk.mp4", "video/mp4", []byte("v")), l.server.AddFile("list.pdf", "application/pdf", []byte("p")),
	}})
	in := l.waitFor(1)[0]
	if len(in.Attachments) != 3 || in.Attachments[0].Kind != bus.Picture || in.Attachments[0].Name != "a b.png" || in.Attachments[0].Type != "image/png" ||
		in.Attachments[0].Size != int64(len(picture)) || in.Attachments[1].Kind != bus.Video || in.Attachments[2].Kind != bus.Document {
		t.Fatalf("a message with files became %+v", in)
	}
	if strings.Contains(in.Attachments[0].Ref, "http") || strings.Contains(in.Attachments[0].Ref, "hm=") {
		t.Errorf("the reference %q opens the file to whoever has it", in.Attachments[0].Ref)
	}
	l.server.Post("11", "501", map[string]any{"content": "", "flags": 1 << 13, "attachments": []any{l.server.AddFile("voice-message.ogg", "audio/ogg", voice)}})
	spoken := l.waitFor(2)[1]
	if len(spoken.Attachments) != 1 || spoken.Attachments[0].Kind != bus.Voice {
		t.Fatalf("a voice message became %+v", spoken)
	}
	// Workers fetch files with a channel that does not receive.
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, SendsOnly: true})
	fetch := func(a bus.Attachment, most int) ([]byte, error) {
		body, err := c.Fetch(t.Context(), in.At, a, int64(most))
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(body)
		return data, errors.Join(err, body.Close())
	}
	if got, err := fetch(in.Attachments[0], len(picture)); err != nil || !bytes.Equal(got, picture) {
		t.Errorf("the picture: %q, %v", got, err)
	}
	if got, err := fetch(spoken.Attachments[0], len(voice)-1); !errors.Is(err, channels.ErrTooLarge) || len(got) != len(voice)-1 {
		t.Errorf("of a file that is too large there are %d bytes, %v", len(got), err)
	}
	for _, ref := range []string{"", "x/y/z", "1/2", "11/1/1", "../../1"} {
		if _, err := fetch(bus.Attachment{Ref: ref}, 10); requireSendError(t, err).Fault != channels.Rejected {
			t.Errorf("%q: %v", ref, err)
		}
	}
	l.server.Fail("GET files", "", 1, discordtest.Answer(503, "busy"))
	if _, err := fetch(in.Attachments[0], 100); requireSendError(t, err).Fault != channels.Retry {
		t.Errorf("where Discord is away: %v", err)
	}
	gone := l.server.AddFile("gone.txt", "text/plain", nil)
	gone["url"] = strings.TrimSuffix(l.fake.URL, "/api/v9") + "/files/1?hm=2"
	elsewhere := l.server.AddFile("elsewhere.txt", "text/plain", nil)
	elsewhere["url"] = "http://127.0.0.1:1/files/1"
	l.server.Post("11", "501", map[string]any{"content": "", "attachments": []any{gone, elsewhere}})
	for _, a := range l.waitFor(3)[2].Attachments {
		if _, err := fetch(a, 10); requireSendError(t, err).Fault != channels.Rejected {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}

func TestFilesOfAForwardedMessage(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	l.server.Post("11", "501", map[string]any{"content": "", "message_snapshots": []any{
		map[string]any{"message": map[string]any{"content": "this", "timestamp": "2024-01-01T00:00:00Z", "attachments": []any{l.server.AddFile("a.txt", "text/plain", []byte("abc"))}}},
	}})
	in := l.waitFor(1)[0]
	if len(in.Attachments) != 1 || len(in.Quotes) != 1 || !strings.Contains(in.Quotes[0].Text, "this") {
		t.Fatalf("became %+v", in)
	}
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL})
	body, err := c.Fetch(t.Context(), in.At, in.Attachments[0], 10)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body); err != nil || string(got) != "abc" {
		t.Errorf("it is %q, %v", got, err)
	}
}
