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
}

// An Access says what a program may do with a session's workspace.
type Access string

// The kinds of access.
const (
	NoAccess Access = "none"
	Reads    Access = "read"
	Writes   Access = "write"
)

// A manifest is the content of a skill.toml.
type manifest struct {
	Tools []struct {
		Name        string             `toml:"name"`
		Description string             `toml:"description"`
		Binary      string             `toml:"binary"`
		Args        []string           `toml:"args"`
		Parameters  map[string]any     `toml:"parameters"`
		Timeout     string             `toml:"timeout"`
		Effect      tools.Effect       `toml:"effect"`
		Permissions []tools.Permission `toml:"permissions"`
		Sandbox     struct {
			Workspace Access `toml:"workspace"`
			Network   bool   `toml:"network"`
		} `toml:"sandbox"`
	} `toml:"tools"`
}

// readManifest returns the programs that the skill in a folder lists; nil if it lists none.
func readManifest(files fs.FS) ([]Program, *Problem) {
	raw, err := read(files, Manifest, maxManifest)
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
		return nil, &Problem{Wrong: fmt.Sprintf("it has %d tools, and at most %d are read", len(m.Tools), maxTools), Remedy: "split it into several skills"}
	}
	var all []Program
	for i, t := range m.Tools {
		where := fmt.Sprintf("tool %d", i+1)
		if t.Name != "" {
			where = "tool " + oneLine(t.Name, 80)
		}
		p := Program{
			Name: t.Name, Description: oneLine(t.Description, 0), Binary: path.Clean(t.Binary), Args: t.Args, Effect: t.Effect,
			Workspace: t.Sandbox.Workspace, Network: t.Sandbox.Network, Needs: t.Permissions,
		}
		if wrong := p.complete(files, t.Timeout, t.Parameters); wrong != nil {
			wrong.Wrong = where + ": " + wrong.Wrong
			return nil, wrong
		}
		if slices.ContainsFunc(all, func(other Program) bool { return other.Name == p.Name }) {
			return nil, &Problem{Wrong: where + ": another has its name", Remedy: "give it another"}
		}
		all = append(all, p)
	}
	return all, nil
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

// complete fills in what a program leaves out, and returns what is wrong with the rest; nil if
// nothing is.
func (p *Program) complete(files fs.FS, timeout string, parameters map[string]any) *Problem {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(p.Name) {
		return &Problem{Wrong: "its name is missing, or has other than 1 to 64 letters, digits, _ and -", Remedy: `write something like name = "total"`}
	}
	if n := len(p.Description); n == 0 || n > maxDescription {
		return &Problem{Wrong: fmt.Sprintf("its description is missing, or has more than %d bytes", maxDescription), Remedy: "say what it does and when to use it"}
	}
	for _, check := range []func() *Problem{
		func() *Problem { return p.checkBinary(files) }, func() *Problem { return p.setTimeout(timeout) },
		p.setEffect, p.setNeeds, func() *Problem { return p.setSchema(parameters) },
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
		return &Problem{Wrong: "binary " + p.Binary + " isn't a program that can be run", Remedy: "chmod 755 " + p.Binary}
	case slices.ContainsFunc(p.Args, func(arg string) bool { return strings.ContainsRune(arg, 0) }):
		return &Problem{Wrong: "args contain a NUL byte", Remedy: "remove it"}
	}
	return nil
}

func (p *Program) setTimeout(text string) *Problem {
	p.Timeout = defaultTimeout
	if text == "" {
		return nil
	}
	took, err := time.ParseDuration(text)
	if err != nil || took < time.Second || took > maxTimeout {
		return &Problem{Wrong: fmt.Sprintf("timeout %q isn't a time from 1s to %s", oneLine(text, 40), maxTimeout), Remedy: `write something like timeout = "30s"`}
	}
	p.Timeout = took
	return nil
}

func (p *Program) setEffect() *Problem {
	switch p.Effect {
	case "":
		p.Effect = tools.Once
	case tools.Pure, tools.Idempotent, tools.Once:
		if p.Effect == tools.Pure && p.Workspace == Writes {
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
			return &Problem{Wrong: fmt.Sprintf("permissions: there is no %q", oneLine(string(need), 40)), Remedy: "the capabilities are " + strings.Trim(fmt.Sprint(tools.Permissions()), "[]")}
		}
	}
	switch p.Workspace {
	case "", Reads:
		p.Workspace = Reads
		p.need(tools.FileRead)
	case Writes:
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
