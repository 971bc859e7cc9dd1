// Package speech turns texts into recordings of speech, using a server that speaks OpenAI's protocol for it.
package speech

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/sashabaranov/go-openai"

	"parley/agent/audio"
)

// MostCharacters is how many characters a text may have: OpenAI's server accepts no more.
const MostCharacters = 4096

const (
	maxTries  = 2 // only what the server has certainly not done is tried again
	retryWait = time.Second
	maxBytes  = 20 << 20
)

// Errors that say why there is no recording. None of them contains the text or the server's key.
var (
	// ErrRefused is returned if a server doesn't accept the request; trying again won't help.
	ErrRefused = errors.New("the server refused the text")
	// ErrBusy is returned if a server has certainly made no recording, but may make one later.
	ErrBusy = errors.New("the server can't do it now")
	// ErrNoAudio is returned if the server's answer is not a recording.
	ErrNoAudio = errors.New("the server's answer is not a recording")
)

// A Format is a format of recordings.
type Format string

// The formats that servers are asked for.
const (
	// Opus is Ogg with Opus, the format of voice notes.
	Opus Format = "opus"
	// MP3 plays nearly everywhere.
	MP3 Format = "mp3"
)

// Config says which server and model speak, and with which voice.
type Config struct {
	BaseURL string // "" is OpenAI's
	APIKey  string
	Model   string
	Voice   string
}

// A Speaker reads texts aloud.
type Speaker struct {
	client       *openai.Client
	model, voice string
}

// New makes a Speaker. It does not contact the server yet.
func New(c Config) *Speaker {
	return &Speaker{client: audio.NewClient(c.BaseURL, c.APIKey), model: c.Model, voice: c.Voice}
}

// Record returns a recording of a text of at most MostCharacters, in that format unless the server only knows another one:
// Extension tells. ctx limits how long it may take. If the server is certain not to have made a recording, Record tries
// once more.
func (s *Speaker) Record(ctx context.Context, text string, as Format) ([]byte, error) {
	for try := 1; ; try++ {
		recording, err := s.try(ctx, text, as)
		if !errors.Is(err, ErrBusy) || try == maxTries {
			return recording, err
		}
		select {
		case <-time.After(retryWait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try asks the server once. It returns ErrNoAudio for an answer that is no audio, or more than maxBytes.
func (s *Speaker) try(ctx context.Context, text string, as Format) (recording []byte, err error) {
	answer, err := s.client.CreateSpeech(ctx, openai.CreateSpeechRequest{
		Model: openai.SpeechModel(s.model), Input: text, Voice: openai.SpeechVoice(s.voice), ResponseFormat: openai.SpeechResponseFormat(as),
	})
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer func() { _ = answer.Close() }() // it was only read
	recording, err = io.ReadAll(io.LimitReader(answer, maxBytes+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, errors.New("the server's answer broke off")
	case len(recording) > maxBytes:
		return nil, fmt.Errorf("%w: it has more than %d MB", ErrNoAudio, maxBytes>>20)
	case Extension(recording) == "":
		return nil, ErrNoAudio
	}
	return recording, nil
}

// failure returns the error for a request that failed, without the server's own words.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && (e.Op == "dial" || e.Op == "proxyconnect") {
		return fmt.Errorf("%w: there is no connection to it", ErrBusy) // so it knows nothing of the request
	}
	switch status := audio.Status(err); {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return fmt.Errorf("%w: HTTP status %d", ErrBusy, status)
	case status >= 500, status == http.StatusRequestTimeout:
		return fmt.Errorf("the server failed: HTTP status %d", status)
	case status >= 300:
		return fmt.Errorf("%w: HTTP status %d", ErrRefused, status)
	}
	return errors.New("the server did not answer")
}

// Extension returns the extension of a recording's file name, such as ".mp3", which its content tells; "" if it is not a
// recording.
func Extension(recording []byte) string {
	has := func(at int, magic string) bool {
		return len(recording) >= at+len(magic) && string(recording[at:at+len(magic)]) == magic
	}
	switch {
	case IsOpus(recording):
		return ".ogg"
	case has(0, "ID3"), len(recording) > 2 && recording[0] == 0xFF && recording[1]&0xE0 == 0xE0 && recording[1]&0x06 != 0:
		return ".mp3"
	case has(0, "RIFF") && has(8, "WAVE"):
		return ".wav"
	case has(0, "fLaC"):
		return ".flac"
	case has(4, "ftyp"):
		return ".m4a"
	case has(0, "OggS"):
		return ".ogg"
	}
	return ""
}

// firstPage is how many bytes of an Ogg file at least contain the beginning of its first stream.
const firstPage = 64

// IsOpus reports whether a recording is Ogg with Opus, as platforms want voice notes.
func IsOpus(recording []byte) bool {
	return bytes.HasPrefix(recording, []byte("OggS")) && bytes.Contains(recording[:min(len(recording), firstPage)], []byte("OpusHead"))
}
