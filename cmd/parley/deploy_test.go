package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal"
)

// The files in deploy can't run here, so these tests parse them and compare them with the program.

func deployed(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// accepts fails the test unless the program accepts these arguments.
func accepts(t *testing.T, args []string) {
	t.Helper()
	parser, err := newParser(&cli{}, terminal.Terminal{Out: io.Discard, Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Errorf("the program does not take %q: %v", args, err)
	}
	if i := slices.Index(args, "--role"); i >= 0 {
		if _, err := parseRole(args[i+1]); err != nil {
			t.Error(err)
		}
	}
}

// An instruction is one of a Dockerfile's.
type instruction struct{ name, args string }

// stages parses a Dockerfile, as far as ours go.
func stages(t *testing.T, text string) (names []string, of map[string][]instruction) {
	t.Helper()
	known := []string{"FROM", "RUN", "COPY", "ARG", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD", "WORKDIR"}
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	of = map[string][]instruction{}
	for line := range strings.SplitSeq(text, "\n") {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "":
			continue
		case !slices.Contains(known, name):
			t.Errorf("a Dockerfile knows no %q here", name)
		case name == "FROM":
			_, stage, ok := strings.Cut(args, " AS ")
			if !ok {
				t.Errorf("FROM %s has no name", args)
			}
			names = append(names, stage)
		}
		if len(names) == 0 {
			t.Fatalf("%s before FROM", name)
		}
		last := names[len(names)-1]
		of[last] = append(of[last], instruction{name, args})
	}
	return names, of
}

func find(list []instruction, name string) (args []string) {
	for _, i := range list {
		if i.name == name {
			args = append(args, i.args)
		}
	}
	return args
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	names, of := stages(t, deployed(t, "Dockerfile"))
	if want := []string{"build", "parley"}; !slices.Equal(names, want) {
		t.Fatalf("the stages are %q, want %q", names, want)
	}
	mod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)[1]
	if from := find(of["build"], "FROM")[0]; !strings.HasPrefix(from, "golang:"+string(language)+"-") {
		t.Errorf("it is built with %s, and go.mod wants %s", from, language)
	}
	if run := strings.Join(find(of["build"], "RUN"), "\n"); !strings.Contains(run, "CGO_ENABLED=0") || !strings.Contains(run, "-X main.version=") {
		t.Errorf("the program is not built static, with its version: %s", run)
	}
	for _, image := range names[1:] {
		i := of[image]
		if user := find(i, "USER"); len(user) != 1 || user[0] != "65532:65532" {
			t.Errorf("%s runs as %q", image, user)
		}
		for _, c := range find(i, "COPY") {
			if !strings.Contains(c, "--from=build ") {
				t.Errorf("%s takes %q from elsewhere than the build", image, c)
			}
		}
		set := strings.Fields(strings.Join(find(i, "ENV"), " "))
		if volume := strings.Trim(find(i, "VOLUME")[0], `[]"`); !slices.Contains(set, "PARLEY_HOME="+volume) || !slices.Contains(set, "SQLITE_TMPDIR="+volume) {
			t.Errorf("%s has the environment %q and the volume %s: the home and SQLite's temporary files belong there", image, set, volume)
		}
		var entry, args []string
		if err := json.Unmarshal([]byte(find(i, "ENTRYPOINT")[0]), &entry); err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal([]byte(find(i, "CMD")[0]), &args); err != nil {
			t.Error(err)
		}
		if len(entry) != 1 || !strings.Contains(strings.Join(find(i, "COPY"), "\n"), " /out/parley "+entry[0]) {
			t.Errorf("%s runs %q, which it does not hold", image, entry)
		}
		accepts(t, args)
	}
	installed := strings.Join(find(of["parley"], "RUN"), "\n")
	for _, program := range []string{"git", "python3", "bubblewrap", "ca-certificates"} {
		if !strings.Contains(installed, " "+program) {
			t.Errorf("the image has no %s", program)
		}
	}
}

// flatten parses the YAML of compose files, as far as ours go. It returns each value by its path, with dots between
// the keys and numbers for the elements of a list.
func flatten(t *testing.T, text string) map[string]string {
	t.Helper()
	type level struct {
		indent int
		path   string
		items  int
	}
	values, open := map[string]string{}, []level{{indent: -1}}
	for n, line := range strings.Split(text, "\n") {
		body := strings.TrimLeft(line, " ")
		if body == "" || body[0] == '#' {
			continue
		}
		indent := len(line) - len(body)
		for open[len(open)-1].indent >= indent {
			open = open[:len(open)-1]
		}
		parent := &open[len(open)-1]
		if item, ok := strings.CutPrefix(body, "- "); ok {
			values[fmt.Sprintf("%s.%d", parent.path, parent.items)] = strings.Trim(item, `"`)
			parent.items++
			continue
		}
		key, value, ok := strings.Cut(body, ":")
		if !ok || value != "" && value[0] != ' ' || strings.ContainsAny(body, "\t") {
			t.Fatalf("line %d cannot be read: %q", n+1, line)
		}
		path := strings.TrimPrefix(parent.path+"."+key, ".")
		if _, twice := values[path]; twice {
			t.Errorf("line %d: %s stands there twice", n+1, path)
		}
		values[path] = strings.Trim(strings.TrimSpace(value), `"`)
		open = append(open, level{indent: indent, path: path})
	}
	return values
}

// words parses a list that is on one line.
func words(t *testing.T, list string) (all []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Errorf("%s is no list: %v", list, err)
	}
	return all
}

// bytesOf parses an amount of memory in the notation of Go, systemd or Compose.
func bytesOf(t *testing.T, text string) int {
	t.Helper()
	at := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if at < 1 {
		t.Fatalf("%q is no amount of memory", text)
	}
	unit := map[string]int{"m": 1 << 20, "M": 1 << 20, "MiB": 1 << 20, "g": 1 << 30, "G": 1 << 30, "GiB": 1 << 30}[text[at:]]
	if unit == 0 {
		t.Errorf("%q has an unknown unit", text)
	}
	return number(t, text[:at]) * unit
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Error(err)
	}
	return n
}

// checkComposed checks what all compose files have in common: services restart, have their secrets, limits and health
// checks, run a program of the image, and mount volumes that exist.
func checkComposed(t *testing.T, file map[string]string, config string, services ...string) {
	t.Helper()
	for _, service := range services {
		if file["services."+service+".restart"] != "unless-stopped" || file["services."+service+".stop_grace_period"] == "" {
			t.Errorf("%s does not come back, or has no time to end", service)
		}
		for _, secret := range words(t, file["services."+service+".secrets"]) {
			if from := file["secrets."+secret+".file"]; from != "./secrets/"+secret {
				t.Errorf("%s wants the secret %s, which is in %q", service, secret, from)
			}
		}
	}
	// The memory is limited, and the program frees memory before it reaches the limit.
	soft, hard := bytesOf(t, file["services.parley.environment.GOMEMLIMIT"]), bytesOf(t, file["services.parley.mem_limit"])
	if soft < 256<<20 || hard < soft+soft/4 {
		t.Errorf("memory is bounded by %d and %d", soft, hard)
	}
	check := words(t, file["services.parley.healthcheck.test"])
	if len(check) < 3 || check[0] != "CMD" || check[1] != "/usr/local/bin/parley" || !slices.Contains(check, "--live") {
		t.Fatalf("it is checked by %q", check)
	}
	accepts(t, check[2:])
	if at := file["services.parley.environment.PARLEY_CONFIG"]; at == "" || file["services.parley.volumes.0"] != "./"+config+":"+at+":ro" {
		t.Errorf("the program looks for %q, and %q is mounted", at, file["services.parley.volumes.0"])
	}
	if port := file["services.parley.ports"]; !strings.Contains(port, `"127.0.0.1:`) {
		t.Errorf("the bot listens on %s: others than this machine reach it", port)
	}
	if _, built := file["services.parley.build.target"]; built || file["services.parley.image"] != "parley" {
		t.Errorf("there is one image, and this is %q", file["services.parley.image"])
	}
}

// checkServing checks the commands that serve and the volumes, and returns how many commands serve.
func checkServing(t *testing.T, volumes map[string]string, files ...map[string]string) (served int) {
	t.Helper()
	for _, file := range files {
		for path, value := range file {
			if strings.HasSuffix(path, ".command") && strings.Contains(value, `"serve"`) {
				accepts(t, words(t, value))
				served++
			}
			name, _, mounts := strings.Cut(value, ":/")
			if mounts && strings.Contains(path, ".volumes.") && name[0] != '.' && name[0] != '/' {
				if _, known := volumes["volumes."+name]; !known {
					t.Errorf("%s mounts %s, which is no volume", path, value)
				}
			}
		}
	}
	return served
}

// On one machine, one process serves. Its home is the volume that the fleet's file also mounts, so that it notices a
// home of the fleet.
func TestCompose(t *testing.T) {
	t.Parallel()
	one, fleet := flatten(t, deployed(t, "compose.yaml")), flatten(t, deployed(t, "compose.fleet.yaml"))
	checkComposed(t, one, "parley.toml", "parley")
	if served := checkServing(t, one, one); served != 1 {
		t.Errorf("%d commands serve", served)
	}
	if one["name"] != fleet["name"] || one["services.parley.volumes.1"] != fleet["services.parley.volumes.1"] {
		t.Errorf("the home is %q here and %q there", one["services.parley.volumes.1"], fleet["services.parley.volumes.1"])
	}
	for path := range one {
		if strings.Contains(path, "redis") || strings.Contains(path, "postgres") {
			t.Errorf("one process needs no server, and there is %s", path)
		}
	}
}

func TestComposeOfAFleet(t *testing.T) {
	t.Parallel()
	fleet, many := flatten(t, deployed(t, "compose.fleet.yaml")), flatten(t, deployed(t, "compose.scaled.yaml"))
	checkComposed(t, fleet, "parley.fleet.toml", "parley", "redis", "postgres")
	redis := fleet["services.redis.command"]
	for _, want := range []string{"--appendonly yes", "--appendfsync everysec", "--maxmemory-policy noeviction", "--requirepass"} {
		if !strings.Contains(redis, want) {
			t.Errorf("Redis runs as %s, without %s", redis, want)
		}
	}
	// Two gateways and the workers, twice while they are replaced.
	const conns = 12 // the most connections that a process opens
	processes := 2 * (2 + number(t, many["services.worker.deploy.replicas"]))
	_, most, _ := strings.Cut(words(t, fleet["services.postgres.command"])[2], "=")
	if number(t, most) < processes*conns {
		t.Errorf("PostgreSQL allows %s connections, and %d processes open %d", most, processes, processes*conns)
	}
	if served := checkServing(t, fleet, fleet, many); served != 4 {
		t.Errorf("%d commands serve, want the one and those of the three that take its place", served)
	}
	for path, file := range many {
		if strings.HasSuffix(path, ".extends.file") && file != "compose.fleet.yaml" {
			t.Errorf("%s is %s", path, file)
		}
	}
	if n := many["services.worker.deploy.replicas"]; n != "3" {
		t.Errorf("%s workers", n)
	}
}

func TestDeployedConfigurations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const password = "0123456789abcdef"
	for name, secret := range map[string]string{
		"redis": password, "postgres": password, "model": "sk-some-key-of-a-model", "telegram": parleytest.Token,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(name string) *config.Config {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(deployed(t, name), "/run/secrets/", dir+"/")), 0o644); err != nil { // as in a checkout
			t.Fatal(err)
		}
		cfg, err := loadConfig(config.Options{File: file, Home: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.CheckServe(); err != nil {
			t.Error(err)
		}
		if notices := cfg.Notices(); len(notices) > 0 {
			t.Errorf("of %s it is told %q", name, notices)
		}
		return cfg
	}
	if one := load("parley.toml"); one.Bus.URL != "" || one.Store.URL != "" {
		t.Error("one process needs a server")
	}
	cfg := load("parley.fleet.toml")
	if !strings.Contains(string(cfg.Bus.URL), ":"+password+"@redis:6379") || !strings.Contains(string(cfg.Store.URL), ":"+password+"@postgres:") {
		t.Error("the bus and the store are not reached with their passwords")
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	unit := deployed(t, "parley.service")
	settings := map[string][]string{}
	for line := range strings.SplitSeq(unit, "\n") {
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Errorf("a line that sets nothing: %q", line)
		}
		settings[key] = append(settings[key], value)
	}
	for key, want := range map[string]string{
		"DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "CapabilityBoundingSet": "",
		"Delegate": "memory pids", "ProtectControlGroups": "no", // otherwise commands share no limit
		"Restart": "always", "StartLimitIntervalSec": "0", "RestartPreventExitStatus": fmt.Sprint(exitConfig), "StateDirectoryMode": "0700",
	} {
		if got := settings[key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s=%q, want %q", key, got, want)
		}
	}
	if len(settings["MemoryHigh"]) != 1 || len(settings["MemoryMax"]) != 1 {
		t.Fatal("its memory is not bounded")
	}
	soft := 0
	for _, set := range settings["Environment"] {
		if limit, ok := strings.CutPrefix(set, "GOMEMLIMIT="); ok {
			soft = bytesOf(t, limit)
		}
	}
	if high, most := bytesOf(t, settings["MemoryHigh"][0]), bytesOf(t, settings["MemoryMax"][0]); soft < 256<<20 || high <= soft || most <= high {
		t.Errorf("memory is bounded by %d, %d and %d: want each above the former", soft, high, most)
	}
	header, _, _ := strings.Cut(unit, "[Unit]")
	for _, c := range settings["LoadCredential"] {
		name, _, _ := strings.Cut(c, ":")
		if !strings.Contains(header, "install -d -m 0700 /etc/parley/credentials") || !regexp.MustCompile(`install -m 0600 .*\b`+name+`\b.* /etc/parley/credentials/`).MatchString(header) {
			t.Errorf("the header does not say how the credential %s is made", name)
		}
	}
	checkDropIn(t, settings)
	args := strings.Fields(settings["ExecStart"][0])
	accepts(t, args[1:])
	for _, c := range settings["LoadCredential"] {
		if _, from, ok := strings.Cut(c, ":"); !ok || !strings.HasPrefix(from, "/etc/parley/credentials/") {
			t.Errorf("a credential from %q", c)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("the rest needs systemd-analyze")
	}
	file := filepath.Join(t.TempDir(), "parley.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(unit, args[0], "/bin/sh")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// checkDropIn checks that the drop-in changes only settings that the unit has, and only those that prevent
// bubblewrap.
func checkDropIn(t *testing.T, unit map[string][]string) {
	t.Helper()
	for line := range strings.SplitSeq(deployed(t, "parley-bubblewrap.conf"), "\n") {
		if line == "" || line[0] == '#' || line == "[Service]" {
			continue
		}
		key, _, ok := strings.Cut(line, "=")
		if !ok || unit[key] == nil {
			t.Errorf("parley-bubblewrap.conf has the line %q, which changes nothing of the unit's", line)
		}
		if slices.Contains([]string{"NoNewPrivileges", "CapabilityBoundingSet", "ProtectSystem", "ProtectHome", "PrivateTmp", "DynamicUser"}, key) {
			t.Errorf("parley-bubblewrap.conf takes away %s, which bubblewrap does not need", key)
		}
	}
}

// The example scrapes a path that the program serves, with a scope that exists.
func TestDeployedScrape(t *testing.T) {
	t.Parallel()
	text := deployed(t, "prometheus.yaml")
	values := flatten(t, text)
	cfg, err := loadConfig(config.Options{Home: t.TempDir(), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	if target := values["scrape_configs.static_configs.0"]; target != fmt.Sprintf("targets: [\"%s\"]", cfg.HTTP.Listen) {
		t.Errorf("it scrapes %s, and the program listens on %s", target, cfg.HTTP.Listen)
	}
	if values["scrape_configs.metrics_path"] != "/metrics" || values["scrape_configs.authorization.type"] != "Bearer" || values["rule_files"] != `["alerts.yaml"]` {
		t.Errorf("it scrapes %q", values)
	}
	deployed(t, "alerts.yaml")
	var section []string
	for line := range strings.SplitSeq(text, "\n") {
		if line, ok := strings.CutPrefix(line, "#   "); ok {
			section = append(section, line)
		}
	}
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "prometheus"), filepath.Join(dir, "parley.toml")
	parleytest.Must(t, os.WriteFile(secret, []byte("a-token-that-is-long-enough-for-it\n"), 0o600))
	parleytest.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(strings.Join(section, "\n"), "/run/secrets/prometheus", secret)), 0o600))
	cfg, err = loadConfig(config.Options{File: file, Home: dir})
	if err != nil || len(cfg.Tokens) != 1 {
		t.Errorf("its token is not taken: %v, %v", cfg, err)
	}
}
