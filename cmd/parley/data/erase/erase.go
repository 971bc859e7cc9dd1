// Package erase removes what a person said, a session, or everything that is too old from every place where it is
// stored.
//
// It works while the bot serves. For a person or a session, it erases the mail first, and takes the leases of the
// workers that hold it; then the audit's files, the workspaces and the book; and last the log, which it uses to find
// everything else. So if it is interrupted, calling it again finds what is left. Erasing the log also fences off a
// worker that had it open. A second round finds what such a worker published until then.
//
// The files: erase.go erases, and target.go says what to erase; auditfiles.go erases from the audit's files,
// attachments.go files that people have sent, files.go files that wait to be sent, oldfiles.go old files,
// deadletters.go dead letters; beyond.go says what no erasure reaches; receipt.go says what was erased, progress.go how far an erasure is, requests.go carries
// out what programs ask for with routes.go; retention.go erases at intervals what is too old,
// rewriter.go rewrites the database after erasures.
package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions"
	"parley/sessions/sqldb"
)

// maxRounds limits how often an erasure looks again for messages that were published while it ran.
const maxRounds = 3

// forgotten is the recorded reason when the background jobs of an erased session are stopped. Nobody gets a notice
// when such jobs end.
const forgotten = "forgotten"

// A Bus is the bus from which messages are erased. If it is also a bus.Forgetter, waiting messages are erased, too,
// otherwise only dead letters.
type Bus interface {
	bus.Inspector
	bus.DeadLetters
}

// A Store is the store from which logs are erased.
type Store interface {
	sessions.Eraser
	sessions.Reader
	// StopJobs asks the background jobs of a session to end.
	StopJobs(ctx context.Context, session, id, cause string) (int, error)
	// NotePurge records that, until end is called, something is being erased from the files that the store and other
	// parts may share.
	NotePurge(ctx context.Context) (end func(ctx context.Context, erased bool) error, err error)
	// PurgeDue purges these files if an erasure has left that undone.
	PurgeDue(ctx context.Context) error
	// LastWrite returns when something was last written to these files; the zero time if nobody is waiting for a
	// purge.
	LastWrite() time.Time
	// SessionsOf lists the sessions that ErasePerson would erase completely, and those that it would erase in part.
	SessionsOf(ctx context.Context, person string) (alone, shared []string, err error)
}

// A Book is the book from which the channels' records are erased.
type Book interface {
	Erase(ctx context.Context, what sqlbook.Erasure) (sqlbook.Erased, error)
	// PairingOf returns a person's admission or open request; the zero Pairing if there is neither.
	PairingOf(ctx context.Context, person string) (channels.Pairing, error)
	// SessionsBefore lists some of the sessions, in order and after the session after, that have a chat recorded
	// before a time.
	SessionsBefore(ctx context.Context, before time.Time, after string, limit int) ([]string, error)
}

// Workspaces removes the directories of sessions, or files in them.
type Workspaces interface {
	Remove(ctx context.Context, key string) (bool, error)
	// ListOld lists the files in a folder that were last written before a time.
	ListOld(ctx context.Context, key, folder string, before time.Time) ([]string, error)
	// DiscardOld removes those of the files that are still older than before, and returns how many it removed.
	DiscardOld(ctx context.Context, key string, paths []string, before time.Time) (int, error)
}

// Config names the places where people's words are stored.
type Config struct {
	Bus        Bus
	Store      Store
	Book       Book
	Workspaces Workspaces
	Files      Files
	Audit      AuditFiles // nil if there are none
	// Rewriter, if set, purges the databases some time after something was erased by PersonSoon, SessionSoon,
	// Sessions or Run. Otherwise they are purged each time.
	Rewriter *Rewriter
	// Before, if set, removes copies of the data that an older release has left. It is called before anything is
	// erased.
	Before func() error
	// Memory, if set, clears this process's cache of sessions. Other processes notice the erasure when they open a
	// session again.
	Memory func()
	// SubAgents, if set, returns the sessions of sub-agents (agents that another agent has handed a task to) that
	// belong to these sessions or, if person is not "", to that person.
	SubAgents func(ctx context.Context, person string, sessions ...string) ([]string, error)
	// Kept lists what an erasure cannot reach in this installation, such as backups. Each receipt repeats it.
	Kept []NotErased
	// Progress, if set, is called at each step and, within a step, for each session.
	Progress func(Progress)
	Log      *slog.Logger
}

// An Eraser erases from all places in its Config.
type Eraser struct{ cfg Config }

// New returns an Eraser.
func New(cfg Config) *Eraser { return &Eraser{cfg} }

// Person erases what a person has said, and the answers to them: conversations that the person had alone completely,
// and the person's turns in those shared with others. The person is given as CHANNEL:USER.
func (e *Eraser) Person(ctx context.Context, person string) (Receipt, error) {
	if !isPerson(person) {
		return Receipt{}, fmt.Errorf("erase: %q isn't a person: write CHANNEL:USER", person)
	}
	channel, user, _ := strings.Cut(person, ":")
	r := e.receipt("person " + person)
	t := &target{person: person, eraseLog: func(ctx context.Context, t *target) (sessions.Erased, error) { return e.erasePerson(ctx, &r, t) }}
	switch channel {
	case "web":
		t.origin = user
	case "webhook":
		t.origin = channel + "/" + user
	}
	paired, err := e.cfg.Book.PairingOf(ctx, person)
	if err != nil {
		return r, fmt.Errorf("erase %s: %w", person, err)
	}
	if paired.Person != "" {
		if at, err := bus.ParseAddress(paired.Chat); err == nil {
			t.addresses = append(t.addresses, at)
		}
		r.noteKept(person+"'s permission to talk to the bot", "it isn't something they said; parley pairing revoke "+person+" removes it")
	}
	again := func() (bool, error) {
		t.alone, t.shared, err = e.cfg.Store.SessionsOf(ctx, person)
		if err != nil {
			return false, err
		}
		more := len(t.alone)+len(t.shared) > 0
		t.alone, err = e.withSubAgents(ctx, person, t.alone) // some may have files and no log yet
		return more, err
	}
	if err := e.eraseInRounds(ctx, &r, t, again); err != nil {
		return r, fmt.Errorf("erase %s: %w", person, err)
	}
	if err := e.forgetAudit(&r, person, r.Log.Sessions); err != nil { // erase audit records made in the meantime
		return r, fmt.Errorf("erase %s: %w", person, err)
	}
	for _, key := range r.Log.PartlyErased {
		r.noteKept("files, memory and what others said in session "+key, "others share them; look through its workspace by hand")
	}
	e.addKept(&r)
	return r, nil
}

// PersonSoon is like Person, but returns before the databases are rewritten, because all writers would have to wait
// for that. The Rewriter does it a little later, for everything erased until then; the receipt says so. Without a
// Rewriter, PersonSoon does the same as Person.
func (e *Eraser) PersonSoon(ctx context.Context, person string) (Receipt, error) {
	return e.soon(ctx, func(ctx context.Context) (Receipt, error) { return e.Person(ctx, person) })
}

// SessionSoon is like Session, but returns before the databases are rewritten; see PersonSoon.
func (e *Eraser) SessionSoon(ctx context.Context, key string) (Receipt, error) {
	return e.soon(ctx, func(ctx context.Context) (Receipt, error) { return e.Session(ctx, key) })
}

// soon erases, and leaves rewriting the databases to the Rewriter, if there is one.
func (e *Eraser) soon(ctx context.Context, erase func(context.Context) (Receipt, error)) (r Receipt, err error) {
	if e.cfg.Rewriter == nil {
		return erase(ctx)
	}
	err = e.cfg.Rewriter.Erase(ctx, func(ctx context.Context) (bool, error) {
		r, err = erase(ctx)
		return true, err
	})
	if err == nil && e.cfg.Rewriter.file {
		r.noteKept("traces in unused parts of the database's files", fmt.Sprintf("Parley rewrites these when nothing else is writing to them: within about %d minutes while parley serve is running", int(e.cfg.Rewriter.Within().Minutes())+1))
	}
	return r, err
}

// Session erases everything that is stored about a session. For a session that doesn't exist it returns an empty
// receipt.
func (e *Eraser) Session(ctx context.Context, key string) (Receipt, error) {
	if err := sessions.CheckKey(key); err != nil {
		return Receipt{}, fmt.Errorf("erase: %w", err)
	}
	r := e.receipt("session " + key)
	all, err := e.withSubAgents(ctx, "", []string{key})
	if err != nil {
		return r, fmt.Errorf("erase session %s: %w", key, err)
	}
	t := &target{alone: all, eraseLog: func(ctx context.Context, t *target) (done sessions.Erased, err error) {
		for i, key := range slices.Backward(t.alone) { // the session itself knows the others, so it is erased last
			e.report(Log, len(t.alone)-1-i, len(t.alone))
			one, err := e.cfg.Store.EraseSession(ctx, key)
			done = addErased(done, one)
			if err != nil && !errors.Is(err, sessions.ErrNotFound) { // it may have had mail, files or records without a log
				return done, err
			}
		}
		return done, nil
	}}
	// Anything that arrives now belongs to a new session with that key, which is not to be erased.
	again := func() (bool, error) { return false, nil }
	if err := e.eraseInRounds(ctx, &r, t, again); err != nil {
		return r, fmt.Errorf("erase session %s: %w", key, err)
	}
	if err := e.forgetAudit(&r, "", t.alone); err != nil { // erase audit records made in the meantime
		return r, fmt.Errorf("erase session %s: %w", key, err)
	}
	e.addKept(&r)
	return r, nil
}

// Sessions erases each of the sessions like Session does, and leaves rewriting the databases to the Rewriter;
// without one it rewrites them once for all sessions. It continues after an error, and returns which sessions were
// erased.
func (e *Eraser) Sessions(ctx context.Context, keys []string) (erased []string, err error) {
	var failed error
	err = e.cfg.Rewriter.Erase(ctx, func(ctx context.Context) (bool, error) {
		for _, key := range keys {
			if _, err := e.Session(ctx, key); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			erased = append(erased, key)
		}
		return true, nil
	})
	if err != nil {
		erased = nil // what they said may still be in the files
	}
	return erased, errors.Join(failed, err)
}

// withSubAgents returns the sessions in keys, followed by the sessions of sub-agents that belong to these or, if
// person is not "", to that person.
func (e *Eraser) withSubAgents(ctx context.Context, person string, keys []string) ([]string, error) {
	if e.cfg.SubAgents == nil {
		return keys, nil
	}
	more, err := e.cfg.SubAgents(ctx, person, keys...)
	if err != nil {
		return nil, fmt.Errorf("look for sub-agents: %w", err)
	}
	for _, key := range more {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// eraseInRounds erases a target in rounds. It calls foundMore before the first round, where that determines what the target
// is, and after each one: while foundMore returns true, because something has arrived in the meantime, there is another
// round. After maxRounds it stops without an error, even if there is more.
func (e *Eraser) eraseInRounds(ctx context.Context, r *Receipt, t *target, foundMore func() (bool, error)) error {
	if err := e.removeBefore(); err != nil {
		return err
	}
	return sqldb.PurgeOnce(ctx, func(ctx context.Context) error { return e.eraseRounds(ctx, r, t, foundMore) })
}

// eraseRounds does the work of eraseInRounds; the databases are purged after it.
func (e *Eraser) eraseRounds(ctx context.Context, r *Receipt, t *target, foundMore func() (bool, error)) error {
	if _, err := foundMore(); err != nil {
		return err
	}
	for n := 1; ; n++ {
		gone, err := e.eraseBeside(ctx, r, t)
		if err != nil {
			return err
		}
		e.report(Log, 0, 0)
		log, err := t.eraseLog(ctx, t)
		e.clearMemory()
		r.Log = addErased(r.Log, log)
		if err != nil {
			return err
		}
		if gone.Leases > 0 {
			// A worker lost its lease. By now it is also fenced off from the log, so it can publish nothing more,
			// and what it published in between can be erased.
			if _, err := e.eraseBeside(ctx, r, t); err != nil {
				return err
			}
		}
		if more, err := foundMore(); err != nil || !more || n == maxRounds {
			return err
		}
	}
}

// clearMemory clears what this process remembers about sessions. It is called after the logs were erased; before
// that, the process could read from them again what is to be erased.
func (e *Eraser) clearMemory() {
	if e.cfg.Memory != nil {
		e.cfg.Memory()
	}
}

// eraseBeside erases a target from all places except the log: the bus, the audit's files, the workspaces, the files
// that wait to be sent, and the book. It also stops the background jobs of sessions that are erased completely. It
// returns what it has removed from the bus.
func (e *Eraser) eraseBeside(ctx context.Context, r *Receipt, t *target) (bus.Forgotten, error) {
	what := sqlbook.Erasure{Sessions: t.alone, Person: t.person, Origin: t.origin, At: t.addresses}
	if _, ok := e.cfg.Bus.(bus.Forgetter); ok {
		what.Asked = time.Now()
	}
	e.report(Mail, 0, 0)
	var unknown error // why it isn't known whether one of the messages must be erased
	gone, err := e.forget(ctx, r, func(topic bus.Topic, m bus.Message) bool {
		concerns, err := e.covers(ctx, t, topic, m)
		if unknown = cmp.Or(unknown, err); unknown != nil {
			return false // the rest stays until the next attempt, too
		}
		if !strings.HasPrefix(string(topic), string(bus.OutboundTopic(""))) {
			return concerns
		}
		if concerns {
			what.Sends = append(what.Sends, m.ID)
		} else {
			what.Waiting = append(what.Waiting, m.ID)
		}
		return concerns
	}, slices.Concat(t.alone, t.shared)...)
	r.Bus.Messages += gone.Messages
	r.Bus.DeadLetters += gone.DeadLetters
	r.Bus.Leases += gone.Leases
	if err = cmp.Or(err, unknown); err != nil {
		return gone, err
	}
	if err := e.forgetAudit(r, t.person, t.alone); err != nil {
		return gone, err
	}
	if err := e.removeWorkspaces(ctx, r, t.alone); err != nil {
		return gone, err
	}
	if err := e.forgetFiles(ctx, t, what.Sends); err != nil {
		return gone, err
	}
	for _, key := range t.alone {
		if a, ok := addressOf(key); ok {
			what.Places = append(what.Places, a)
		}
	}
	e.report(Records, 0, 0)
	book, err := e.cfg.Book.Erase(ctx, what)
	r.Book.Sends += book.Sends
	r.Book.Posts += book.Posts
	r.Book.Chats += book.Chats
	r.Book.Asks += book.Asks
	r.Book.Ratings += book.Ratings
	r.Book.Memories += book.Memories
	return gone, err
}

// removeWorkspaces removes the workspaces of sessions, and stops the background jobs that run in them.
func (e *Eraser) removeWorkspaces(ctx context.Context, r *Receipt, keys []string) error {
	var gone []string
	for i, key := range keys {
		e.report(Folders, i, len(keys))
		if _, err := e.cfg.Store.StopJobs(ctx, key, "", forgotten); err != nil {
			return err
		}
		removed, err := e.cfg.Workspaces.Remove(ctx, key)
		if err != nil {
			return err
		}
		if removed {
			gone = append(gone, key)
		}
	}
	r.Workspaces = addKeys(r.Workspaces, gone)
	return nil
}

// forget removes from the bus the messages for which match returns true: waiting messages, if the bus can remove
// these, and dead letters.
func (e *Eraser) forget(ctx context.Context, r *Receipt, match func(bus.Topic, bus.Message) bool, keys ...string) (bus.Forgotten, error) {
	if f, ok := e.cfg.Bus.(bus.Forgetter); ok {
		return f.Forget(ctx, match, keys...)
	}
	r.noteKept("messages that are waiting or being answered", "this bus can't remove them; erase again once they're finished")
	gone, err := e.dropDeadLetters(ctx, func(d bus.DeadLetter) bool { return match(d.Topic, d.Message) })
	return bus.Forgotten{DeadLetters: gone}, err
}
