// Package home opens the data of a bot, and checks it before it is used: it refuses a
// home that other users can write to, data that would be left behind because the configuration names another store,
// and a workspace that belongs to another store.
//
// home.go opens and closes a home, databases.go its databases; homecheck.go, permissions.go and nodata.go refuse
// homes; owner.go gives files to the home's owner if root runs the program; workspace.go and fleetnote.go record
// which store a directory belongs to, places.go where each agent's files are, releases.go what each process
// understands, and processes.go what each is; readiness.go checks whether data can be written; socket.go makes the socket through which commands
// on this machine reach the process that has the home open. callworkspaces.go opens a session's workspace for a tool
// call, and commandplaces.go says where commands run. memories.go reads what agents remember as a turn begins,
// edited.go lets people view and change that, and replies.go has answers published and their sends begun in one
// write.
package home

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"parley/agent/ownfiles"
	"parley/bus"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/backup"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/data/homedb"
	"parley/sessions"
	"parley/sessions/activity"
	"parley/sessions/archive"
	"parley/sessions/bill"
	"parley/sessions/nodes"
	"parley/sessions/outgoing"
	"parley/sessions/participants"
	"parley/sessions/rates"
	"parley/sessions/schedules"
	"parley/sessions/search"
	"parley/sessions/snapshots"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/subagents"
	"parley/sessions/subscriptions"
	"parley/sessions/workspace"
	"parley/tools/crash"
	"parley/tools/sandbox"
)

// These are the files of a home.
const (
	StoreFile    = homedb.File    // the database of the store, the book and the bus
	BusFile      = homedb.BusFile // the bus's database, if the store and the book are on a server
	TokenFile    = "token"
	SocketFile   = "parley.sock"
	TerminalsDir = "terminals" // the folder of the locks, one for each conversation in a terminal
)

// A fullBus is a bus with all its optional methods.
type fullBus interface {
	bus.Bus
	bus.Events
	bus.History
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	bus.Holder
	bus.Roster
	bus.Forgetter
	Writable(ctx context.Context) error
	Dropped() uint64
	Close() error
}

// A store is a store of sessions with all its optional methods.
type store interface {
	sessions.Store
	sessions.Budget
	sessions.Auditor
	sessions.TurnReader
	sessions.Finder
	sessions.Jobs
	sessions.JobLister
	erase.Store
	Schedules() schedules.Table
	ScheduleRuns(ctx context.Context, of schedules.Schedule, limit int) ([]schedules.Run, error)
	SubAgents() subagents.Table
	Nodes() *nodes.Table
	Bill() bill.Table
	Activity() *activity.Table
	Subscriptions() *subscriptions.Table
	Archive() archive.Table
	Money() *bill.Budget
	Rates() *rates.Table
	SettleAbandoned(ctx context.Context) (int, error)
	OnLost(report func(writes int, err error))
	Words() *search.Table
	Participants() *participants.Table
	QueryAtTurnStart(query func(session string, started sessions.Entry) (sqlstore.TurnStartQuery, bool))
	Writable(ctx context.Context) error
	Close() error
}

// A Home is a bot's opened data. With SQLite only one process has it open at a time; with Redis and PostgreSQL each
// process has a home for its own files, and the other data is shared.
type Home struct {
	Dir         string
	Bus         fullBus
	Store       store
	Book        *sqlbook.Book
	shared      *sharedDatabase // nil if the bus, the store and the book don't share a database
	server      *sqldb.DB       // the database of the store and the book on a server; nil if they are in the home
	Workspaces  *workspace.Workspaces
	Outgoing    *outgoing.Store  // files that wait to be sent
	Snapshots   *snapshots.Store // records of what turns have changed
	override    WorkspaceOverride
	overrideDir *workspace.Workspaces // the override's directory; nil if there is none

	owner     Owner  // the owner of Dir
	Root      string // the root of the workspaces
	rootOwner Owner
	folders   map[string]string // folders that agents have in place of Root, by agent
	owners    map[string]Owner  // the owners of folders, by folder
	self      string            // this process's name among those that have the bus open
	complete  bool              // whether Open has opened everything
	lost      atomic.Uint64     // the count that LostWrites returns
	ready     readiness         // the state that Ready reports
}

// A WorkspaceOverride is a person's own directory that is used as the workspace of the one session in which they
// talk. Other sessions, whose messages may also wait here, don't use it.
type WorkspaceOverride struct{ Dir, Session string }

// Open opens the home of a configuration, and creates it if necessary.
func Open(ctx context.Context, c *config.Config, own WorkspaceOverride, log *slog.Logger) (h *Home, err error) {
	h = &Home{Dir: c.Home, override: own, Root: c.Workspace.Root, owner: OwnerOf(c.Home)}
	h.ready.inHome, h.ready.log = map[string]bool{"bus": c.Bus.URL == "", "store": c.Store.URL == ""}, log
	h.rootOwner = h.ownerOf(h.Root)
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := CheckData(c); err != nil {
		return h, err
	}
	if err := CheckPermissions(c); err != nil {
		return h, err
	}
	if err := os.MkdirAll(c.Home, 0o700); err != nil {
		return h, fmt.Errorf("create the home: %w", err)
	}
	// Finish or remove what an interrupted restore or backup has left.
	if err := errors.Join(backup.Finish(c.Home), backup.Sweep(c.Home)); err != nil {
		return h, err
	}
	if err := h.openDatabases(ctx, c, log); err != nil {
		return h, err
	}
	if err := h.announce(ctx, log); err != nil {
		return h, err
	}
	if err := checkArrived(ctx, c); err != nil {
		return h, err
	}
	if own.Dir != "" {
		if h.overrideDir, err = workspace.OpenFixed(own.Dir); err != nil {
			return h, err
		}
	}
	if err := h.openWorkspaces(ctx, c); err != nil {
		return h, err
	}
	if h.Outgoing, err = outgoing.Open(c.Workspace.Root, int64(c.Workspace.MaxMB)<<20); err != nil {
		return h, err
	}
	if err := h.openSnapshots(c); err != nil {
		return h, err
	}
	if err := checkWorkable(c); err != nil {
		return h, err
	}
	if err := errors.Join(MarkWorkspace(c), notePlaces(c, h.folders), NoteWhereDataIs(c)); err != nil {
		return h, err
	}
	h.complete = true
	return h, h.giveToOwner()
}

// openWorkspaces opens the folders below which each session has its own directory: the folder in the setting
// [workspace] root, and the folders of agents that have one of their own.
func (h *Home) openWorkspaces(ctx context.Context, c *config.Config) (err error) {
	if err := CheckPlaces(c); err != nil {
		return err
	}
	if h.folders, err = AgentFolders(c); err != nil {
		return err
	}
	if err := h.checkAllKnowFolders(ctx, c); err != nil {
		return err
	}
	h.owners = map[string]Owner{}
	for _, dir := range h.folders {
		h.owners[dir] = h.ownerOf(dir)
	}
	h.Workspaces, err = workspace.New(workspace.Config{
		Root: c.Workspace.Root, Folders: h.folders, User: sandbox.CommandUser, MaxBytes: int64(c.Workspace.MaxMB) << 20, Missing: ownfiles.Missing(c.Retention.Days),
	})
	if wrong, ok := errors.AsType[*workspace.FolderError](err); ok {
		return NameSetting(c, "agents."+wrong.Agent+".workspace", err)
	}
	return err
}

// giveToOwner makes the home's owner the owner of the files that this process has created.
func (h *Home) giveToOwner() error {
	errs := []error{h.owner.GiveHome(h.Dir), h.rootOwner.GiveTree(h.Root)}
	for agent, dir := range h.folders {
		errs = append(errs, h.owners[dir].giveFolder(dir, agent))
	}
	return errors.Join(errs...)
}

// ownerOf returns the owner of a directory for sessions' files, which need not exist yet.
func (h *Home) ownerOf(dir string) Owner {
	if isInside(h.Dir, dir) {
		return h.owner
	}
	return OwnerOf(dir)
}

// RootOf returns the folder that contains a session's directory.
func (h *Home) RootOf(session string) string {
	return cmp.Or(h.folders[sessions.AgentOf(session)], h.Root)
}

// NameSetting adds to an error from opening something the setting that named it, if any.
func NameSetting(c *config.Config, key string, err error) error {
	if from := c.Origin(key); from != "" {
		return fmt.Errorf("%s: %s: %w (parley doctor has the details)", from, key, err)
	}
	return err
}

// maxUndoDays is for how many days at most a turn's changes can be undone.
const maxUndoDays = 30

// openSnapshots opens the records of what turns have changed.
func (h *Home) openSnapshots(c *config.Config) (err error) {
	days := maxUndoDays
	if c.Retention.Days > 0 {
		days = min(days, c.Retention.Days)
	}
	h.Snapshots, err = snapshots.Open(snapshots.Config{
		Root: c.Workspace.Root, MaxBytes: int64(c.Workspace.MaxMB) << 20, MaxTurns: c.Workspace.UndoTurns, MaxAge: time.Duration(days) * 24 * time.Hour,
		IsExcluded: workspace.IsNotes, TemporaryName: workspace.TemporaryName, Point: crash.Points(),
	})
	return err
}

// IsOwn reports whether a session works in a person's own directory.
func (h *Home) IsOwn(session string) bool {
	return h.overrideDir != nil && session == h.override.Session
}

// Workspace opens the directory that a session works in, and creates it if it is missing.
func (h *Home) Workspace(session string) (*workspace.Dir, error) {
	if h.IsOwn(session) {
		return h.overrideDir.Open(session)
	}
	dir, err := h.Workspaces.Open(session)
	if err != nil {
		return nil, err
	}
	root, owner := h.RootOf(session), h.rootOwner
	if root != h.Root {
		owner = h.owners[root]
	}
	return dir, owner.givePath(root, dir.Path())
}

// WorkspaceFiles returns the files in the directory that a session works in, for reading only. A session has no
// directory before something needs one, and then has no files.
func (h *Home) WorkspaceFiles(session string) (fs.FS, error) {
	if h.IsOwn(session) {
		return h.overrideDir.Open(session)
	}
	dir, err := h.Workspaces.OpenExisting(session)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noFiles{}, nil
	case err != nil:
		return nil, err
	}
	return dir, nil
}

// noFiles is a file system without any files.
type noFiles struct{}

// Open implements fs.FS.
func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// OwnOutgoing makes the owner of the workspaces the owner of the files that wait to be sent: the user whose process
// stores them need not be the user whose process sends them.
func (h *Home) OwnOutgoing() error {
	return h.rootOwner.GiveTree(filepath.Join(h.Root, outgoing.Folder))
}

// Close closes everything that is open, the bus last, because its lock guards the rest. If all of that succeeds, it
// also removes the files that an older release has left.
func (h *Home) Close() error {
	var errs []error
	for _, w := range []*workspace.Workspaces{h.overrideDir, h.Workspaces} {
		if w != nil {
			errs = append(errs, w.Close())
		}
	}
	if h.Snapshots != nil {
		errs = append(errs, h.Snapshots.Close())
	}
	if h.Outgoing != nil {
		errs = append(errs, h.Outgoing.Close())
	}
	if h.Book != nil {
		h.removeNote()
		errs = append(errs, h.Book.Close())
	}
	if h.Store != nil {
		errs = append(errs, h.Store.Close())
	}
	if h.server != nil {
		errs = append(errs, h.server.Close())
	}
	if h.complete && errors.Join(errs...) == nil {
		errs = append(errs, h.RemoveBefore())
	}
	if h.Bus != nil {
		errs = append(errs, h.Bus.Close())
	}
	return errors.Join(append(errs, h.giveToOwner())...)
}

// RemoveBefore removes the files that an older release has left and that are no longer used.
func (h *Home) RemoveBefore() error { return homedb.RemoveBefore(h.Dir) }

// Token returns the owner's token for the API. It is created at first use, in a file that only the owner can read.
func (h *Home) Token() (string, error) {
	path := filepath.Join(h.Dir, TokenFile)
	raw, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(raw))) >= 16 {
		return strings.TrimSpace(string(raw)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the owner's token: %w", err)
	}
	made := "pk_" + rand.Text() + rand.Text()
	next := path + ".new"
	if err := os.WriteFile(next, []byte(made+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the owner's token: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return "", fmt.Errorf("write the owner's token: %w", err)
	}
	return made, nil
}
