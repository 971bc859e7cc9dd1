package onboard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"parley/deploy"
)

// Name is the name of the server's unit.
const Name = "parley.service"

// A Service says what systemd is to start, and for whom. An ordinary user gets a unit of their own, which serves
// their home. Root gets the machine's unit, which is deploy/parley.service with the paths of the program and the
// configuration. A device's node gets a unit like the server's.
type Service struct {
	Program string // absolute path
	Config  string // absolute; "" for none
	Home    string // absolute path; root's unit has its own home
	Root    bool   // whether it is the machine's unit
	Node    bool   // it starts "parley node", not "parley serve"
	Camera  bool   // whether the node may use the machine's cameras

	variables string // the content of the environment file; empty if there is none
}

// A Problem says why a service could not run, and what to do.
type Problem struct{ text string }

// Error returns why the service could not run, and what to do.
func (p *Problem) Error() string { return p.text }

// name returns the name of the service, without its ending.
func (s Service) name() string {
	if s.Node {
		return "parley-node"
	}
	return strings.TrimSuffix(Name, ".service")
}

// unit returns the name of the unit.
func (s Service) unit() string { return s.name() + ".service" }

// command returns the command that the service runs.
func (s Service) command() string {
	if s.Node {
		return "node"
	}
	return "serve"
}

// description describes the service in a few words.
func (s Service) description() string {
	if s.Node {
		return textNodeService
	}
	return textServerService
}

// ItsHome returns the home of the service.
func (s Service) ItsHome() string {
	if s.Root {
		return "/var/lib/" + s.name()
	}
	return s.Home
}

// Path returns the path at which the unit file belongs. env looks up the user's environment variables.
func (s Service) Path(env func(string) string) (string, error) {
	if s.Root {
		return filepath.Join("/etc/systemd/system", s.unit()), nil
	}
	folder := env("XDG_CONFIG_HOME")
	if folder == "" {
		if env("HOME") == "" {
			return "", &Problem{textNoPlace}
		}
		folder = filepath.Join(env("HOME"), ".config")
	}
	return filepath.Join(folder, "systemd", "user", s.unit()), nil
}

// StartCommands returns the commands that make systemd start the unit, now and whenever the machine boots.
func (s Service) StartCommands() []string {
	if s.Root {
		return []string{"systemctl daemon-reload", "systemctl enable --now " + s.name()}
	}
	return []string{"systemctl --user daemon-reload", "systemctl --user enable --now " + s.name(), "loginctl enable-linger"}
}

// StopCommand returns the command that makes systemd stop the unit, and not start it again.
func (s Service) StopCommand() string {
	if s.Root {
		return "systemctl disable --now " + s.name()
	}
	return "systemctl --user disable --now " + s.name()
}

// LogCommand returns the command that shows the service's log.
func (s Service) LogCommand() string {
	if s.Root {
		return "journalctl -u " + s.name() + " -f"
	}
	return "journalctl --user -u " + s.name() + " -f"
}

// EnvironmentFile returns the path of the file from which systemd takes the variables that the configuration reads.
// Only its owner can read it.
func (s Service) EnvironmentFile() string {
	if s.Root {
		return credentialsSource + map[bool]string{false: "environment", true: "node-environment"}[s.Node]
	}
	return filepath.Join(s.Home, map[bool]string{false: "service.env", true: "node.env"}[s.Node])
}

// environment returns the content of the environment file; "" if the configuration reads no variables. It returns a
// *Problem if env has no value for one, or one that the file can't contain. systemd doesn't get the variables that are
// set in a shell.
func (s Service) environment(env func(string) string) (string, error) {
	if s.Config == "" {
		return "", nil
	}
	raw, err := os.ReadFile(s.Config)
	if err != nil {
		return "", fmt.Errorf("read the configuration: %w", err)
	}
	variable := regexp.MustCompile(`(^|[^$])\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	var lines []string
	for text := range strings.Lines(string(raw)) {
		if strings.HasPrefix(strings.TrimSpace(text), "#") {
			continue
		}
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			name, value := found[2], env(found[2])
			if value == "" || strings.ContainsAny(value, "'\n\r") {
				return "", &Problem{fmt.Sprintf("the configuration reads ${%s}, which the service wouldn't have: when you install it, set %s to a single line without ', or put the value in a file and write ${file:PATH} in the configuration", name, name)}
			}
			if set := name + "='" + value + "'\n"; !slices.Contains(lines, set) {
				lines = append(lines, set)
			}
		}
	}
	return strings.Join(lines, ""), nil
}

// ReadVariables takes the variables that the configuration reads from env, so that Write can put them where systemd
// finds them.
func (s *Service) ReadVariables(env func(string) string) (err error) {
	s.variables, err = s.environment(env)
	return err
}

// HasVariables reports whether the configuration reads variables.
func (s Service) HasVariables() bool { return s.variables != "" }

// writeEnvironment writes the environment file. If the configuration reads no variables, it removes the file of an
// earlier configuration.
func (s Service) writeEnvironment() error {
	path := s.EnvironmentFile()
	if s.variables == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the variables of the service: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder for the environment file: %w", err)
	}
	return replace(path, s.variables)
}

// Text returns the content of the unit. An error that the operator must take care of is a *Problem.
func (s Service) Text() (string, error) {
	for _, path := range []string{s.Program, s.Config, s.Home} {
		if strings.ContainsAny(path, "\n\"%$\\") {
			return "", &Problem{fmt.Sprintf("systemd doesn't accept %q: move it to a path without \", %%, $ or \\", path)}
		}
	}
	if !s.Root {
		return s.userUnit(), nil
	}
	return s.systemUnit()
}

// environmentLine returns the line in the unit that names the environment file; "" if there is none.
func (s Service) environmentLine() string {
	if s.variables == "" {
		return ""
	}
	return "EnvironmentFile=" + s.EnvironmentFile() + "\n"
}

// userUnit returns the unit for an ordinary user.
func (s Service) userUnit() string {
	call := fmt.Sprintf("%q --home %q %s", s.Program, s.Home, s.command())
	if s.Config != "" {
		call = fmt.Sprintf("%q --home %q --config %q %s", s.Program, s.Home, s.Config, s.command())
	}
	reload := "ExecReload=/bin/kill -HUP $MAINPID\n"
	if s.Node { // SIGHUP would end a node
		reload = ""
	}
	return `# ` + s.description() + `, as one user's service. Written by parley ` + s.command() + ` --install.

[Unit]
Description=` + s.description() + `
# systemd keeps restarting it until everything that it needs is up, however long that takes.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=` + call + `
` + reload + s.environmentLine() + `# systemd restarts it no matter how it ended, unless somebody has to correct the configuration first.
Restart=always
RestartSec=1
RestartPreventExitStatus=78
# Longer than [serve] drain, once for turns and once for sends.
TimeoutStopSec=30
KillMode=mixed
UMask=0077
LimitNOFILE=65536
# If memory runs short, the kernel ends an agent's command first.
OOMPolicy=continue
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`
}

// credentialsSource is the folder in which root stores secrets, which systemd passes on to the machine's unit.
const credentialsSource = "/etc/parley/credentials/"

// credentials returns the folder in which the machine's unit finds its secrets.
func (s Service) credentials() string { return "/run/credentials/" + s.unit() + "/" }

// systemUnit returns the machine's unit: it runs as a user that exists only while the unit runs, and reads its
// secrets as credentials.
func (s Service) systemUnit() (string, error) {
	var names []string
	switch {
	case s.Config == "" && !s.Node:
		return "", &Problem{"the system service needs a configuration that everybody can read: write /etc/parley/parley.toml, and give it with --config"}
	case s.Config != "":
		raw, err := os.ReadFile(s.Config)
		if err != nil {
			return "", fmt.Errorf("read the configuration: %w", err)
		}
		if err := checkReadable(s.Config); err != nil {
			return "", err
		}
		if names, err = s.secretsOf(string(raw)); err != nil {
			return "", err
		}
	}
	unit := deploy.Unit()
	if s.Node { // the comment at the top describes the installation of the server's unit
		unit = "# " + s.description() + ". Written by parley node --install from the server's unit.\n\n" + unit[strings.Index(unit, "[Unit]\n"):]
	}
	var lines []string
	for line := range strings.Lines(unit) {
		lines = append(lines, s.systemLine(line, names))
	}
	return strings.Join(lines, ""), nil
}

// systemLine returns the line of the machine's unit that replaces a line of deploy/parley.service. names are the
// secrets that the configuration reads.
func (s Service) systemLine(line string, names []string) string {
	key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
	switch {
	case key == "ExecStart" && s.Config == "":
		return fmt.Sprintf("ExecStart=%q %s\n", s.Program, s.command())
	case key == "ExecStart":
		return fmt.Sprintf("ExecStart=%q %s --config %q\n", s.Program, s.command(), s.Config)
	case key == "LoadCredential":
		return "" // these settings follow the home
	case key == "Environment" && strings.HasPrefix(value, "PARLEY_HOME="):
		line = "Environment=PARLEY_HOME=" + s.ItsHome() + "\n" + s.environmentLine()
		for _, name := range names {
			line += "LoadCredential=" + name + ":" + credentialsSource + name + "\n"
		}
	case s.Node:
		return s.nodeLine(line, key)
	}
	return line
}

// nodeLine returns the line of a node's machine unit that replaces a line of the server's.
func (s Service) nodeLine(line, key string) string {
	switch {
	case key == "ExecReload": // SIGHUP would end a node
		return ""
	case key == "Description":
		return "Description=" + s.description() + "\n"
	case key == "StateDirectory":
		return "StateDirectory=" + s.name() + "\n"
	case s.Camera && key == "PrivateDevices":
		return "PrivateDevices=no\nSupplementaryGroups=video\n"
	case s.Camera && key == "PrivateUsers":
		return "PrivateUsers=no\n"
	}
	return line
}

// secretsOf returns the names of the secrets that a configuration reads as systemd credentials.
func (s Service) secretsOf(config string) ([]string, error) {
	secretFile := regexp.MustCompile(`\$\{file:([^}]*)\}`)
	var names []string
	for line := range strings.Lines(config) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, found := range secretFile.FindAllStringSubmatch(line, -1) {
			name, ok := strings.CutPrefix(found[1], s.credentials())
			if !ok || name == "" || strings.Contains(name, "/") {
				return nil, &Problem{fmt.Sprintf("the service runs as its own user, who can't read %s: put it at %sNAME with mode 0600, and write ${file:%sNAME} in the configuration", found[1], credentialsSource, s.credentials())}
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if _, err := os.Stat(credentialsSource + name); err != nil {
			return nil, &Problem{fmt.Sprintf("the configuration reads the credential %s, but there's no %s: put it there, with mode 0600 (%v)", name, credentialsSource+name, err)}
		}
	}
	return names, nil
}

// checkReadable returns a *Problem if not every user may read a file. The unit's own user, which must read it,
// doesn't exist yet and so cannot be checked.
func checkReadable(file string) error {
	for path, want := file, os.FileMode(0o004); ; path, want = filepath.Dir(path), 0o001 {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("check %s: %w", path, err)
		}
		if info.Mode().Perm()&want == 0 {
			return &Problem{fmt.Sprintf("the service runs as its own user, who can't read %s: put the configuration in /etc/parley, readable by everybody, with its secrets as credentials", path)}
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

// Write writes the unit and the variables that it names. It replaces a unit that differs only if replace is true;
// otherwise it writes nothing and returns an error that wraps os.ErrExist.
func (s Service) Write(path string, replace bool) error {
	text, err := s.Text()
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	same := err == nil && string(old) == text
	if err == nil && !same && !replace {
		return fmt.Errorf("write %s: %w", path, os.ErrExist)
	}
	if err := s.writeEnvironment(); err != nil || same {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the unit's folder: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+s.unit()+"-*")
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
		_ = os.Remove(f.Name()) // a partial unit is useless
		return fmt.Errorf("write the unit: %w", err)
	}
	return nil
}
