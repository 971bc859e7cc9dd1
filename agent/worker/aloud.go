package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"parley/agent"
	"parley/agent/journal"
	"parley/agent/model"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

const (
	// readWithin limits how long a recording may take. The text of the answer is sent before.
	readWithin = 30 * time.Second
	// maxRecordings is how often a recording is begun: one that was cut off is made once more, and not each time that a
	// process dies.
	maxRecordings = 2
)

// markedText returns the text that is read aloud with an answer, whether that is the answer's own, and whether the agent has
// marked it. If it has done so more than once, its last call counts.
func markedText(v agent.Voice, t *turn.Turn, answer string) (text string, own, marked bool) {
	for _, step := range t.Steps {
		for _, c := range step.Calls {
			if c.Result == nil || c.Result.Code != "" {
				continue
			}
			args := c.Use.Args
			if c.Started.Args != nil {
				args = c.Started.Args
			}
			if given, marks := v.Mark(c.Use.Name, args); marks {
				text, marked = given, true
			}
		}
	}
	if text == "" {
		return answer, true, marked
	}
	return text, false, true
}

// isAloud reports whether a turn's answer is read aloud: because the agent has marked it, or because the turn answers a
// voice message on a channel where that is wanted.
func (r *turnRun) isAloud(t *turn.Turn, answer string) bool {
	v := r.Agent.Voice
	if v == nil || len(t.Tasks) > 0 || !v.Reaches(t.Route.At) {
		return false
	}
	text, _, marked := markedText(v, t, answer)
	if !marked && !(t.Files.HasVoice() && v.AnswersSpeech(t.Route.At)) {
		return false
	}
	words, _ := v.Words(text)
	return words != ""
}

// A narrator reads the answers of a session's turns aloud.
type narrator struct {
	lifecycle
	askers *model.Askers
	stop   *turnStop
}

// narratorOf returns the narrator of a run.
func narratorOf(r *sessionRun) narrator { return narrator{r.lifecycle, r.shared.askers, r.stop} }

// A reading is what is read aloud of a turn, whether that is the whole text, whether the text is the answer's own, and whether
// the agent has marked it.
type reading struct {
	agent.Reading
	whole, own, marked bool
}

// readingOf returns what is read aloud of a turn, in the message with that id. It has no words if the operator has turned
// reading off meanwhile.
func (n narrator) readingOf(t *turn.Turn, id string) (what reading) {
	what.Reading = agent.Reading{Session: n.Key(), Message: id, At: t.Route.At}
	if n.Agent.Voice == nil {
		return what
	}
	text, own, marked := markedText(n.Agent.Voice, t, t.ReplyText())
	what.Words, what.whole = n.Agent.Voice.Words(n.Redactor().Text(text))
	what.own, what.marked = own, marked
	return what
}

// read has the answer of a turn read aloud if the turn's end says so, after the text is on the bus. Then it records
// that all is published (C7). Whatever fails, the person has the text. A /stop ends it. resumed reports that an earlier holder
// of the session may have been cut off in it.
func (n narrator) read(ctx context.Context, id string, resumed bool) error {
	t, err := n.Fold(id)
	if err != nil || t.Done == nil || !t.Done.Aloud || t.Published {
		return err
	}
	aloud, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.stop.set(cancel)
	defer n.stop.set(nil)
	if t, err = n.Fold(id); err != nil { // after set: a /stop is in the log now, or it ends the reading
		return err
	}
	// The recording, or why there is none, goes under this id, so a repetition is dropped.
	what := n.readingOf(t, bus.DerivedID(t.ID, "#voice"))
	if what.Words == "" || t.Stopped {
		return n.recordPublished(ctx, t, true)
	}
	reader := n.askers.NewReader(n.Session, t, what.Reading)
	defer reader.Close(ctx)
	out, unread, err := n.voiceNote(aloud, t, reader, what, resumed)
	n.stop.set(nil)
	if errors.Is(context.Cause(aloud), errStopped) {
		n.Config.Observer.ReadAloud("stopped")
		out, unread, err = bus.Outbound{}, nil, nil
	}
	if unread != nil { // before the message, which has the id of a recording: whoever resumes knows that there is none to pay for
		err = reader.End(ctx, *unread)
		n.Point("aloud:unread")
	}
	if err == nil && (out.Text != "" || len(out.Files) > 0) {
		err = n.publish(ctx, out)
	}
	if errors.Is(err, bus.ErrInvalid) {
		n.Log.Warn("a recording of an answer can never be sent", slog.String("turn", t.ID), slog.Any("error", err))
		err = nil
	}
	if err != nil {
		n.suspendAfter(ctx, t, err)
		return err
	}
	n.Point("aloud:published")
	if err := reader.End(ctx, journal.NewEntry(t.ID, sessions.KindPublished, nil)); err != nil {
		return err
	}
	n.Point("c7")
	return nil
}

// suspendAfter writes that the reading was suspended if it ended because the process stops, or because something is away, so
// that this doesn't count as a kill. An outage that goes on is written once.
func (n narrator) suspendAfter(ctx context.Context, t *turn.Turn, err error) {
	away := errors.Is(err, turn.ErrBusAway) || errors.Is(err, model.ErrUnreserved) || errors.Is(err, bus.ErrFull)
	if errors.Is(context.Cause(ctx), errShutdown) || away && !t.Suspended {
		noteSuspended(ctx, n.Session, t)
	}
}

// voiceNote returns the message with the recording of a turn's answer. The message is empty if an earlier holder of the session
// has sent it, or if there is no recording. But if the agent has marked what is to be read, the message says to the person why
// there is none, and notice is an entry that says so to the model; notice is nil if the log has that entry already.
func (n narrator) voiceNote(ctx context.Context, t *turn.Turn, reader *model.Reader, what reading, resumed bool) (out bus.Outbound, notice *sessions.Entry, err error) {
	out = bus.Outbound{ID: what.Message, To: t.Route.At, ReplyTo: t.Route.ReplyTo}
	if t.Unread != "" {
		out.Text = fmt.Sprintf(textNotRead, t.Unread)
		return out, nil, nil
	}
	began := time.Now()
	file, err := n.recording(ctx, t, reader, resumed)
	if unread, ok := errors.AsType[*agent.UnreadError](err); ok {
		n.Config.Observer.ReadAloud(unread.Code)
		n.Log.Warn("an answer was not read aloud", slog.String("turn", t.ID), slog.Any("error", unread))
		if what.marked {
			out.Text = fmt.Sprintf(textNotRead, unread.Why)
			e := journal.NewEntry(t.ID, sessions.KindNotice, sessions.Notice{Code: sessions.NoticeUnread, Text: textNotAloud + unread.Why + ".", UnreadReason: unread.Why})
			notice = &e
		}
		return out, notice, nil
	}
	if err != nil || file == nil {
		return out, nil, err
	}
	n.Config.Observer.ReadAloud("ok")
	n.Log.Info("an answer was read aloud", slog.String("turn", t.ID), slog.Int("characters", utf8.RuneCountInString(what.Words)),
		slog.Int64("bytes", file.Size), slog.Duration("took", time.Since(began)))
	switch out.Files = []bus.FileRef{*file}; {
	case what.whole:
	case what.own:
		out.Text = textReadInPart
	default:
		out.Text = textReadCut
	}
	return out, nil, nil
}

// recording returns a recording: the one that an earlier holder of the session has made, or a new one; nil if the earlier one
// was sent. The log has that the reading was resumed before the model is asked again, so that a reading that kills its process
// is given up, with an *agent.UnreadError. What fails before doesn't count.
func (n narrator) recording(ctx context.Context, t *turn.Turn, reader *model.Reader, resumed bool) (*bus.FileRef, error) {
	found, sent, err := reader.Find(ctx)
	if err != nil || found != nil || sent {
		return found, err
	}
	killed := t.Resumes // since the turn's end: the model's last answer has begun the count anew
	if resumed && !t.Suspended {
		killed++
	}
	if killed >= maxRecordings {
		return nil, &agent.UnreadError{Code: "given_up", Why: textCutOffReading}
	}
	if err := reader.Reserve(ctx); err != nil {
		return nil, err
	}
	if resumed {
		if err := n.Journal.Append(ctx, journal.NewEntry(t.ID, sessions.KindResumed, nil)); err != nil {
			return nil, err
		}
	}
	file, err := reader.Record(ctx, readWithin)
	return &file, err
}
