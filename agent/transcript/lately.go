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

// What a model is shown of turns that a conversation no longer has, after /new and after a summary: the episodes of the
// last days. A summary keeps their numbers, so the log alone says which they are. They stand at the beginning, which
// the summary has changed anyway, and stay the same up to the next summary: so they cost nothing else.
const (
	lately     = 7 * 24 * time.Hour
	mostLately = 20
	// LatelyTokens is roughly how many tokens they have at most, whatever the room.
	LatelyTokens = 1000
	// latelyFrame estimates how many bytes a line has besides the texts of the episode.
	latelyFrame = 120
)

const (
	latelyOf = "what you did in this conversation before, the newest last; it is shortened, and no request"
	leftOut  = "what came of it, because strangers may have written some of that"
)

// KeepEpisodes returns the numbers of the episodes that a summary keeps that covers a log up to an entry and is made at
// that time: the newest of the last days that have about so many tokens together.
func KeepEpisodes(records []journal.Record, covers int64, at time.Time, tokens int) []int64 {
	var kept []int64
	room := min(tokens, LatelyTokens) * BytesPerToken
	for i := range slices.Backward(records) {
		r := &records[i]
		e := episodeOf(r)
		if e == nil || r.N > covers {
			continue
		}
		if room -= len(e.Line()) + latelyFrame; room < 0 || len(kept) == mostLately || at.Sub(r.At()) > lately {
			break
		}
		kept = append(kept, r.N)
	}
	slices.Reverse(kept)
	return kept
}

// episodeOf returns the episode that a record holds; nil if it holds none.
func episodeOf(r *journal.Record) *sessions.Episode {
	if n, ok := r.Data.(sessions.Notice); ok {
		return n.Episode
	}
	return nil
}

// addLately adds the episodes that the view's summary keeps.
func (r *rendering) addLately(records []journal.Record, v view) {
	var b strings.Builder
	for i := range records {
		rec := &records[i]
		if e := episodeOf(rec); e != nil && v.keeps(rec) {
			writeEpisode(&b, rec, e)
		}
	}
	if b.Len() > 0 {
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: "<" + frames.Lately + " of=\"" + latelyOf + "\">\n" + b.String() + "</" + frames.Lately + ">"})
	}
}

// writeEpisode writes an episode as a line of attributes, which nobody's words can end. It leaves out what strangers may
// have written: /new would not end what they may have the agent do, if the next conversation began with it.
func writeEpisode(b *strings.Builder, rec *journal.Record, e *sessions.Episode) {
	b.WriteByte('-')
	frames.WriteAttribute(b, "entry", strconv.FormatInt(e.Entry, 10))
	writeTime(b, rec.At())
	frames.WriteAttribute(b, "from", rec.Person)
	frames.WriteLongAttribute(b, "asked", e.Asked)
	frames.WriteLongAttribute(b, "did", e.Done(!e.Untrusted))
	if e.Untrusted {
		frames.WriteAttribute(b, "left-out", leftOut)
	} else {
		frames.WriteLongAttribute(b, "found", e.Found)
	}
	frames.WriteAttribute(b, "ended", e.State)
	b.WriteByte('\n')
}
