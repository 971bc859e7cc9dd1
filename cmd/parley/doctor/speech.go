package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/agent/speech"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/voices"
)

// checkSpeech has one word read aloud. It returns no finding if no model for speech is configured.
func checkSpeech(ctx context.Context, cfg *config.Config) []Finding {
	if !cfg.Speech.Reads() {
		return nil
	}
	f := Finding{Part: "speech", State: fine}
	who := voices.Describe(cfg.Speech)
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	recording, err := voices.Server(cfg.Speech).Record(ctx, textReadThis, speech.Opus)
	switch {
	case ctx.Err() != nil:
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf(textNoAnswer, who, checkTimeout)+textUnread, textCheckServer
	case errors.Is(err, speech.ErrRefused):
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf("%s: %v%s", who, err, textUnread), textSpeechRemedy
	case err != nil:
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf("%s: %v%s", who, err, textUnread), textSpeechServer
	case !speech.IsOpus(recording):
		f.State, f.Detail = note, fmt.Sprintf(textNotOpus, who, speech.Extension(recording))
	default:
		f.Detail = fmt.Sprintf(textReads, who, time.Since(began).Milliseconds())
	}
	return []Finding{f}
}
