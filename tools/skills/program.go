package skills

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/plainjson"
	"parley/tools/sandbox"
	"parley/tools/skills/folder"
)

// A Runner runs the programs of skills in a sandbox.
type Runner struct {
	Sandbox sandbox.Sandbox
	Mode    sandbox.Mode // the mode in which Sandbox runs programs
	// Place returns where a call's programs run; network says that the program asks for the
	// network.
	Place func(ctx context.Context, call tools.Call, network bool) (sandbox.Place, error)
	// Changed is called when a program may have changed a session's files.
	Changed func(call tools.Call)
}

// CanRun reports whether the sandbox is at least as strict as the one that a program was written
// for, if its manifest names one.
func (r Runner) CanRun(p folder.Program) bool {
	switch p.Sandboxing {
	case folder.Bubblewrap:
		return r.Mode == sandbox.Bubblewrap
	case folder.Landlock:
		return r.Mode == sandbox.Bubblewrap || r.Mode == sandbox.Landlock
	}
	return true
}

// maxName is the maximum length of a tool's name that model providers accept.
const maxName = 64

// ToolName returns the name of the tool that a program of a skill becomes.
func ToolName(skill, program string) string {
	name := skill + "__" + program
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "_" + hex.EncodeToString(sum[:4])
	return name[:maxName-len(mark)] + mark
}

// Tools returns a skill's programs as tools.
func (r Runner) Tools(s Skill) (all []tools.Tool) {
	for _, p := range s.Programs {
		all = append(all, &program{r, s, p})
	}
	return all
}

// A program is a program of a skill, as a tool.
type program struct {
	runner  Runner
	skill   Skill
	program folder.Program
}

// Spec implements tools.Tool: it describes the program as its manifest does.
func (p *program) Spec() tools.Spec {
	var after []string
	for _, name := range p.program.After {
		after = append(after, ToolName(p.skill.Name, name))
	}
	return tools.Spec{
		Name: ToolName(p.skill.Name, p.program.Name), Description: p.program.Description, Schema: p.program.Schema,
		Effect: p.program.Effect, Timeout: p.program.Timeout, MaxTimeout: -1, After: after, Version: p.version,
		// Without a sandbox, nothing makes a program obey its manifest's restrictions of the workspace.
		Touches: tools.TouchesAlways(tools.Touch{
			Reads: tools.AnyFiles{}, Writes: tools.AnyFiles{}, Outward: tools.RunsProgram{Effect: tools.OutwardEffect("call a tool of " + p.skill.Name), Offline: !p.program.Network},
		}),
	}
}

// version implements tools.Spec.Version: it returns a hash of the skill's folder.
func (p *program) version() (string, error) { return p.skill.Hash() }

// A programResult is what a program returns to the model.
type programResult struct {
	ExitCode   int      `json:"exit_code"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	DurationMS int64    `json:"duration_ms"`
	Refused    []string `json:"refused_hosts,omitempty"`
}

// runInSkillFolder is the shell command that runs a program from the skill's folder; the variable SKILL_DIR
// says where that folder is inside the sandbox.
const runInSkillFolder = `exec "$SKILL_DIR/$0" "$@"`

// Run implements tools.Tool: it runs the program in the sandbox. The result is untrusted, because
// nobody vouches for a program's output.
func (p *program) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	place, err := p.runner.Place(ctx, call, p.program.Network)
	if err != nil {
		return tools.Result{}, err
	}
	where, err := filepath.EvalSymlinks(p.skill.Path)
	if err != nil {
		return tools.Result{}, tools.Errorf(tools.ExecutionFailed, "the folder of the skill %s is not there anymore: go on without it", p.skill.Name)
	}
	c := place.Command(slices.Concat([]string{"sh", "-c", runInSkillFolder, p.program.Binary}, p.program.Args, flagsOf(call.Args, p.program.Flags))...)
	c.HeldAt, c.Stdin = call.HeldAt, bytes.NewReader(append(slices.Clone(call.Args), '\n'))
	c.ShownFolders = []sandbox.Shown{{Path: where, PathInside: "/skills/" + p.skill.Name, Env: "SKILL_DIR"}}
	switch p.program.Workspace {
	case folder.NoAccess:
		c.Workspace, c.Owner, c.Dir, c.Quota = "", place.Workspace, "", sandbox.Quota{}
	case folder.ReadAccess:
		c.ReadOnly, c.Quota = true, sandbox.Quota{}
	}
	began := time.Now()
	r, err := p.runner.Sandbox.Run(ctx, c)
	if p.program.Workspace == folder.WriteAccess {
		p.runner.Changed(call)
	}
	if err != nil {
		return tools.Result{}, sandbox.ErrorForModel(err)
	}
	if err := sandbox.EndedError(r, time.Since(began)); err != nil {
		return tools.Result{Untrusted: true}, err
	}
	content, err := plainjson.Marshal(programResult{r.ExitCode, r.Stdout, r.Stderr, r.Duration.Milliseconds(), r.Refused})
	return tools.Result{Content: content, Untrusted: true}, err
}

// How long one argument that is passed as a flag may be, and all of them together, because the
// system accepts no more. A longer argument is only passed on standard input.
const (
	maxFlag  = 64 << 10
	maxFlags = 512 << 10
)

// flagsOf returns the arguments with these names as flags: --NAME=VALUE, or just --NAME for true.
// False and null give no flag. Values other than strings, numbers and booleans are written as JSON.
func flagsOf(raw json.RawMessage, names []string) (all []string) {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil {
		return nil // it matches the schema, so it is an object
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !slices.Contains(names, name) {
			continue
		}
		value := string(args[name])
		var text string
		switch {
		case value == "false", value == "null":
			continue
		case value == "true":
			all = append(all, "--"+name)
			continue
		case json.Unmarshal(args[name], &text) == nil:
			value = text
		}
		if size += len(value); len(value) <= maxFlag && size <= maxFlags && !strings.ContainsRune(value, 0) {
			all = append(all, "--"+name+"="+value)
		}
	}
	return all
}
