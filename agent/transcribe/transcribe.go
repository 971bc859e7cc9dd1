// Package transcribe turns recordings of speech into text, using a server that speaks OpenAI's transcription
// protocol.
package transcribe

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"parley/agent/audio"
)

const (
	tryTimeout = 2 * time.Minute // of one try
	maxTries   = 3
	// maxWords limits the text of one recording, in bytes.
	maxWords = 64 << 10
)

// ErrRefused is returned if a server doesn't accept the recording; trying again won't help.
var ErrRefused = errors.New("the server refused the recording")

// Config says which server and model transcribe the recordings.
type Config struct {
	BaseURL string // "" is OpenAI's
	APIKey  string
	Model   string
}

// A Transcriber turns recordings into text.
type Transcriber struct {
	client *openai.Client
	model  string
}

// New makes a Transcriber. It does not contact the server yet.
func New(c Config) *Transcriber {
	return &Transcriber{client: audio.NewClient(c.BaseURL, c.APIKey), model: c.Model}
}

// Words returns the words spoken in a recording. name is the recording's file name; its extension says the
// format. If the server fails, Words tries a few times. Its errors contain neither the words nor the server's
// key.
func (t *Transcriber) Words(ctx context.Context, name string, recording []byte) (string, error) {
	for try := 1; ; try++ {
		words, err := t.try(ctx, name, recording)
		if err == nil || errors.Is(err, ErrRefused) || ctx.Err() != nil || try == maxTries {
			return words, err
		}
		select {
		case <-time.After(time.Duration(try) * time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// try sends a recording to the server once, and returns the words in it, or the first maxWords bytes of them.
func (t *Transcriber) try(ctx context.Context, name string, recording []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	r, err := t.client.CreateTranscription(ctx, openai.AudioRequest{Model: t.model, FilePath: name, Reader: bytes.NewReader(recording), Format: openai.AudioResponseFormatJSON})
	if err != nil {
		if status := audio.Status(err); status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout {
			return "", ErrRefused
		}
		return "", errors.New("the server did not answer")
	}
	words := strings.TrimSpace(strings.ToValidUTF8(r.Text, "\uFFFD"))
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + " …"
	}
	return words, nil
}
