// Package skills gives agents skills: instructions for certain kinds of work, which they read when they need them.
//
// A skill is a folder with a SKILL.md (package folder). The prompt lists each skill's name and purpose; the tool
// skill returns the rest. The operator's skills are kept apart from those in a session's workspace, where agents
// and people write: these cannot have the same name as one of the operator's, and their content counts as
// untrusted.
//
// A skill of the operator's may include programs: each becomes a tool, SKILL__TOOL, that runs in the session's
// sandbox, with its arguments as JSON on standard input and as flags.
//
// The files: skills.go makes the tool skill; list.go writes what the prompt says about skills; program.go runs
// their programs; propose.go makes the tool with which an agent proposes a skill.
package skills

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/tools"
	"parley/tools/skills/folder"
)

// Tool is the name of the tool that returns the text of a skill.
const Tool = "skill"

// A Skill is a skill that an agent has.
type Skill struct {
	folder.Skill
	// InWorkspace says that the skill is in the session's workspace.
	InWorkspace bool
	// Trusted says that the operator vouches for the skill's whole content.
	Trusted bool
	// Tools are the names of the tools that the skill adds.
	Tools []string
}

// Limits of what is listed and read of a skill's files.
const (
	maxFiles = 100
	maxDepth = 4
	maxFile  = 1 << 20 // bytes of a file that is read
)

type skillArgs struct {
	Name string `json:"name" jsonschema:"the skill's name"`
	File string `json:"file,omitempty" jsonschema:"one of its files, as the skill names it; left out: what the skill says"`
}

// New makes the tool skill. The function skillsOf returns the skills that a call's agent has.
func New(skillsOf func(ctx context.Context, call tools.Call) ([]Skill, error)) tools.Tool {
	return tools.New(tools.Spec{
		Name: Tool, Effect: tools.Pure, MaxTimeout: -1, Touches: tools.TouchesNothing(),
		Description: "Read a skill: instructions for a certain kind of work, of which your prompt lists those that you have. Read the one that fits before you begin such work. The result names the skill's other files, which file reads, and the tools that it brings. Commands see no skill's folder but those in your workspace: to run a script of another that is none of its tools, read it with file and write it there.",
	}, func(ctx context.Context, call tools.Call, args skillArgs) (any, error) {
		all, err := skillsOf(ctx, call)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(s Skill) bool { return s.Name == args.Name })
		if i < 0 {
			return nil, unknownSkill(args.Name, all)
		}
		answer, err := all[i].read(ctx, args.File)
		if err != nil || all[i].Trusted {
			return answer, err
		}
		return tools.Untrusted{Value: answer}, nil
	})
}

// unknownSkill returns the error for a skill that does not exist; it lists those that do.
func unknownSkill(name string, all []Skill) error {
	if len(all) == 0 {
		return tools.Errorf(tools.InvalidArgs, "there are no skills here: go on without")
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return tools.Errorf(tools.InvalidArgs, "no skill is called %q: there are %s", tools.Clip(name, 64), tools.Clip(strings.Join(names, ", "), 700))
}

// A skillText is what the tool returns about a skill.
type skillText struct {
	Content string   `json:"content"`
	Files   []string `json:"files,omitempty"`
	Tools   []string `json:"tools,omitempty"`
}

// read returns the text of one of a skill's files or, if file is "" or SKILL.md, that of the skill with a list of its
// files and tools. A skill without a text is shown as its description.
func (s Skill) read(ctx context.Context, file string) (any, error) {
	if file != "" && path.Clean(file) != folder.File {
		content, err := s.fileText(path.Clean(file))
		return skillText{Content: content}, err
	}
	body, err := s.Body()
	if err != nil {
		return nil, tools.Errorf(tools.ExecutionFailed, "the skill %s cannot be read: %s", s.Name, folder.Reason(err))
	}
	if body == "" {
		body = s.Description
	}
	files, err := s.fileNames(ctx)
	return skillText{body, files, s.Tools}, err
}

// fileText returns the text of one of the skill's files.
func (s Skill) fileText(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", tools.Errorf(tools.InvalidPath, "%q isn't a file of the skill: name it relative to the skill's folder, as in references/forms.md", tools.Clip(name, 100))
	}
	f, err := s.Files.Open(name)
	if err != nil {
		return "", s.unreadable(name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return "", tools.Errorf(tools.InvalidPath, "%q is a folder: name one of the files in it", tools.Clip(name, 100))
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", s.unreadable(name, err)
	case len(raw) > maxFile:
		return "", tools.Errorf(tools.ExecutionFailed, "%q has more than %d bytes, so it is not read", tools.Clip(name, 100), maxFile)
	case !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0):
		return "", tools.Errorf(tools.ExecutionFailed, "%q isn't text", tools.Clip(name, 100))
	}
	return string(raw), nil
}

// unreadable returns the error for a file that cannot be read.
func (s Skill) unreadable(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return tools.Errorf(tools.FileNotFound, "the skill %s has no file %q: skill without file lists what it has", s.Name, tools.Clip(name, 100))
	}
	return tools.Errorf(tools.InvalidPath, "%q cannot be read: %s", tools.Clip(name, 100), folder.Reason(err))
}

// fileNames lists the skill's files besides SKILL.md, except hidden and deeply nested ones, up to maxFiles.
func (s Skill) fileNames(ctx context.Context) (names []string, err error) {
	err = folder.Walk(s.Files, func(name string, e fs.DirEntry) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case strings.HasPrefix(e.Name(), "."), e.IsDir() && strings.Count(name, "/") >= maxDepth:
			return skip(e)
		case e.IsDir() || name == folder.File:
			return nil
		case len(names) == maxFiles:
			names = append(names, "… and more")
			return fs.SkipAll
		}
		names = append(names, name)
		return nil
	})
	if ctx.Err() == nil {
		err = nil // what cannot be read is not listed
	}
	return names, err
}

// skip is what a walk over files returns to leave an entry out, and everything below it if it is a folder.
func skip(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}
