// Package heartbeat makes an agent look at a checklist at intervals, and tells people what it finds.
//
// Each heartbeat is a message to a session of its own, AGENT:heartbeat:AGENT:DAY. Its id is derived from the
// heartbeat's time, so all processes may publish it and only one turn begins. The agent's answer goes to the
// channel "heartbeat", whose adapter is the Service: it has no platform, and publishes each answer once more for
// each of the configured places, unless the agent says that there is nothing to report.
package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/sessions"
)

// Name is the name of the channel through which agents answer after they have looked at the checklist.
const Name = "heartbeat"

// Person returns the id of the person in whose name an agent's heartbeat speaks.
func Person(agent string) string { return Name + ":" + agent }

// NothingToReport is an agent's answer if it has found nothing that people need to be told.
const NothingToReport = "HEARTBEAT_OK"

const (
	settingsCheckInterval = time.Minute        // how often the settings are checked for changes
	maxFile               = 32 << 10           // the maximum size of the checklist, in bytes
	failureSubject        = "heartbeat_failed" // the subject under which the book notes the last failure that people were told about
)

// Settings are the heartbeat's settings, as they are configured now.
type Settings struct {
	Every     time.Duration // 0 means never
	File      string
	Agent     string
	To        []bus.Address
	TokensDay int64 // how many tokens an agent's heartbeats may use in a day
	Day       int64 // what they may cost in a day, in micro-dollars
}

// A Bus is the part of the bus that a Service needs.
type Bus interface {
	bus.Bus
	HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error)
}

// A Store is the part of the store that a Service needs.
type Store interface {
	sessions.Reader
	sessions.Budget
}

// A Service makes agents look at the checklist, and sends their answers on. It is the channels.Channel for the
// sessions in which they look.
type Service struct {
	Bus    Bus
	Events bus.Events
	Store  Store
	Notes  channels.Notes
	// Cost returns what a person's turns have cost today, in micro-dollars, as far as that is known.
	Cost     func(ctx context.Context, person string) (int64, error)
	Settings func() Settings
	// Ready returns why the agent can't be asked to look now; "" if it can.
	Ready func(ctx context.Context) (why string, err error)
	Log   *slog.Logger
}

var _ channels.Channel = (*Service)(nil)

// address returns the address at which an agent looks at the checklist on a day; each day has its own session.
func address(agent string, at time.Time) bus.Address {
	return bus.Address{Channel: Name, Chat: agent, Thread: at.UTC().Format(time.DateOnly)}
}

// Session returns the key of the session in which an agent looks at the checklist: the session at the given
// address, which is on the heartbeat's own channel and whose chat is the agent's name.
func Session(at bus.Address) (string, error) {
	return sessions.Key(at.Chat, at.Channel, at.Chat, at.Thread)
}

// Run starts each heartbeat when it is due, until ctx is done. Several processes may run it.
func (d *Service) Run(ctx context.Context) error {
	last := time.Now()
	for {
		c := d.Settings()
		wait := settingsCheckInterval
		if c.Every > 0 {
			wait = min(wait, time.Until(time.Now().Truncate(c.Every).Add(c.Every)))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		if c = d.Settings(); c.Every <= 0 {
			continue
		}
		slot := time.Now().Truncate(c.Every)
		if !slot.After(last) {
			continue
		}
		last = slot
		if err := d.beat(ctx, c, slot); err != nil && ctx.Err() == nil {
			d.Log.Warn("a heartbeat is left out", slog.Any("error", err))
		}
	}
}

// beat publishes the checklist to the agent for a time slot, if there is something in it, if the agent is ready and
// has finished the previous one, and if the day's budget is not used up.
func (d *Service) beat(ctx context.Context, c Settings, slot time.Time) error {
	list, err := readChecklist(c.File)
	if err != nil || list == "" {
		return err
	}
	why, err := d.Ready(ctx)
	if err == nil && why != "" {
		err = errors.New(why)
	}
	if err != nil {
		return err
	}
	at := address(c.Agent, slot)
	session, err := Session(at)
	if err != nil {
		return err
	}
	if busy, err := d.Bus.HasMail(ctx, bus.InboundTopic, session); err != nil || busy {
		return err
	}
	spent, err := d.Store.Spent(ctx, Person(c.Agent), time.Now())
	if err != nil {
		return err
	}
	if spent >= c.TokensDay {
		d.Log.Info("a heartbeat is left out: its tokens of this day are spent", slog.Int64("spent", spent))
		return nil
	}
	cost, err := d.Cost(ctx, Person(c.Agent))
	if err != nil {
		return err
	}
	if cost >= c.Day {
		d.Log.Info("a heartbeat is left out: its money of this day is spent", slog.Int64("microdollars", cost))
		return nil
	}
	return bus.PublishInbound(ctx, d.Bus, session, bus.Program(Person(c.Agent)).Mail(bus.Inbound{
		ID: Name + ":" + c.Agent + ":" + strconv.FormatInt(slot.Unix(), 10), Kind: bus.Scheduled, Schedule: Name,
		At: at, SentAt: slot, Text: messageText(list),
	}), false)
}

// messageText returns the message that asks the agent to look at a checklist.
func messageText(list string) string {
	return "This is a look at a checklist, which comes round every so often. Go through it with your tools. " +
		"If there is something that people have to know and that you have not told them today, answer with that alone: your answer is sent to them, and nobody can answer you here. " +
		"If there is nothing, answer with " + NothingToReport + " and no other word: then nobody is disturbed.\n\n" + list
}

// readChecklist returns the text of the checklist; "" if it contains only headings and comments. A file that does
// not exist is an error.
func readChecklist(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the checklist of heartbeat.file cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the checklist of heartbeat.file cannot be read: %w", err)
	case len(raw) > maxFile:
		return "", fmt.Errorf("the checklist of heartbeat.file is longer than %d bytes: make it shorter", maxFile)
	}
	text := strings.ToValidUTF8(string(raw), "�")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && (!strings.HasPrefix(line, "<!--") || !strings.HasSuffix(line, "-->")) {
			return strings.TrimSpace(text), nil
		}
	}
	return "", nil
}

// Receive does nothing until ctx is done, because Run starts the turns, not a platform.
func (*Service) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

// Limits sets no limits of its own: answers are rendered by the channel that they are sent on to.
func (*Service) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }

// Send publishes a part of the agent's answer to each configured place. It drops an answer that says that there is
// nothing to report, and an answer about a failure if people have already been told about one that day. A repeated
// Send publishes the same ids again, which the bus drops.
func (d *Service) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	session, err := Session(to)
	if err != nil {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "no_session", Err: err}
	}
	turn, _ := channels.AnsweredTurn(part.Key)
	silent := isNothing(part.Text)
	if !silent {
		if silent, err = d.noteFailure(ctx, session, turn, to.Thread); err != nil {
			return "", &channels.SendError{Fault: channels.Retry, Code: "store", Err: err}
		}
	}
	d.Events.Emit(bus.Event{Type: bus.Spoken, Session: session, Route: to, Turn: turn, Call: part.Key, Delta: part.Text})
	if silent {
		return part.Key, nil
	}
	for n, place := range d.Settings().To {
		err := bus.PublishOutbound(ctx, d.Bus, bus.Outbound{
			ID: fmt.Sprintf("%s#to/%d", part.Key, n), To: place, Text: "**Heartbeat**\n\n" + part.Text, At: time.Now(),
			Session: session, Turn: turn, Origin: Name,
			// The session at that place is told of it, so that the agent there understands replies to it.
			Told: &bus.Telling{For: bus.Person{ID: Person(to.Chat)}, At: to, Words: part.Text},
		})
		switch {
		case errors.Is(err, bus.ErrInvalid):
			return "", &channels.SendError{Fault: channels.Rejected, Code: "invalid", Err: err}
		case err != nil:
			return "", &channels.SendError{Fault: channels.Retry, Code: "bus", Err: err}
		}
	}
	return part.Key, nil
}

// isNothing reports whether an answer is NothingToReport, ignoring case and everything around it that is not a
// letter.
func isNothing(text string) bool {
	return strings.EqualFold(strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }), NothingToReport)
}

// noteFailure notes that a turn failed, if it did, and reports whether a failure of another turn has been noted for
// that day, so that people have already been told.
func (d *Service) noteFailure(ctx context.Context, session, turn, day string) (bool, error) {
	failed := false
	for e, err := range d.Store.Read(ctx, session, 1) {
		if errors.Is(err, sessions.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if e.Turn == turn && e.Kind == sessions.KindTurnDone {
			done, err := sessions.Decode[sessions.TurnDone](e)
			if err != nil {
				return false, err
			}
			failed = done.State == sessions.TurnFailed
		}
	}
	if !failed {
		return false, nil
	}
	told, err := d.Notes.Noted(ctx, failureSubject, Name)
	if err != nil {
		return false, err
	}
	if on, which, _ := strings.Cut(told.Value, " "); on == day {
		return which != turn, nil
	}
	return false, d.Notes.SetNote(ctx, failureSubject, Name, day+" "+turn)
}
