// Package unit writes the unit file with which systemd starts Parley and keeps it running.
//
// An ordinary user gets a unit of their own, which serves their home. Root gets the machine's
// unit, which is deploy/parley.service with the paths of the program and the configuration.
package unit

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Name is the name of the unit.
const Name = "parley.service"

// system is the content of deploy/parley.service.
//
//go:embed parley.service
var system string

// A Service says what systemd is to start, and for whom.
type Service struct {
	Program string // absolute
	Config  string // absolute; "" for none
	Home    string // absolute; root's unit has a home of its own
	Root    bool   // the machine's unit
}

// A Problem says why a service could not run, and what to do.
type Problem struct{ text string }

// Error says what to do.
func (p *Problem) Error() string { return p.text }

// Path returns the path at which the unit file belongs. env looks up environment variables of the
// user.
func (s Service) Path(env func(string) string) (string, error) {
	if s.Root {
		return filepath.Join("/etc/systemd/system", Name), nil
	}
	folder := env("XDG_CONFIG_HOME")
	if folder == "" {
		if env("HOME") == "" {
			return "", &Problem{"there is no place for the unit: neither $HOME nor $XDG_CONFIG_HOME is set"}
		}
		folder = filepath.Join(env("HOME"), ".config")
	}
	return filepath.Join(folder, "systemd", "user", Name), nil
}

// Commands returns the shell commands that make systemd start the unit, one a line.
func (s Service) Commands() []string {
	if s.Root {
		return []string{"systemctl daemon-reload", "systemctl enable --now parley"}
	}
	return []string{"systemctl --user daemon-reload", "systemctl --user enable --now parley", "loginctl enable-linger   # so that it serves while you are not logged in"}
}

// Text returns the content of the unit. An error that the operator must see to is a
// *Problem.
func (s Service) Text() (string, error) {
	for _, path := range []string{s.Program, s.Config, s.Home} {
		if strings.ContainsAny(path, "\n\"%$\\") {
			return "", &Problem{fmt.Sprintf("systemd does not take %q as it is: move it to a path without \", %%, $ and \\", path)}
		}
	}
	if !s.Root {
		return s.userUnit(), nil
	}
	return s.systemUnit()
}

// userUnit returns the unit of an ordinary user.
func (s Service) userUnit() string {
	call := fmt.Sprintf("%q --home %q serve", s.Program, s.Home)
	if s.Config != "" {
		call = fmt.Sprintf("%q --home %q --config %q serve", s.Program, s.Home, s.Config)
	}
	return `# Parley, an AI agent in chats, as a service of one user. Written by parley serve --install.

[Unit]
Description=Parley, an AI agent in chats
# However long it takes until what it needs is up: it is tried again for ever.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=` + call + `
ExecReload=/bin/kill -HUP $MAINPID
# It comes back whatever ended it, but for a configuration that has to be corrected first.
Restart=always
RestartSec=1
RestartPreventExitStatus=78
# Longer than [serve] drain, once for turns and once for sends.
TimeoutStopSec=30
KillMode=mixed
UMask=0077
LimitNOFILE=65536
# Where memory is short the kernel ends a command of an agent first.
OOMPolicy=continue
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`
}

// The machine's unit finds its secrets in the folder credentials. Root keeps them in the folder
// credentialsSource, from where systemd passes them on.
const (
	credentials       = "/run/credentials/parley.service/"
	credentialsSource = "/etc/parley/credentials/"
)

// systemUnit returns the machine's unit: it runs as a user that exists only while it runs, and
// reads its secrets as credentials.
func (s Service) systemUnit() (string, error) {
	if s.Config == "" {
		return "", &Problem{"the machine's service needs a configuration that everybody may read: write /etc/parley/parley.toml, and name it with --config"}
	}
	raw, err := os.ReadFile(s.Config)
	if err != nil {
		return "", fmt.Errorf("read the configuration: %w", err)
	}
	if err := checkReadable(s.Config); err != nil {
		return "", err
	}
	names, err := secretsOf(string(raw))
	if err != nil {
		return "", err
	}
	var lines []string
	for line := range strings.Lines(system) {
		switch {
		case strings.HasPrefix(line, "ExecStart="):
			line = fmt.Sprintf("ExecStart=%q serve --config %q\n", s.Program, s.Config)
		case strings.HasPrefix(line, "LoadCredential="):
			continue // they follow the home
		case strings.HasPrefix(line, "Environment=PARLEY_HOME="):
			for _, name := range names {
				line += "LoadCredential=" + name + ":" + credentialsSource + name + "\n"
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ""), nil
}

// secretsOf returns the names of the secrets that a configuration reads as credentials of
// systemd.
func secretsOf(config string) ([]string, error) {
	secretFile := regexp.MustCompile(`\$\{file:([^}]*)\}`)
	var names []string
	for line := range strings.Lines(config) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, found := range secretFile.FindAllStringSubmatch(line, -1) {
			name, ok := strings.CutPrefix(found[1], credentials)
			if !ok || name == "" || strings.Contains(name, "/") {
				return nil, &Problem{fmt.Sprintf("the service runs under a user of its own, who cannot read %s: put it at %sNAME with mode 0600, and write ${file:%sNAME} in the configuration", found[1], credentialsSource, credentials)}
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if _, err := os.Stat(credentialsSource + name); err != nil {
			return nil, &Problem{fmt.Sprintf("the configuration reads the credential %s, and there is no %s: put it there, with mode 0600 (%v)", name, credentialsSource+name, err)}
		}
	}
	return names, nil
}

// checkReadable returns a *Problem if not every user may read a file. The unit's own user, which
// must read it, does not exist yet and so cannot be checked.
func checkReadable(file string) error {
	for path, want := file, os.FileMode(0o004); ; path, want = filepath.Dir(path), 0o001 {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("look at %s: %w", path, err)
		}
		if info.Mode().Perm()&want == 0 {
			return &Problem{fmt.Sprintf("the service runs under a user of its own, who cannot get at %s: put the configuration below /etc/parley, readable by all, with its secrets as credentials", path)}
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

// Write writes the unit. It replaces an existing one only if replace is true, and
// otherwise returns os.ErrExist.
func (s Service) Write(path string, replace bool) error {
	text, err := s.Text()
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err == nil && string(old) == text {
		return nil
	}
	if err == nil && !replace {
		return fmt.Errorf("write %s: %w", path, os.ErrExist)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the unit's folder: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+Name+"-*")
	if err != nil {
		return fmt.Errorf("write the unit: %w", err)
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // half a unit is nobody's
		return fmt.Errorf("write the unit: %w", err)
	}
	return nil
}
