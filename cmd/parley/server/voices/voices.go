// Package voices has the operator's service read agents' answers aloud, and keeps the recordings until they are sent.
//
// voices.go is the voice of agents (agent.Voice), and prices.go knows what it costs.
package voices

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"parley/agent"
	"parley/agent/openai"
	"parley/agent/prices"
	"parley/agent/speech"
	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/cmd/parley/config"
	"parley/sessions/outgoing"
	"parley/tools"
	"parley/tools/speak"
)

// These are the model and the voice that are used if the operator names none. Local servers know these names, too.
const (
	defaultModel = "tts-1"
	defaultVoice = "alloy"
)

// Config holds what a Voices needs from the rest of the program.
type Config struct {
	Settings func() *config.Config
	// Prices returns the price list of the program's start.
	Prices func() (prices.List, error)
	// Channel returns the channel with a name; nil if there is none.
	Channel func(name string) channels.Channel
	// MostBytes returns the size of the largest file that may be sent to a channel, in bytes.
	MostBytes func(channel string) int64
	// MaySend returns why no message may contain files now, as a sentence without its period, or "" if messages may.
	// With an error it returns a sentence, too.
	MaySend func(ctx context.Context) (why string, err error)
	// Own makes the owner of the workspaces the owner of the stored files.
	Own   func() error
	Store *outgoing.Store
	Book  channels.Sends
	Log   *slog.Logger
}

// Voices read answers aloud. They are the agent.Voice of all agents.
type Voices struct {
	cfg      Config
	renderer *markup.Renderer
}

var (
	_ agent.Voice    = (*Voices)(nil)
	_ speak.Listener = (*Voices)(nil)
)

// New returns a Voices. It contacts no server yet.
func New(cfg Config) *Voices { return &Voices{cfg, markup.New()} }

// Server returns the client of the service that reads texts aloud: the one in these settings, or else OpenAI's.
func Server(s config.Speech) *speech.Speaker {
	return speech.New(speech.Config{BaseURL: s.BaseURL, APIKey: string(s.APIKey), Model: modelOf(s), Voice: cmp.Or(s.Voice, defaultVoice)})
}

// Describe returns the name of the model that reads, and of its server, for people.
func Describe(s config.Speech) string {
	return modelOf(s) + " at " + cmp.Or(s.BaseURL, openai.DefaultURL)
}

// modelOf returns the name of the model that reads.
func modelOf(s config.Speech) string { return cmp.Or(s.Model, defaultModel) }

// Reaches implements agent.Voice: recordings reach people on channels that accept files.
func (v *Voices) Reaches(at bus.Address) bool {
	ch := v.cfg.Channel(at.Channel)
	if ch == nil {
		return false
	}
	_, can := channels.AsFileSender(ch)
	return can
}

// AnswersSpeech implements agent.Voice.
func (v *Voices) AnswersSpeech(at bus.Address) bool {
	return v.cfg.Settings().Channels[at.Channel].Speak == config.SpeakAsked
}

// Deaf implements speak.Listener: it returns why recordings don't reach the conversation of a call, or "".
func (v *Voices) Deaf(call tools.Call) string {
	at, err := bus.ParseAddress(call.Address)
	switch {
	case !v.cfg.Settings().Speech.Reads():
		return "the operator has set up no speech"
	case err != nil || !v.Reaches(at):
		return "people get no recordings in this conversation"
	}
	return ""
}

// Mark implements agent.Voice.
func (v *Voices) Mark(tool string, args json.RawMessage) (text string, marks bool) {
	if tool != speak.Name {
		return "", false
	}
	return speak.Marked(args), true
}

// Words implements agent.Voice.
func (v *Voices) Words(text string) (words string, whole bool) {
	return v.renderer.RenderAloud(text, speech.MostCharacters)
}

// Find implements agent.Voice. It looks into the book first, because the files of a message that was sent are no
// longer stored.
func (v *Voices) Find(ctx context.Context, r agent.Reading) (found *bus.FileRef, sent bool, err error) {
	switch _, err := v.cfg.Book.Lookup(ctx, r.Message); {
	case err == nil:
		return nil, true, nil
	case !errors.Is(err, channels.ErrNoSend):
		return nil, false, err
	}
	kept, err := v.cfg.Store.Kept(r.Session, r.Message)
	if err != nil {
		return nil, false, v.unkept(r, err)
	}
	for _, f := range kept {
		content, err := v.cfg.Store.Read(f)
		if err != nil || speech.Extension(content) == "" {
			continue // the file was removed, or is damaged
		}
		ref, err := v.refer(r, f, content)
		if errors.Is(err, outgoing.ErrMissing) {
			continue
		}
		return &ref, false, err
	}
	return nil, false, nil
}

// Record implements agent.Voice. On a platform with voice notes it uses their format, and elsewhere one that every
// platform plays.
func (v *Voices) Record(ctx context.Context, r agent.Reading) (bus.FileRef, error) {
	if why, err := v.cfg.MaySend(ctx); ctx.Err() != nil {
		return bus.FileRef{}, unread(ctx.Err())
	} else if why != "" {
		return bus.FileRef{}, &agent.UnreadError{Code: "failed", Why: why, Err: err}
	}
	as := speech.MP3
	if ch := v.cfg.Channel(r.At.Channel); ch != nil && channels.SendsVoice(ch) {
		as = speech.Opus
	}
	content, err := Server(v.cfg.Settings().Speech).Record(ctx, r.Words, as)
	if err != nil {
		return bus.FileRef{}, unread(err)
	}
	// Keep what was paid for, even if the time is over.
	kept, err := v.cfg.Store.Keep(context.WithoutCancel(ctx), r.Session, r.Message, bytes.NewReader(content), v.cfg.MostBytes(r.At.Channel))
	if err != nil {
		return bus.FileRef{}, v.unkept(r, err)
	}
	return v.refer(r, kept, content)
}

// refer records that a message needs a stored recording, and returns the file as the message names it.
func (v *Voices) refer(r agent.Reading, f outgoing.File, content []byte) (bus.FileRef, error) {
	if err := v.cfg.Store.Refer(outgoing.Reference{Ref: f.Ref, Session: r.Session, Message: r.Message}); err != nil {
		return bus.FileRef{}, v.unkept(r, err)
	}
	if err := v.cfg.Own(); err != nil {
		return bus.FileRef{}, v.unkept(r, err)
	}
	return bus.FileRef{Name: "voice" + speech.Extension(content), Size: f.Size, SHA256: f.SHA256, Ref: f.Ref, Voice: speech.IsOpus(content)}, nil
}

// unread returns the error for a recording that the service did not make. If a request was cut off, nobody knows
// whether the service did the work.
func unread(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &agent.UnreadError{Code: "timeout", Why: textTooSlow, Paid: true, Err: err}
	case errors.Is(err, speech.ErrRefused):
		return &agent.UnreadError{Code: "refused", Why: textRefused, Err: err}
	case errors.Is(err, speech.ErrBusy):
		return &agent.UnreadError{Code: "failed", Why: textFailed, Err: err}
	}
	return &agent.UnreadError{Code: "failed", Why: textFailed, Paid: true, Err: err}
}

// unkept returns the error for a recording that was not stored.
func (v *Voices) unkept(r agent.Reading, err error) error {
	switch {
	case errors.Is(err, outgoing.ErrFull):
		return &agent.UnreadError{Code: "no_room", Why: textNoRoom, Paid: true, Err: err}
	case errors.Is(err, outgoing.ErrTooLarge):
		return &agent.UnreadError{Code: "no_room", Why: textTooLarge, Paid: true, Err: err}
	}
	v.cfg.Log.Error("a recording of an answer cannot be stored", slog.String("session", r.Session), slog.Any("error", err))
	return &agent.UnreadError{Code: "failed", Why: textNotStored, Paid: true, Err: err}
}
