package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/server/skillfolders"
	"parley/cmd/parley/terminal/client"
	"parley/sessions/audit"
	"parley/sessions/sqldb"
	"parley/tools/guard"
	"parley/tools/knowledge"
	"parley/tools/sandbox"
	"parley/tools/skills"
)

// checkSandbox runs a command to find out which sandbox agents' commands can run in on this
// machine. It also says which tools of skills cannot run there, and whether a browser makes pictures there.
func checkSandbox(ctx context.Context, cfg *config.Config, skills *skillfolders.Catalog) []Finding {
	box, err := sandbox.Open(ctx, home.SandboxConfig(cfg, slog.New(slog.DiscardHandler)))
	all := append([]Finding{describeSandbox(cfg, skills, box, err)}, checkCanvas(ctx, cfg, box, err)...)
	if err != nil {
		return all
	}
	for _, p := range skills.Unsuited(box.Mode()) {
		all = append(all, Finding{Part: "skills", State: wrong, Detail: p.File + ": " + p.Wrong, Remedy: "agents can't use it until this is fixed: " + p.Remedy})
	}
	return all
}

// describeSandbox describes the sandbox that was opened, or says why err kept it from being opened.
func describeSandbox(cfg *config.Config, skills *skillfolders.Catalog, box *sandbox.Box, err error) Finding {
	f := Finding{Part: "sandbox", State: fine}
	absent, none := errors.AsType[*sandbox.AbsentError](err)
	unkept, refused := errors.AsType[*sandbox.SettingError](err)
	switch {
	case none:
		f.State, f.Detail, f.Remedy = note, absent.Error()+"; agents have no tools that run commands, and can't read documents", absent.Remedy()
		if cfg.RunsCommands() {
			f.State = wrong
		}
		if names := skills.WithPrograms(); len(names) > 0 {
			f.State, f.Detail = wrong, f.Detail+"; they don't have the tools of these skills either: "+strings.Join(names, ", ")
		}
	case refused:
		f.State, f.Detail, f.Remedy = wrong, unkept.Key+": "+unkept.Wrong, "parley serve wouldn't start: "+unkept.Remedy+": "+settingOf(cfg, unkept.Key)
	case err != nil:
		f.State, f.Detail = wrong, err.Error()
	case box.Mode() == sandbox.None:
		f.State, f.Detail = note, "none: agents' commands run without isolation"+asUser()
		f.Remedy = "set another mode if anybody but you talks to the bot: " + settingOf(cfg, "sandbox.mode")
	default:
		f.Detail = "agents' commands run in " + string(box.Mode()) + ", " + boundedBy(box) + asUser()
		if why := box.WhyNotBetter(); why != "" {
			f.Detail += ", without a network (" + why + ")"
		}
	}
	return f
}

// asUser returns in words which user commands run as, if root runs this program.
func asUser() string {
	if os.Geteuid() != 0 {
		return ""
	}
	return fmt.Sprintf(", as the user who owns the workspaces, or else as user %d, and never as root", sandbox.CommandUser)
}

// boundedBy returns in words what keeps commands within their limits for memory and processes.
func boundedBy(box *sandbox.Box) string {
	if box.Groups() {
		return "limited by control groups"
	}
	return "with limits that are checked 10 times a second, without control groups"
}

// checkSkills returns findings about the operator's skills; none if no folders with skills are
// configured.
func checkSkills(found *skillfolders.Catalog) (all []Finding) {
	if len(found.Skills) > 0 {
		var names []string
		for _, s := range found.Skills {
			names = append(names, s.Name)
		}
		all = append(all, Finding{Part: "skills", State: fine, Detail: strings.Join(names, ", ")})
	}
	for _, p := range found.Problems {
		f := Finding{Part: "skills", State: wrong, Detail: p.File + ": " + p.Wrong, Remedy: "parley serve wouldn't start: " + p.Remedy}
		switch {
		case p.IsMinor:
			f.State, f.Remedy = note, p.Remedy
		case p.Skill != "":
			f.Remedy = "agents can't use it until this is fixed: " + p.Remedy
		}
		all = append(all, f)
	}
	return all
}

// checkRates returns a finding for each rate of NAME__TOOL for which there is no MCP server, skill or node called NAME. It
// doesn't check the tool, nor a NAME with a *. Rates for other unknown tools are problems of the configuration.
func checkRates(cfg *config.Config, found *skillfolders.Catalog) (all []Finding) {
	for _, text := range cfg.Tools.Rate {
		rate, err := guard.ParseRate(text)
		owner, _, isTheirs := strings.Cut(rate.Tools(), "__")
		if err != nil || !isTheirs || strings.Contains(owner, "*") || slices.ContainsFunc(found.Skills, func(s skills.Skill) bool { return s.Name == owner }) {
			continue
		}
		if _, isServer := cfg.MCP[owner]; !isServer && !isNodeNamed(cfg, owner) {
			all = append(all, Finding{Part: "rates", State: note, Detail: fmt.Sprintf(textRateOfNothing, text, owner), Remedy: "check the name in " + settingOf(cfg, "tools.rate")})
		}
	}
	return all
}

// checkNamedFiles checks the operator's files and folders that are named in the settings, without
// which serve would not start.
func checkNamedFiles(cfg *config.Config) (found []Finding) {
	add := func(part, detail string, err error, remedy string) {
		f := Finding{Part: part, State: fine, Detail: detail}
		if err != nil {
			f.State, f.Detail, f.Remedy = wrong, err.Error(), "parley serve wouldn't start: "+remedy
		}
		found = append(found, f)
	}
	if dir := cfg.Knowledge.Dir; dir != "" {
		base, err := knowledge.Open(dir)
		if err == nil {
			err = base.Close()
		}
		add("knowledge", dir, err, "create the folder, or name another: "+settingOf(cfg, "knowledge.dir"))
	}
	if file := cfg.Budget.Prices; file != "" {
		_, err := models.Prices(cfg)
		add("prices", file, err, "fix the list, or leave the setting out to use the built-in list")
	}
	if file := cfg.Audit.File; file != "" {
		add("audit", file, probeAppend(file), "name a file in an existing folder: "+settingOf(cfg, "audit.file"))
	}
	return found
}

// probeAppend returns an error if nothing can be appended to a file, or if it cannot be created. It
// doesn't create the file.
func probeAppend(file string) error {
	if err := audit.CheckRegular(file); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return probeWrite(filepath.Dir(file))
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// checkPort checks that serve could listen on the configured address.
func checkPort(ctx context.Context, cfg *config.Config) []Finding {
	if cfg.HTTP.Listen == "" {
		return nil
	}
	f := Finding{Part: "http", State: fine, Detail: cfg.HTTP.Listen}
	if role, err := client.Dial(cfg.Home).Role(ctx); err == nil && role.Receives() {
		f.Detail += ", which this home's server uses"
		return []Finding{f}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.HTTP.Listen)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		f.State, f.Detail = wrong, err.Error()
		f.Remedy = "parley serve wouldn't start: stop the program that uses the port, or set another address, or \"\" for none: " + settingOf(cfg, "http.listen")
	}
	return []Finding{f}
}

// readTimeout is how long doctor reads a database to find damage. About 500 MB can be read in that time.
const readTimeout = 2 * time.Second

// checkFiles checks that the home's databases are undamaged, unless reading them takes too long. It changes nothing.
func checkFiles(ctx context.Context, cfg *config.Config) (found []Finding) {
	for _, file := range []string{home.BusFile, home.StoreFile, homedb.BookFile} {
		path := filepath.Join(cfg.Home, file)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		f := Finding{Part: file, State: fine, Detail: "whole"}
		asked, cancel := context.WithTimeout(ctx, readTimeout)
		err := sqldb.Examine(asked, path)
		switch {
		case errors.Is(err, sqldb.ErrDamaged):
			f.State, f.Detail = wrong, fmt.Sprintf("%s: %v", path, err)
			f.Remedy = "stop the server, keep a copy of the home, and restore a backup: parley restore FILE"
		case asked.Err() != nil:
			f.State, f.Detail, f.Remedy = note, fmt.Sprintf(textNotRead, readTimeout), "to check it, run sqlite3 "+path+" 'PRAGMA integrity_check', which takes a while"
		case err != nil:
			f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf("%s: %v", path, err), "let this user read and write it"
		}
		cancel()
		found = append(found, f)
	}
	return found
}
