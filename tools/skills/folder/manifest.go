package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"parley/tools"
	"parley/tools/plainjson"
)

// Manifest is the name of the file that lists a skill's programs.
const Manifest = "skill.toml"

// Limits of a manifest.
const (
	maxManifest    = 64 << 10
	maxTools       = 32
	defaultTimeout = time.Minute
	maxTimeout     = 300 * time.Second
)

// A Program is a program in a skill that agents use as a tool.
type Program struct {
	Name        string // the tool's name within the skill
	Description string
	Binary      string   // the path below the skill's folder
	Args        []string // the arguments that precede those of a call
	// Schema is the JSON Schema of the tool's arguments, which form an object; Flags are the names
	// of those arguments that the program also gets as flags.
	Schema    json.RawMessage
	Flags     []string
	Timeout   time.Duration
	Effect    tools.Effect
	Workspace Access
	Network   bool
	// Needs are the permissions that an agent must have.
	Needs []tools.Permission
	// Sandboxing is the sandbox that the program was written for, as its manifest names it; "" if
	// it names none.
	Sandboxing Sandboxing
	// After are the names of programs of the same skill: a call of this program runs after the
	// calls of those that the model asked for in the same step.
	After []string
}

// A Sandboxing names the sandbox that a program was written for.
type Sandboxing string

// The sandboxes that a manifest may name. A program that names Bubblewrap or Landlock runs in that
// sandbox or in a stricter one. The other three have no effect: the program runs in the sandbox
// that the machine has, because only the operator's settings can do without one.
const (
	Bubblewrap Sandboxing = "bubblewrap"
	Landlock   Sandboxing = "landlock"
	Podman     Sandboxing = "podman"
	Firejail   Sandboxing = "firejail"
	Unboxed    Sandboxing = "none"
)

// An Access says what a program may do with a session's workspace.
type Access string

// The kinds of access.
const (
	NoAccess    Access = "none"
	ReadAccess  Access = "read"
	WriteAccess Access = "write"
)

// A manifest is the content of a skill.toml.
type manifest struct {
	Version string          `toml:"version"`
	OS      []string        `toml:"os"`
	Tools   []manifestEntry `toml:"tools"`
}

// A manifestEntry is one program's entry in a skill.toml.
type manifestEntry struct {
	Name        string             `toml:"name"`
	Description string             `toml:"description"`
	Binary      string             `toml:"binary"`
	Args        []string           `toml:"args"`
	Parameters  map[string]any     `toml:"parameters"`
	Timeout     string             `toml:"timeout"`
	TimeoutMS   *int64             `toml:"timeout_ms"`
	Effect      tools.Effect       `toml:"effect"`
	Permissions []tools.Permission `toml:"permissions"`
	After       []string           `toml:"after"`
	Sandboxing  Sandboxing         `toml:"sandboxing"`
	Sandbox     struct {
		Workspace Access `toml:"workspace"`
		Network   bool   `toml:"network"`
	} `toml:"sandbox"`
}

// program returns the program that an entry describes, before it is checked.
func (e manifestEntry) program() Program {
	return Program{
		Name: e.Name, Description: oneLine(e.Description, 0), Binary: path.Clean(e.Binary), Args: e.Args, Effect: e.Effect,
		Workspace: e.Sandbox.Workspace, Network: e.Sandbox.Network, Needs: e.Permissions, After: e.After, Sandboxing: e.Sandboxing,
	}
}

// readManifest adds the content of its skill.toml to a skill, if there is one. notes are fields without effect; wrong
// says why the skill cannot be used, and is nil if it can.
func (s *Skill) readManifest() (notes []Problem, wrong *Problem) {
	raw, err := read(s.Files, Manifest, maxManifest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &Problem{Wrong: Reason(err), Remedy: fmt.Sprintf("let this user read it as a file of at most %d bytes", maxManifest)}
	}
	var m manifest
	if err := toml.NewDecoder(bytes.NewReader(raw)).DisallowUnknownFields().Decode(&m); err != nil {
		return nil, &Problem{Wrong: wrongTOML(err), Remedy: "write it as docs/skills.md shows"}
	}
	if len(m.Tools) > maxTools {
		return nil, &Problem{Wrong: fmt.Sprintf("it has %d tools, and Parley reads at most %d", len(m.Tools), maxTools), Remedy: "split it into several skills"}
	}
	if wrong := s.setVersion(m.Version); wrong != nil {
		return nil, wrong
	}
	runsHere, wrong := includesThisSystem(m.OS)
	if wrong != nil {
		return nil, wrong
	}
	programs, notes, wrong := readPrograms(s.Files, m.Tools)
	switch {
	case wrong != nil:
		return nil, wrong
	case !runsHere:
		return []Problem{{
			Wrong:  "its tools are for " + strings.Join(m.OS, ", ") + ", and this machine runs " + runtime.GOOS,
			Remedy: "agents have its instructions, and none of its tools", IsMinor: true,
		}}, nil
	}
	s.Programs = programs
	return notes, nil
}

// setVersion sets the skill's version, unless version is "", and returns what is wrong with it; nil if nothing is. A
// skill whose name ends in -v2 must have a version that begins with 2.
func (s *Skill) setVersion(version string) *Problem {
	if version == "" {
		return nil
	}
	if !regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9}){0,2}([-+][0-9A-Za-z.+-]{1,40})?$`).MatchString(version) {
		return &Problem{Wrong: fmt.Sprintf("version %q isn't a version", oneLine(version, 40)), Remedy: `write something like version = "2.0.0"`}
	}
	major, _, _ := strings.Cut(version, ".")
	if _, suffix, found := cutVersion(s.Name); found && suffix != major {
		return &Problem{Wrong: fmt.Sprintf("its version is %s, and its folder is called %q", version, s.Name), Remedy: "end the folder's name in -v" + major}
	}
	s.Version = version
	return nil
}

// includesThisSystem reports whether a list of operating systems includes the one that this program runs on. An empty
// list includes all. An unknown name in the list is a problem.
func includesThisSystem(systems []string) (bool, *Problem) {
	known := []string{"linux", "darwin", "windows", "freebsd", "netbsd", "openbsd"}
	for _, name := range systems {
		if !slices.Contains(known, name) {
			return false, &Problem{Wrong: fmt.Sprintf("os: there's no %q", oneLine(name, 40)), Remedy: "the systems are " + strings.Join(known, ", ")}
		}
	}
	return len(systems) == 0 || slices.Contains(systems, runtime.GOOS), nil
}

// readPrograms returns the programs that a manifest lists. notes are fields in their entries without effect.
func readPrograms(files fs.FS, entries []manifestEntry) (all []Program, notes []Problem, wrong *Problem) {
	for i, e := range entries {
		where := fmt.Sprintf("tool %d", i+1)
		if e.Name != "" {
			where = "tool " + oneLine(e.Name, 80)
		}
		p := e.program()
		if wrong := p.setDefaults(files, e); wrong != nil {
			wrong.Wrong = where + ": " + wrong.Wrong
			return nil, nil, wrong
		}
		if slices.ContainsFunc(all, func(other Program) bool { return other.Name == p.Name }) {
			return nil, nil, &Problem{Wrong: where + ": another tool has the same name", Remedy: "give it another name"}
		}
		if note := p.Sandboxing.note(); note != nil {
			note.Wrong = where + ": " + note.Wrong
			notes = append(notes, *note)
		}
		all = append(all, p)
	}
	return all, notes, checkOrder(all)
}

// note says that a sandbox that a manifest names has no effect; nil if it has one.
func (s Sandboxing) note() *Problem {
	switch s {
	case Podman, Firejail:
		return &Problem{Wrong: fmt.Sprintf("sandboxing %q has no effect: the tool runs in the sandbox that this machine has", s), Remedy: `write "bubblewrap" or "landlock" if it needs one of them`, IsMinor: true}
	case Unboxed:
		return &Problem{Wrong: `sandboxing "none" has no effect: the tool runs in the sandbox that this machine has`, Remedy: "only [sandbox] mode can do without a sandbox", IsMinor: true}
	}
	return nil
}

// checkOrder returns what is wrong with the order in which programs ask to run; nil if nothing is.
func checkOrder(all []Program) *Problem {
	after := map[string][]string{}
	for _, p := range all {
		after[p.Name] = p.After
	}
	for _, p := range all {
		for _, name := range p.After {
			if _, known := after[name]; !known {
				return &Problem{Wrong: fmt.Sprintf("tool %s: after: the skill has no tool %q", p.Name, oneLine(name, 80)), Remedy: "name tools of the same skill"}
			}
		}
	}
	var visit func(name string, way []string) *Problem
	visit = func(name string, way []string) *Problem {
		if slices.Contains(way, name) {
			return &Problem{Wrong: "after: " + strings.Join(append(way, name), " waits for "), Remedy: "remove one of them from after"}
		}
		for _, before := range after[name] {
			if wrong := visit(before, append(way, name)); wrong != nil {
				return wrong
			}
		}
		return nil
	}
	for _, p := range all {
		if wrong := visit(p.Name, nil); wrong != nil {
			return wrong
		}
	}
	return nil
}

// wrongTOML says what is wrong with a TOML file, and on which line.
func wrongTOML(err error) string {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		line, _ := unknown.Errors[0].Position()
		return fmt.Sprintf("line %d: there is no %s", line, oneLine(strings.Join(unknown.Errors[0].Key(), "."), 80))
	}
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := wrong.Position()
		return fmt.Sprintf("line %d: %s", line, oneLine(wrong.Error(), 200))
	}
	return oneLine(err.Error(), 200)
}

// setDefaults fills in the fields that a program leaves out, and returns the problem with the rest; nil if there is
// none.
func (p *Program) setDefaults(files fs.FS, e manifestEntry) *Problem {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(p.Name) {
		return &Problem{Wrong: "its name is missing, or isn't 1 to 64 letters, digits, _ and -", Remedy: `write something like name = "total"`}
	}
	if n := len(p.Description); n == 0 || n > maxDescription {
		return &Problem{Wrong: fmt.Sprintf("its description is missing, or has more than %d bytes", maxDescription), Remedy: "say what it does and when to use it"}
	}
	for _, check := range []func() *Problem{
		func() *Problem { return p.checkBinary(files) }, func() *Problem { return p.setTimeout(e.Timeout, e.TimeoutMS) },
		p.setEffect, p.setNeeds, p.checkSandboxing, func() *Problem { return p.setSchema(e.Parameters) },
	} {
		if wrong := check(); wrong != nil {
			return wrong
		}
	}
	return nil
}

func (p *Program) checkBinary(files fs.FS) *Problem {
	if p.Binary == "." || !fs.ValidPath(p.Binary) {
		return &Problem{Wrong: "binary doesn't name a file in the skill's folder", Remedy: `write something like binary = "bin/total"`}
	}
	info, err := fs.Stat(files, p.Binary)
	switch {
	case err != nil:
		return &Problem{Wrong: "binary " + p.Binary + ": " + Reason(err), Remedy: "put the program there"}
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return &Problem{Wrong: "binary " + p.Binary + " isn't an executable program", Remedy: "run chmod 755 " + p.Binary}
	case slices.ContainsFunc(p.Args, func(arg string) bool { return strings.ContainsRune(arg, 0) }):
		return &Problem{Wrong: "args contain a NUL byte", Remedy: "remove it"}
	}
	return nil
}

// setTimeout sets the timeout, which a manifest writes as a text or as a number of milliseconds.
func (p *Program) setTimeout(text string, ms *int64) *Problem {
	p.Timeout = defaultTimeout
	var err error
	switch {
	case text != "" && ms != nil:
		return &Problem{Wrong: "it has both timeout and timeout_ms", Remedy: "remove one of them"}
	case text != "":
		p.Timeout, err = time.ParseDuration(text)
	case ms != nil:
		text = fmt.Sprintf("%dms", *ms)
		p.Timeout = time.Duration(min(max(*ms, 0), 2*maxTimeout.Milliseconds())) * time.Millisecond
	}
	if err != nil || p.Timeout < time.Second || p.Timeout > maxTimeout {
		return &Problem{Wrong: fmt.Sprintf("timeout %q isn't a time from 1s to %s", oneLine(text, 40), maxTimeout), Remedy: `write something like timeout = "30s", or timeout_ms = 30000`}
	}
	return nil
}

func (p *Program) checkSandboxing() *Problem {
	switch p.Sandboxing {
	case "", Bubblewrap, Landlock, Podman, Firejail, Unboxed:
		return nil
	}
	return &Problem{Wrong: fmt.Sprintf("sandboxing %q", oneLine(string(p.Sandboxing), 40)), Remedy: `write "bubblewrap" or "landlock" if it needs one of them, or leave it out`}
}

func (p *Program) setEffect() *Problem {
	switch p.Effect {
	case "":
		p.Effect = tools.Once
	case tools.Pure, tools.Idempotent, tools.Once:
		if p.Effect == tools.Pure && p.Workspace == WriteAccess {
			return &Problem{Wrong: `effect "pure" with sandbox.workspace "write"`, Remedy: `write "idempotent" if running it twice is the same as once, or leave it out`}
		}
	default:
		return &Problem{Wrong: fmt.Sprintf("effect %q", oneLine(string(p.Effect), 40)), Remedy: `write "pure" if it changes nothing, "idempotent" if running it twice is the same as once, or leave it out`}
	}
	return nil
}

// setNeeds determines which permissions an agent must have to use the program, judging by what the
// program may do.
func (p *Program) setNeeds() *Problem {
	for _, need := range p.Needs {
		if !slices.Contains(tools.Permissions(), need) {
			return &Problem{Wrong: fmt.Sprintf("permissions: there's no %q", oneLine(string(need), 40)), Remedy: "the capabilities are " + strings.Trim(fmt.Sprint(tools.Permissions()), "[]")}
		}
	}
	switch p.Workspace {
	case "", ReadAccess:
		p.Workspace = ReadAccess
		p.need(tools.FileRead)
	case WriteAccess:
		p.need(tools.FileRead)
		p.need(tools.FileWrite)
	case NoAccess:
	default:
		return &Problem{Wrong: fmt.Sprintf("sandbox.workspace %q", oneLine(string(p.Workspace), 40)), Remedy: `write "read", "write" or "none"`}
	}
	if p.Network {
		p.need(tools.Network)
	}
	return nil
}

// need adds a permission that an agent must have.
func (p *Program) need(capability tools.Permission) {
	if !slices.Contains(p.Needs, capability) {
		p.Needs = append(p.Needs, capability)
	}
}

// setSchema makes a JSON Schema from the parameters. The schema refuses arguments that the
// parameters don't name.
func (p *Program) setSchema(parameters map[string]any) *Problem {
	schema := map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
	maps.Copy(schema, parameters)
	properties, isTable := schema["properties"].(map[string]any)
	if schema["type"] != "object" || !isTable {
		return &Problem{Wrong: "parameters don't describe an object", Remedy: `write [tools.parameters.properties.file] with type = "string" for an argument "file"`}
	}
	name := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if !name.MatchString(key) {
			return &Problem{Wrong: fmt.Sprintf("the parameter %q can't be a flag", oneLine(key, 40)), Remedy: "begin it with a letter, and use letters, digits, _ and -"}
		}
		p.Flags = append(p.Flags, key)
	}
	raw, err := plainjson.Marshal(schema)
	if err == nil {
		err = tools.CheckSchema(raw)
	}
	if err != nil {
		return &Problem{Wrong: "parameters aren't a JSON Schema: " + oneLine(err.Error(), 300), Remedy: "write them as docs/skills.md shows"}
	}
	p.Schema = raw
	return nil
}
