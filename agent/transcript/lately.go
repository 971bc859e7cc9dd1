package transcript

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

// After /new and after a summary, a model is shown what it did in turns that the conversation no longer
// contains: the episodes of the last days. The summary keeps their numbers, so the log alone determines which
// ones. They are at the beginning, which the summary has changed anyway, and stay the same until the next
// summary, so they don't invalidate a provider's cache any further.
const (
	episodeWindow = 7 * 24 * time.Hour
	maxEpisodes   = 20
	// EpisodeTokens is roughly the most tokens that they have, however much room there is.
	EpisodeTokens = 1000
	// episodeFrameBytes is the estimated number of bytes of a line, not counting the texts of the episode.
	episodeFrameBytes = 120
)

const (
	textEpisodesIntro  = "what you did in this conversation before, the newest last; it is shortened, and no request"
	textOutcomeLeftOut = "what came of it, because strangers may have written some of that"
)

// KeepEpisodes returns the numbers of the episodes that a summary keeps. The summary covers the log up to an
// entry and is made at the given time. The episodes are the newest of the last days that together have about
// that many tokens.
func KeepEpisodes(records []journal.Record, covers int64, at time.Time, tokens int) []int64 {
	var kept []int64
	room := min(tokens, EpisodeTokens) * BytesPerToken
	for i := range slices.Backward(records) {
		r := &records[i]
		e := episodeOf(r)
		if e == nil || r.N > covers {
			continue
		}
		if room -= len(e.OneLine()) + episodeFrameBytes; room < 0 || len(kept) == maxEpisodes || at.Sub(r.At()) > episodeWindow {
			break
		}
		kept = append(kept, r.N)
	}
	slices.Reverse(kept)
	return kept
}

// episodeOf returns the episode in a record; nil if there is none.
func episodeOf(r *journal.Record) *sessions.Episode {
	if n, ok := r.Data.(sessions.Notice); ok {
		return n.Episode
	}
	return nil
}

// addKeptEpisodes adds the episodes that the view's summary keeps.
func (r *rendering) addKeptEpisodes(records []journal.Record, v view) {
	var b strings.Builder
	for i := range records {
		rec := &records[i]
		if e := episodeOf(rec); e != nil && v.keeps(rec) {
			writeEpisode(&b, rec, e)
		}
	}
	if b.Len() > 0 {
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: "<" + frames.Lately + " of=\"" + textEpisodesIntro + "\">\n" + b.String() + "</" + frames.Lately + ">"})
	}
}

// writeEpisode writes an episode as a line of attributes, which nobody's words can end. It leaves out what
// strangers may have written: if the next conversation began with that, /new would not end their influence on
// the agent.
func writeEpisode(b *strings.Builder, rec *journal.Record, e *sessions.Episode) {
	b.WriteByte('-')
	frames.WriteAttribute(b, "entry", strconv.FormatInt(e.Entry, 10))
	writeTime(b, rec.At())
	frames.WriteAttribute(b, "from", rec.Person)
	frames.WriteLongAttribute(b, "asked", e.Question)
	frames.WriteLongAttribute(b, "did", e.DeedsInWords(!e.Untrusted))
	if e.Untrusted {
		frames.WriteAttribute(b, "left-out", textOutcomeLeftOut)
	} else {
		frames.WriteLongAttribute(b, "found", e.Answer)
	}
	frames.WriteAttribute(b, "ended", e.State)
	b.WriteByte('\n')
}
