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
	// readAloudTimeout limits how long the recording of an answer may take. The text of the answer is sent before.
	readAloudTimeout = 30 * time.Second
	// maxRecordingAttempts is how often the recording of one answer may be begun. An attempt that was cut off is
	// repeated once, so a recording that kills its process can't kill every process.
	maxRecordingAttempts = 2
)

// markedText returns the text that is read aloud with an answer, whether it is the text of the answer, and whether the
// agent has marked a text to be read. If the agent has marked several, the last one counts.
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

// A reading is the text that is read aloud with a turn's answer. The fields say whether the text is complete, whether
// it is the answer's text, and whether the agent has marked it to be read.
type reading struct {
	agent.Reading
	isWholeText, isAnswerText, markedByAgent bool
}

// readingOf returns the text that is read aloud with a turn's answer, in the message with the given id. The text is
// empty if the operator has turned reading aloud off since.
func (n narrator) readingOf(t *turn.Turn, id string) (what reading) {
	what.Reading = agent.Reading{Session: n.Key(), Message: id, At: t.Route.At}
	if n.Agent.Voice == nil {
		return what
	}
	text, own, marked := markedText(n.Agent.Voice, t, t.ReplyText())
	what.Words, what.isWholeText = n.Agent.Voice.Words(n.Redactor().Text(text))
	what.isAnswerText, what.markedByAgent = own, marked
	return what
}

// read has a turn's answer read aloud if the entry of the turn's end says so, and then records that everything is
// published (C7). It is called when the text is on the bus, so the person has the text even if reading fails. A /stop
// ends the reading. resumed reports that an earlier holder of the session may have been cut off while reading.
func (n narrator) read(ctx context.Context, id string, resumed bool) error {
	t, err := n.Fold(id)
	if err != nil || t.Done == nil || !t.Done.Aloud || t.Published {
		return err
	}
	aloud, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.stop.set(cancel)
	defer n.stop.set(nil)
	if t, err = n.Fold(id); err != nil { // after set: a /stop is in the log by now, or it will end the reading
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
	if unread != nil { // before the message, which has the same id as a recording: a process that resumes knows that no recording has to be paid for
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

// suspendAfter records that the reading was suspended, if err says that the process stops or that a service is
// unavailable. Then the interruption doesn't count as a crash. An outage that continues is recorded once.
func (n narrator) suspendAfter(ctx context.Context, t *turn.Turn, err error) {
	away := errors.Is(err, turn.ErrBusAway) || errors.Is(err, model.ErrUnreserved) || errors.Is(err, bus.ErrFull)
	if errors.Is(context.Cause(ctx), errShutdown) || away && !t.Suspended {
		noteSuspended(ctx, n.Session, t)
	}
}

// voiceNote returns the message with the recording of a turn's answer. The message is empty if there is no recording,
// or if an earlier holder of the session has sent it. But if the agent has marked a text and it can't be read, the
// message tells the person why, and notice is the entry that tells the model; notice is nil if the log already has that
// entry.
func (n narrator) voiceNote(ctx context.Context, t *turn.Turn, reader *model.Reader, what reading, resumed bool) (out bus.Outbound, notice *sessions.Entry, err error) {
	out = bus.Outbound{ID: what.Message, To: t.Route.At, ReplyTo: t.Route.ReplyTo}
	if t.UnreadReason != "" {
		out.Text = fmt.Sprintf(textNotRead, t.UnreadReason)
		return out, nil, nil
	}
	began := time.Now()
	file, err := n.recording(ctx, t, reader, resumed)
	if unread, ok := errors.AsType[*agent.UnreadError](err); ok {
		n.Config.Observer.ReadAloud(unread.Code)
		n.Log.Warn("an answer was not read aloud", slog.String("turn", t.ID), slog.Any("error", unread))
		if what.markedByAgent {
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
	case what.isWholeText:
	case what.isAnswerText:
		out.Text = textReadInPart
	default:
		out.Text = textReadCut
	}
	return out, nil, nil
}

// recording returns the recording that an earlier holder of the session has made, or a new one; nil if the earlier one
// was sent. Before it asks the model again, it records that the reading was resumed. So a reading that keeps killing
// its process is given up, with an *agent.UnreadError. Failures before that entry don't count.
func (n narrator) recording(ctx context.Context, t *turn.Turn, reader *model.Reader, resumed bool) (*bus.FileRef, error) {
	found, sent, err := reader.Find(ctx)
	if err != nil || found != nil || sent {
		return found, err
	}
	killed := t.Resumes // counted since the turn's end, because the model's last answer has reset the count
	if resumed && !t.Suspended {
		killed++
	}
	if killed >= maxRecordingAttempts {
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
	file, err := reader.Record(ctx, readAloudTimeout)
	return &file, err
}
