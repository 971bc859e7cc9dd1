// Package doctor checks what a bot needs before it serves, and says what to change in each part that is faulty.
//
// doctor.go calls the checks; local.go checks this machine, canvas.go the browser that makes pictures, fleet.go what a fleet
// shares, model.go the models, speech.go what reads aloud, recall.go the search index, servers.go MCP servers, nodes.go nodes, their
// broker, and machines that ssh reaches, traces.go the collector of traces, subscriptions.go subscribers, and archive.go the
// archive of the audit. examiner.go runs the checks for programs, while the bot serves.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/server/platforms"
	"parley/cmd/parley/server/skillfolders"
	"parley/cmd/parley/terminal/client"
	"parley/sessions/sqldb"
)

// checkTimeout is how long doctor waits for each part that it checks to answer.
const checkTimeout = 20 * time.Second

// A Finding is the result of checking one part.
type Finding struct {
	Part   string `json:"part"`
	State  string `json:"state"` // ok, note or wrong
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// These are the states of a Finding.
const (
	fine  = "ok"
	note  = "note"  // the operator should know it, and need not change anything
	wrong = "wrong" // the operator has to change something
)

// NeedsChange reports whether the operator has to change something.
func (f Finding) NeedsChange() bool { return f.State == wrong }

// Examine checks all parts of a bot. A part that isn't used, or has nothing to report, may have no finding.
func Examine(ctx context.Context, cfg *config.Config) []Finding {
	found := append([]Finding{checkFile(cfg), checkHome(cfg)}, checkData(cfg)...)
	found = append(found, checkFiles(ctx, cfg)...)
	found = append(found, checkPort(ctx, cfg)...)
	found = append(found, checkBus(ctx, cfg)...)
	found = append(found, checkStore(ctx, cfg)...)
	found = append(found, checkIndex(ctx, cfg)...)
	skills := skillfolders.Find(cfg)
	found = append(found, checkWorkspaces(cfg)...)
	found = append(found, checkSandbox(ctx, cfg, skills)...)
	found = append(found, checkSkills(skills)...)
	found = append(found, checkRates(cfg, skills)...)
	found = append(found, checkNamedFiles(cfg)...)
	found = append(found, checkArchive(ctx, cfg)...)
	found = append(found, checkModels(ctx, cfg)...)
	found = append(found, checkSpeech(ctx, cfg)...)
	found = append(found, checkServers(ctx, cfg)...)
	found = append(found, checkLeftTools(ctx, cfg)...)
	found = append(found, checkNodes(ctx, cfg)...)
	found = append(found, checkBroker(ctx, cfg)...)
	found = append(found, checkSSHTargets(ctx, cfg)...)
	for _, ch := range cfg.ChannelsByName() {
		found = append(found, checkChannel(ctx, cfg, ch))
	}
	found = append(found, checkTraces(ctx, cfg)...)
	return append(found, checkSubscriptions(ctx, cfg)...)
}

// A brokenCheck is the panic of a check that ran together with others.
type brokenCheck struct {
	with  any
	stack []byte
}

// Error returns what the check panicked with.
func (b *brokenCheck) Error() string { return fmt.Sprintf("a check panicked: %v\n%s", b.with, b.stack) }

// sideBySide runs n checks in parallel and returns their findings. If a check panics, sideBySide panics with a
// *brokenCheck, so its caller can recover.
func sideBySide(n int, check func(i int) Finding) []Finding {
	found, broken := make([]Finding, n), make([]*brokenCheck, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					broken[i] = &brokenCheck{p, debug.Stack()}
				}
			}()
			found[i] = check(i)
		})
	}
	running.Wait()
	for _, b := range broken {
		if b != nil {
			panic(b)
		}
	}
	return found
}

func checkFile(cfg *config.Config) Finding {
	if cfg.File == "" {
		return Finding{Part: "configuration", State: fine, Detail: "no file; the environment and the defaults apply"}
	}
	return Finding{Part: "configuration", State: fine, Detail: cfg.File}
}

// checkHome checks that the home can be written to and that only its owner can read it.
func checkHome(cfg *config.Config) Finding {
	f := Finding{Part: "home", Detail: cfg.Home}
	info, err := os.Stat(cfg.Home)
	if errors.Is(err, os.ErrNotExist) {
		f.State, f.Detail = fine, cfg.Home+" (will be created)"
		return f
	}
	if err != nil || !info.IsDir() {
		f.State, f.Remedy = wrong, "it has to be a directory that this user may write to: choose another with --home"
		return f
	}
	if err := probeWrite(cfg.Home); err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "it can't be written to: chown it to the user that runs parley, or check the filesystem"
		return f
	}
	if err := home.CheckPermissions(cfg); err != nil {
		f.State, f.Detail = wrong, err.Error() // the error says what to do
		return f
	}
	if info.Mode().Perm()&0o077 != 0 {
		f.State, f.Remedy = note, "others can read it: run chmod 700 "+cfg.Home
		return f
	}
	f.State = fine
	return f
}

// checkLock checks that the embedded bus can be opened, or says which process has it open. It leaves the files of
// an older release as they are.
func checkLock(ctx context.Context, cfg *config.Config) Finding {
	f := Finding{Part: "bus", State: fine, Detail: textSQLite}
	c := sqlitebus.Config{Path: filepath.Join(cfg.Home, home.BusFile), Log: slog.New(slog.DiscardHandler)}
	remedy := "restore the home from a backup"
	if exists(c.Path) {
		remedy += ", or move " + c.Path + " away, which loses the messages waiting in it"
	} else if cfg.Store.URL == "" && exists(filepath.Join(cfg.Home, home.StoreFile)) {
		c.Database = func(ctx context.Context) (*sqldb.DB, error) { return homedb.Open(ctx, cfg.Home, homedb.Options{}) }
	} else {
		return f
	}
	b, err := sqlitebus.Open(ctx, c)
	if used, ok := errors.AsType[*sqlitebus.InUseError](err); ok {
		f.Detail = textSQLiteAnd + used.Error()
		return f
	}
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), remedy
	}
	return f
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkChannel asks the platform whether it accepts the channel's token, and whether the bot lacks anything there.
func checkChannel(ctx context.Context, cfg *config.Config, c config.Channel) Finding {
	f := Finding{Part: "channel " + c.Name, State: fine}
	ch, err := platforms.Open(c, platforms.AdapterParts{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		key, _ := platforms.SettingAtFault(c.Name, err)
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "set "+key
		return f
	}
	began := time.Now()
	who, err := platforms.Account(ctx, c.Platform, ch)
	if refused, ok := errors.AsType[*channels.SendError](err); ok && refused.Fault == channels.Stop {
		return f.withRefusal(cfg, c.Name, refused)
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "check the network, any proxy, and api_url"
		return f
	}
	f.Detail = fmt.Sprintf("%s answers in %d ms", who, time.Since(began).Milliseconds())
	if c.Session != config.SessionThread && c.Mode == "chat" {
		f.Detail += fmt.Sprintf("; session = %q: conversations that began before you set this won't continue", c.Session)
	}
	err = platforms.Examine(ctx, c, ch, knownChats(ctx, cfg, c))
	if refused, ok := errors.AsType[*channels.SendError](err); ok {
		return f.withRefusal(cfg, c.Name, refused)
	}
	if lack, ok := errors.AsType[*platforms.LackError](err); ok {
		f.State, f.Detail, f.Remedy = wrong, lack.Lack, lack.Remedy
		if lack.Perhaps {
			f.State = note
		}
	}
	return f
}

// maxChats is how many of the chats in which people have spoken to the bot are checked.
const maxChats = 1000

// knownChats returns the chats of a channel that the configuration names and, while a server of this home is
// running, the first of those in which people have spoken to the bot.
func knownChats(ctx context.Context, cfg *config.Config, c config.Channel) []channels.Chat {
	var all []channels.Chat
	known := map[bus.Address]bool{}
	know := func(a bus.Address) {
		if a.Channel == c.Name && !known[a] {
			known[a], all = true, append(all, channels.Chat{Address: a})
		}
	}
	for _, chat := range c.Access.Chats {
		know(bus.Address{Channel: c.Name, Chat: chat.Chat})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Targets)) {
		for _, a := range cfg.Targets[name] {
			know(a)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var met struct{ Chats []struct{ Address string } }
	page := url.Values{"channel": {c.Name}, "limit": {strconv.Itoa(maxChats)}}
	if client.Dial(cfg.Home).Get(ctx, "/v1/chats?"+page.Encode(), &met) != nil {
		return all // no server is running, or it is from another release
	}
	for _, chat := range met.Chats {
		if a, err := bus.ParseAddress(chat.Address); err == nil {
			know(a)
		}
	}
	return all
}

// withRefusal returns the finding, completed with what a platform has refused and what to do about it.
func (f Finding) withRefusal(cfg *config.Config, channel string, refused *channels.SendError) Finding {
	key := platforms.RefusedSetting(channel, refused)
	f.State, f.Detail = wrong, fmt.Sprintf("the platform rejected the token (%s)", refused.Code)
	f.Remedy = platforms.RefusalRemedy(refused) + ": " + key + ", " + cfg.Origin(key)
	return f
}
