package voices_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/agenttest"
	"parley/agent/prices"
	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/voices"
	"parley/sessions/outgoing"
	"parley/tools"
)

// A noting is a channel with voice notes.
type noting struct{ *channelstest.EditingChannel }

func (noting) SendsVoice() bool { return true }

// A rig has voices for three channels: one with voice notes, one with files, and one without either.
type rig struct {
	*voices.Voices
	server *agenttest.Speech
	store  *outgoing.Store
	book   *sqlbook.Book
	config *config.Config
	most   int64
	older  string // why no files may be sent
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{server: &agenttest.Speech{}, most: 1 << 20}
	var err error
	if r.store, err = outgoing.Open(t.TempDir(), 1<<20); err == nil {
		r.book, err = sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.book.Close(), r.store.Close()) })
	r.config = &config.Config{
		Speech:   config.Speech{BaseURL: r.server.Start(t), Model: "tts", Voice: "vera"},
		Channels: map[string]config.Channel{"notes": {Speak: config.SpeakAsked}, "files": {}},
	}
	files := &channelstest.EditingChannel{MemoryChannel: channelstest.NewMemoryChannel()}
	all := map[string]channels.Channel{"notes": noting{files}, "files": files, "texts": channelstest.NewMemoryChannel()}
	r.Voices = voices.New(voices.Config{
		Settings: func() *config.Config { return r.config }, Prices: prices.Shipped, Channel: func(name string) channels.Channel { return all[name] },
		MostBytes: func(string) int64 { return r.most }, MaySend: func(context.Context) (string, error) { return r.older, nil }, Own: func() error { return nil },
		Store: r.store, Book: r.book, Log: slog.New(slog.DiscardHandler),
	})
	return r
}

func reading(channel string) agent.Reading {
	return agent.Reading{Session: "main:" + channel + ":1", Message: "m1#voice", At: bus.Address{Channel: channel, Chat: "1"}, Words: "Hello."}
}

// A recording is stored in the channel's format until its message is sent, and a repeated request finds it.
func TestARecordingIsMadeAndFound(t *testing.T) {
	for channel, want := range map[string]struct {
		name, content string
		voice         bool
	}{"notes": {"voice.ogg", agenttest.OpusHead + "Hello.", true}, "files": {"voice.mp3", agenttest.MP3Head + "Hello.", false}} {
		r := newRig(t)
		if found, sent, err := r.Find(t.Context(), reading(channel)); found != nil || sent || err != nil {
			t.Errorf("at first there is %+v, %v, %v", found, sent, err)
		}
		made, err := r.Record(t.Context(), reading(channel))
		if err != nil || made.Name != want.name || made.Voice != want.voice {
			t.Errorf("made %+v, %v", made, err)
		}
		if content, err := r.store.Read(outgoing.File{Ref: made.Ref, SHA256: made.SHA256, Size: made.Size}); err != nil || string(content) != want.content {
			t.Errorf("kept %q, %v", content, err)
		}
		if all, err := r.store.References(t.Context(), "main:"+channel+":1"); err != nil || len(all) != 1 || all[0].Message != "m1#voice" {
			t.Errorf("the references are %+v, %v", all, err)
		}
		if found, sent, err := r.Find(t.Context(), reading(channel)); err != nil || sent || found == nil || *found != made {
			t.Errorf("found %+v, %v, %v", found, sent, err)
		}
		send := channels.Send{ID: "m1#voice", To: bus.Address{Channel: channel, Chat: "1"}, Parts: []channels.SentPart{{File: true}}}
		if _, _, err := r.book.Begin(t.Context(), send); err != nil {
			t.Fatal(err)
		}
		if found, sent, err := r.Find(t.Context(), reading(channel)); err != nil || !sent || found != nil {
			t.Errorf("once it is sent, found %+v, %v, %v", found, sent, err)
		}
		if n := len(r.server.Asked()); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
	}
}

// A recording that fails returns a text for people and a code for metrics.
func TestWhyThereIsNoRecording(t *testing.T) {
	status := func(n int) func(*rig) {
		return func(r *rig) { r.server.Before = func(agenttest.SpeechRequest) int { return n } }
	}
	for name, c := range map[string]struct {
		make func(r *rig)
		want agent.UnreadError
	}{
		"refused": {status(http.StatusForbidden), agent.UnreadError{Code: "refused", Why: "the speech server refused it"}},
		"broken":  {status(http.StatusInternalServerError), agent.UnreadError{Code: "failed", Why: "the speech server can't be reached, or failed", Paid: true}},
		"busy":    {status(http.StatusTooManyRequests), agent.UnreadError{Code: "failed", Why: "the speech server can't be reached, or failed"}},
		"not there": {func(r *rig) {
			gone := httptest.NewServer(http.NotFoundHandler())
			gone.Close()
			r.config.Speech.BaseURL = gone.URL
		}, agent.UnreadError{Code: "failed", Why: "the speech server can't be reached, or failed"}},
		"too large":     {func(r *rig) { r.most = 3 }, agent.UnreadError{Code: "no_room", Why: "the recording is too large for this channel", Paid: true}},
		"older release": {func(r *rig) { r.older = "I can't send files right now: an older process is running" }, agent.UnreadError{Code: "failed", Why: "I can't send files right now: an older process is running"}},
		"full": {func(r *rig) {
			if _, err := r.store.Keep(t.Context(), "main:notes:1", "other", strings.NewReader(strings.Repeat("x", 1<<20)), 1<<20); err != nil {
				t.Error(err)
			}
		}, agent.UnreadError{Code: "no_room", Why: "too much is still waiting to be sent here", Paid: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c.make(r)
			_, err := r.Record(t.Context(), reading("notes"))
			got, ok := errors.AsType[*agent.UnreadError](err)
			if !ok || got.Code != c.want.Code || got.Why != c.want.Why || got.Paid != c.want.Paid {
				t.Errorf("got %#v, want %#v", err, c.want)
			}
		})
	}
}

// A server that takes too long yields an UnreadError with the code "timeout". A shutdown yields context.Canceled.
func TestAServerThatTakesTooLong(t *testing.T) {
	r := newRig(t)
	asked, over := make(chan struct{}, 2), make(chan struct{})
	r.server.Before = func(agenttest.SpeechRequest) int { asked <- struct{}{}; <-over; return http.StatusTeapot }
	t.Cleanup(func() { close(over) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Record(ctx, reading("notes")); !isUnread(err, "timeout") {
		t.Errorf("after its time: %v", err)
	}
	<-asked
	ended, end := context.WithCancel(t.Context())
	go func() { <-asked; end() }()
	if _, err := r.Record(ended, reading("notes")); !errors.Is(err, context.Canceled) || isUnread(err, "timeout") {
		t.Errorf("after the end: %v", err)
	}
}

func isUnread(err error, code string) bool {
	got, ok := errors.AsType[*agent.UnreadError](err)
	return ok && got.Code == code
}

func TestWhoCanListen(t *testing.T) {
	r := newRig(t)
	for channel, want := range map[string][2]bool{"notes": {true, true}, "files": {true, false}, "texts": {false, false}, "none": {false, false}} {
		at := bus.Address{Channel: channel, Chat: "1"}
		if got := [2]bool{r.Reaches(at), r.AnswersSpeech(at)}; got != want {
			t.Errorf("%s: %v, want %v", channel, got, want)
		}
		if deaf := r.Deaf(tools.Call{Address: at.String()}) != ""; deaf == want[0] {
			t.Errorf("%s: deaf is %v", channel, deaf)
		}
	}
	r.config.Speech = config.Speech{}
	if why := r.Deaf(tools.Call{Address: "notes:1"}); !strings.Contains(why, "no speech") {
		t.Errorf("without a server: %q", why)
	}
	if text, marks := r.Mark("speak", []byte(`{"text":"Hi."}`)); text != "Hi." || !marks {
		t.Errorf("marked %q, %v", text, marks)
	}
	if _, marks := r.Mark("message", []byte(`{"text":"Hi."}`)); marks {
		t.Error("another tool marks something")
	}
}

// load returns the configuration in a file with this text.
func load(t *testing.T, text string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "parley.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{File: file, Home: t.TempDir(), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The price of a recording comes from the settings or from the list of prices. If a budget applies, the price must be
// known.
func TestWhatAReadingCosts(t *testing.T) {
	list, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	const budget, model = "\n[budget]\nday = 5\n", "[model]\nname = \"gpt-5-mini\"\napi_key = \"k\"\n"
	for speech, want := range map[string]struct {
		micro   int64 // the price of a thousand characters, in millionths
		known   bool
		refused string
	}{
		"api_key = \"k\"":                                               {15_000, true, ""},
		"api_key = \"k\"\nmodel = \"tts-1-hd\"":                         {30_000, true, ""},
		"api_key = \"k\"\nmodel = \"gpt-4o-mini-tts\"":                  {18_600, true, ""},
		"api_key = \"k\"\nmodel = \"other\"":                            {0, false, "the price of other isn't known"},
		"api_key = \"k\"\nmodel = \"other\"\nprice_input = 20":          {20_000, true, ""},
		"api_key = \"k\"\nprice_input = 0":                              {0, true, "0 is for a server on this machine"},
		"base_url = \"http://127.0.0.1:1/v1\"\nmodel = \"kokoro\"":      {0, true, ""},
		"base_url = \"http://127.0.0.1:1/v1\"\nprice_input = 1":         {1_000, true, ""},
		"base_url = \"https://tts.example/v1\"\napi_key = \"k\"":        {15_000, true, ""},
		"base_url = \"https://tts.example/v1\"\nmodel = \"unheard-of\"": {0, false, "the price of unheard-of isn't known"},
	} {
		r := newRig(t)
		r.config = load(t, model+"[speech]\n"+speech+budget)
		if _, micro, known := r.Price(strings.Repeat("é", 1000)); micro != want.micro || known != want.known {
			t.Errorf("%s costs %d, %v, want %d, %v", speech, micro, known, want.micro, want.known)
		}
		err := voices.Check(r.config, list)
		if want.refused == "" && err != nil || want.refused != "" && !strings.Contains(fmt.Sprint(err), want.refused) {
			t.Errorf("%s is refused with %v, want %q", speech, err, want.refused)
		}
		if load, reload := r.Load(t.Context()) != nil, refuses(r, r.config); load != (err != nil) || reload != load {
			t.Errorf("%s: refused at the start %v, at a reload %v", speech, load, reload)
		}
	}
	if err := voices.Check(load(t, model+budget), list); err != nil {
		t.Errorf("without a voice: %v", err)
	}
}

// A Chinese, Japanese or Korean character takes as long to say as three others, and costs as much.
func TestWideCharactersCostMore(t *testing.T) {
	r := newRig(t)
	for model, want := range map[string]int64{"tts-1": 15_000, "gpt-4o-mini-tts": 54_600} {
		r.config = load(t, "[speech]\napi_key = \"k\"\nmodel = \""+model+"\"\n")
		for _, c := range []string{"語", "か", "カ", "말"} {
			if _, micro, known := r.Price(strings.Repeat(c, 1000)); micro != want || !known {
				t.Errorf("%s costs %d with %s, want %d", c, micro, model, want)
			}
		}
	}
}

func refuses(r *rig, next *config.Config) bool {
	_, err := r.Reload(next)
	return err != nil
}
