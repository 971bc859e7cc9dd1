package chaos

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/bus"
	"parley/sessions"
	"parley/tools/speak"
)

// This file makes the agent read text aloud. Each request has a text of its own.

// spokenText returns the words that are read aloud for a request.
func (s request) spokenText() string { return "said " + s.mark() }

// startSpeech starts a speech server that fails now and then, and returns the settings for it.
func startSpeech(t *testing.T) (settings string) {
	t.Helper()
	s := &agenttest.Speech{Before: func(agenttest.SpeechRequest) int {
		if rand.IntN(20) == 0 {
			return http.StatusInternalServerError
		}
		return 0
	}}
	return "[speech]\nbase_url = \"" + s.Start(t) + "\"\n"
}

// A reading is a recording that must be sent for a turn.
type reading struct {
	turn  *turnSeen
	send  string
	entry string // the entry that stands for the recording's file
}

// unreadExcuse is what the bot tells people if it could not read something aloud.
const unreadExcuse = "I couldn't read that aloud"

// addReading records the recording that must be sent for a completed turn. It contains exactly the words that the
// turn's last successful speak call has marked.
func (l *logAudit) addReading(turn string, t *turnSeen, done sessions.TurnDone) {
	text := ""
	for _, c := range t.spoken {
		if c.results > 0 && c.code == "" {
			text = speak.Marked(c.use.Args) + "."
		}
	}
	if want := text != "" && done.State == sessions.TurnCompleted; done.Aloud != want {
		l.addViolation("%s: that turn %s is read aloud is %v, want %v", l.key, turn, done.Aloud, want)
	}
	if !done.Aloud {
		return
	}
	name, content := "voice.mp3", agenttest.MP3Head
	if at, err := bus.ParseAddress(l.address); err == nil && at.Channel == "telegram" {
		name, content = "voice.ogg", agenttest.OpusHead
	}
	send := turn + "#voice"
	l.mayLeave[send] = true // a paused process may store the recording after the next process has sent its own
	l.readings[l.address] = append(l.readings[l.address], reading{t, send, fileEntry(name, []byte(content+text))})
}

// addUnread records that, according to the log, the answer of a turn could not be read aloud.
func (l *logAudit) addUnread(e sessions.Entry) {
	n, err := sessions.Decode[sessions.Notice](e)
	if err != nil {
		l.addViolation("%s: notice %d cannot be read: %v", l.key, e.N, err)
	}
	if n.Code == sessions.NoticeUnread {
		l.turns[e.Turn].unread = true
	}
}

// isReading reports whether a message is a recording, or an excuse for a missing one, at an address where something was
// to be read aloud. checkReadings counts these messages.
func (a *audit) isReading(address, text string) bool {
	if strings.Contains(text, unreadExcuse) {
		return len(a.readings[address]) > 0
	}
	for _, r := range a.readings[address] {
		if r.entry == text {
			return true
		}
	}
	return false
}

// checkReadings checks that each answer that was to be read aloud has one recording. If the log says that there is no
// recording, people must have been told so once. An interrupted send may have been repeated.
func (a *audit) checkReadings() {
	for address, all := range a.readings {
		sent, excuses := map[string]int{}, 0
		for _, m := range a.storm.sentTo(address) {
			sent[m.text]++
			if strings.Contains(m.text, unreadExcuse) {
				excuses++
			}
		}
		unread, most := 0, 0
		for _, r := range all {
			n, interrupted := sent[r.entry], a.interruptedBy[r.send]
			switch {
			case r.turn.unread && n == 0:
				unread++
				most += 1 + interrupted
			case !r.turn.unread && n > 0 && n <= 1+interrupted:
				a.recordings++
				a.repeats += n - 1
			default:
				a.addViolation("%s has the recording of %s %d times, with %d sends interrupted, and the log says unread: %v", address, r.send, n, interrupted, r.turn.unread)
			}
		}
		if excuses < unread || excuses > most {
			a.addViolation("%s was told %d times that something was not read aloud, want %d to %d", address, excuses, unread, most)
		}
		a.unread += unread
		a.repeats += max(0, excuses-unread)
	}
}
