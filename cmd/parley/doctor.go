package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
)

type doctorCmd struct{}

// A finding is what doctor has to say about one part.
type finding struct {
	Part   string `json:"part"`
	State  string `json:"state"` // ok, note or wrong
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

const (
	fine  = "ok"
	note  = "note"
	wrong = "wrong"
)

// Run checks everything that can be checked and says what to change. It fails
// if something is wrong.
func (doctorCmd) Run(ctx context.Context, c *cli, tty terminal) error {
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	found := append([]finding{checkFile(cfg), checkHome(cfg)}, checkData(cfg)...)
	found = append(found, checkFiles(ctx, cfg)...)
	found = append(found, checkPort(ctx, cfg)...)
	found = append(found, checkBus(ctx, cfg)...)
	found = append(found, checkStore(ctx, cfg)...)
	found = append(found, checkWorkspace(cfg), checkModel(ctx, cfg))
	for _, ch := range channelsByName(cfg) {
		found = append(found, checkChannel(ctx, cfg, ch))
	}
	if c.JSON {
		err = json.NewEncoder(tty.out).Encode(found)
	} else {
		err = report(tty.out, found)
	}
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.State == wrong {
			return errors.New("something is wrong, see above")
		}
	}
	return nil
}

func report(out io.Writer, found []finding) error {
	for _, f := range found {
		if _, err := fmt.Fprintf(out, "%-6s %s: %s\n", f.State, f.Part, f.Detail); err != nil {
			return err
		}
		if f.Remedy != "" {
			if _, err := fmt.Fprintf(out, "       → %s\n", f.Remedy); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFile(cfg *config.Config) finding {
	if cfg.File == "" {
		return finding{Part: "configuration", State: fine, Detail: "no file; the environment and the defaults are in force"}
	}
	return finding{Part: "configuration", State: fine, Detail: cfg.File}
}

// checkHome finds out whether the home can be written and is its owner's alone.
func checkHome(cfg *config.Config) finding {
	f := finding{Part: "home", Detail: cfg.Home}
	info, err := os.Stat(cfg.Home)
	if errors.Is(err, os.ErrNotExist) {
		f.State, f.Detail = fine, cfg.Home+" (will be created)"
		return f
	}
	if err != nil || !info.IsDir() {
		f.State, f.Remedy = wrong, "it has to be a directory that this user may write: choose another with --home"
		return f
	}
	if err := probeWrite(cfg.Home); err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "it cannot be written: chown it to the user that runs parley, or look at the filesystem"
		return f
	}
	if err := home.CheckPermissions(cfg); err != nil {
		f.State, f.Detail = wrong, err.Error() // it says what to do
		return f
	}
	if info.Mode().Perm()&0o077 != 0 {
		f.State, f.Remedy = note, "others can look into it: chmod 700 "+cfg.Home
		return f
	}
	f.State = fine
	return f
}

func checkLock(ctx context.Context, cfg *config.Config) finding {
	f := finding{Part: "bus", State: fine, Detail: "SQLite in the home"}
	path := filepath.Join(cfg.Home, home.BusFile)
	if _, err := os.Stat(path); err != nil {
		return f
	}
	b, err := sqlitebus.Open(ctx, sqlitebus.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if used, ok := errors.AsType[*sqlitebus.InUseError](err); ok {
		f.Detail = "SQLite in the home; " + used.Error()
		return f
	}
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "restore the home from a backup, or move "+path+" away: what waits in it is then lost"
	}
	return f
}

// checkChannel asks the platform whether it takes the token.
func checkChannel(ctx context.Context, cfg *config.Config, c config.Channel) finding {
	f := finding{Part: "channel " + c.Name, State: fine}
	if !c.Built() {
		f.State, f.Detail = note, c.Platform+" is not built yet; the channel has no effect"
		return f
	}
	ch, err := openChannel(c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		key, _ := settingAtFault(err)
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "set channels."+c.Name+"."+key
		return f
	}
	began := time.Now()
	who, err := account(ctx, c.Platform, ch)
	if refused, ok := errors.AsType[*channels.SendError](err); ok && refused.Fault == channels.Stop {
		return f.refused(cfg, c.Name, refused)
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), "look at the network, a proxy, or api_url"
		return f
	}
	f.Detail = fmt.Sprintf("%s answers in %d ms", who, time.Since(began).Milliseconds())
	if p, ok := platformNamed(c.Platform); ok && p.examine != nil {
		return p.examine(ctx, cfg, c, ch, f)
	}
	return f
}

// refused makes of it what a platform's refusal says.
func (f finding) refused(cfg *config.Config, channel string, refused *channels.SendError) finding {
	key := faultyKey(channel, refused)
	f.State, f.Detail = wrong, fmt.Sprintf("the platform refuses the token (%s)", refused.Code)
	f.Remedy = cmp.Or(refused.Remedy, "set the one that the platform gave you") + ": " + key + ", " + home.Origin(cfg, key)
	return f
}
