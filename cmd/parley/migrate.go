package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/sqlitebus"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/backup"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/migrate"
	"parley/cmd/parley/terminal"
	"parley/sessions/sqldb"
	"parley/tools/crash"
	"parley/tools/plainjson"
)

type migrateCmd struct {
	To string `required:"" placeholder:"CONFIG" help:"The configuration that names the new [bus] and [store]."`
}

// A migrateReport is what the command prints: the migration's report, with the steps that are left to do by hand.
type migrateReport struct {
	*migrate.Report
	Next []string `json:"next"`
}

// Help shows examples.
func (migrateCmd) Help() string { return examples("parley migrate --to fleet.toml") }

// Run moves the home's data to the bus and the store in another configuration.
func (m migrateCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	to, err := loadConfig(config.Options{File: m.To, Home: flags.Home, WithoutSecrets: true})
	if err != nil {
		return err
	}
	from, err := oldFolders(flags, to)
	if err != nil {
		return err
	}
	if err := backup.Finish(to.Home); err != nil { // finish an interrupted restore
		return err
	}
	bar, log := progressBar(flags, tty), slog.New(slog.DiscardHandler)
	if !flags.JSON {
		log = slog.New(slog.NewTextHandler(bar, nil))
	}
	report, err := migrate.Run(ctx, migrate.Config{
		Home: to.Home,
		Bus: redisbus.Config{URL: string(to.Bus.URL), Prefix: to.Bus.Prefix, Log: log,
			Caps: bus.Caps{Inbound: to.Limits.Waiting, Outbound: to.Limits.Outbound}},
		Shards:   to.Bus.ShardCount(),
		StoreURL: string(to.Store.URL), BusName: home.BusName(to), StoreName: home.StoreName(string(to.Store.URL)), Log: log,
		Progress: func(p migrate.Progress) { showMigrating(bar, p) },
		Point:    crash.Points(),
	})
	bar.Clear()
	if given := home.OwnerOf(to.Home).GiveHome(to.Home); err == nil {
		err = given
	}
	if err != nil && ctx.Err() != nil {
		return explainInterruption(to.Home)
	}
	if err != nil {
		return explainMigrateError(err, to)
	}
	r := migrateReport{report, nextSteps(to, from)}
	if flags.JSON {
		return plainjson.NewEncoder(tty.Out).Encode(r)
	}
	return r.print(tty.Out)
}

// showMigrating shows how far a migration is.
func showMigrating(bar *terminal.Bar, p migrate.Progress) {
	steps := migrate.Steps()
	far := ""
	if p.Of > 0 {
		far = fmt.Sprintf("%.0f %% copied and compared", 100*float64(p.Done)/float64(p.Of))
	}
	bar.Show(partDone(slices.Index(steps, p.Step), len(steps), p.Done, p.Of), string(p.Step), far)
}

// explainInterruption returns an error that says what an interrupted migration has left.
func explainInterruption(home string) error {
	note, err := migrate.Read(home)
	if err != nil {
		return err
	}
	if note.Unfinished() {
		return fmt.Errorf(textMigrationStays, errInterrupted)
	}
	return fmt.Errorf(textNothingMoved, errInterrupted)
}

// oldFolders returns the directories in which the sessions' files have been until now, by agent; "" is the root for
// all others.
func oldFolders(flags *globalFlags, to *config.Config) (map[string]string, error) {
	from, err := loadConfig(config.Options{File: flags.Config, Home: flags.Home, WithoutSecrets: true})
	if err != nil {
		return nil, err
	}
	if from.File == to.File { // the file was already changed, so nobody knows what it said before
		from.Agents, from.Workspace.Root = nil, filepath.Join(to.Home, "workspaces")
	}
	folders, err := home.AgentFolders(from)
	if err != nil {
		return nil, err
	}
	folders[""] = from.Workspace.Root
	return folders, nil
}

// explainMigrateError adds to an error what the operator can do about it. It returns other errors unchanged.
func explainMigrateError(err error, to *config.Config) error {
	filled, isFilled := errors.AsType[*sqldb.NotEmptyError](err)
	used, isUsed := errors.AsType[*sqlitebus.InUseError](err)
	switch {
	case errors.Is(err, migrate.ErrNowhere):
		return &config.SettingError{Where: to.File, Key: "store.url", Remedy: "not set: say where to move the bot, with [store] url; [bus] url is optional"}
	case isUsed:
		return fmt.Errorf("%w: stop it first", used)
	case isFilled:
		return fmt.Errorf("%s already has a bot in it (%w): name an empty database", home.StoreName(string(to.Store.URL)), filled)
	case errors.Is(err, redisbus.ErrOccupied):
		return fmt.Errorf("%w: give this bot its own [bus] prefix, or delete what's there", err)
	case errors.Is(err, redisbus.ErrServed):
		return fmt.Errorf("%w: stop them first", err)
	case errors.Is(err, migrate.ErrDiffers):
		return fmt.Errorf("%w: nothing in the home was changed; keep using it", err)
	}
	return err
}

// nextSteps returns what the operator has to do by hand after a migration; from says where the sessions' files have
// been.
func nextSteps(to *config.Config, from map[string]string) []string {
	var next []string
	root := from[""]
	if root != to.Workspace.Root && isNotEmpty(root) {
		next = append(next, fmt.Sprintf("copy the sessions' files before you first run parley serve: cp -a %s/. %s/", root, to.Workspace.Root))
	} else if to.Bus.URL != "" {
		next = append(next, fmt.Sprintf("the sessions' files stay in %s: every process needs that same directory as [workspace] root", root))
	}
	for _, agent := range slices.Sorted(maps.Keys(to.Agents)) {
		was, now := cmp.Or(from[agent], to.Workspace.Root), cmp.Or(to.Agents[agent].Workspace, to.Workspace.Root)
		if was != now && (isNotEmpty(filepath.Join(was, agent)) || isNotEmpty(filepath.Join(root, agent))) {
			next = append(next, fmt.Sprintf("then move the files of %s's conversations: mkdir -p %s && mv %s %s/", agent, now, filepath.Join(was, agent), now))
		}
	}
	next = append(next, "run parley serve with this configuration: "+to.File)
	if left := leftBehind(to); len(left) > 0 {
		next = append(next, fmt.Sprintf("nothing uses the old data in %s anymore, not even parley forget: delete %s once everything works", to.Home, strings.Join(left, " and ")))
	}
	return next
}

// leftBehind lists the databases in the home that are no longer used after a migration.
func leftBehind(to *config.Config) (files []string) {
	all := []string{home.StoreFile}
	if to.Bus.URL != "" {
		all = append(all, home.BusFile)
	}
	for _, file := range all {
		if _, err := os.Stat(filepath.Join(to.Home, file)); err == nil {
			files = append(files, file)
		}
	}
	return files
}

// isNotEmpty reports whether a directory contains anything. It also returns true if the directory cannot be read.
func isNotEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}

func (r migrateReport) print(out io.Writer) error {
	to := r.Store
	if r.Bus != "" {
		to += " and " + r.Bus
	}
	_, err := fmt.Fprintf(out, "moved to %s in %s: %d sessions with %d entries, %d sends, %d pairings, %d messages waiting in %d mailboxes, %d dead letters\n",
		to, r.Took.Round(time.Millisecond), r.Rows["sessions"], r.Rows["entries"], r.Rows["sends"], r.Rows["pairings"],
		r.Mail.Messages, r.Mail.Mailboxes, r.Mail.Dead)
	for _, line := range r.Next {
		if err == nil {
			_, err = fmt.Fprintln(out, "next:", line)
		}
	}
	return err
}
