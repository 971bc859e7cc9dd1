// Package skillfolders finds skills (folders of instructions and programs for agents) in the
// operator's folders and in sessions' workspaces, and says which agents have them.
//
// skillfolders.go finds the operator's skills; session.go adds those of a session's workspace,
// and gives agents the tools of their skills; proposals.go keeps the skills that agents propose until
// an owner accepts them; proposed_files.go reads and installs their files.
package skillfolders

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/cmd/parley/config"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/skills"
	"parley/tools/skills/folder"
	"parley/tools/spelling"
)

// Folder is the name of the folder of skills, in a home and in a workspace.
const Folder = "skills"

// A Catalog holds the operator's skills, as they were found.
type Catalog struct {
	Dirs     []string // where they were searched for
	Skills   []skills.Skill
	Problems []folder.Problem
	settings *config.Config
}

// EmptyCatalog returns a Catalog without skills.
func EmptyCatalog(c *config.Config) *Catalog { return &Catalog{settings: c} }

// Find reads the operator's skills.
func Find(c *config.Config) *Catalog {
	found := &Catalog{Dirs: c.Skills.Dirs, settings: c}
	if found.Dirs == nil {
		dir := filepath.Join(c.Home, Folder)
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			found.Dirs = []string{dir}
		}
	}
	all, problems := folder.Find(found.Dirs...)
	found.Problems = problems
	for _, s := range all {
		found.Skills = append(found.Skills, skills.Skill{Skill: s, Trusted: slices.Contains(c.Skills.Trusted, s.Name)})
	}
	found.checkServers()
	found.checkNames("skills.trusted", c.Skills.Trusted, false)
	found.checkNames("skills.off", c.Skills.Off, true) // the name may mean a skill in a workspace
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		found.checkNames("agents."+name+".skills", c.Agents[name].Skills, false)
	}
	return found
}

// checkNames records a problem for each name in the setting key that no skill has; minor says that
// the problem doesn't keep the server from starting. A skill that was left out already has a
// problem that says why.
func (c *Catalog) checkNames(key string, names []string, minor bool) {
	var known []string
	for _, s := range c.Skills {
		known = append(known, s.Name)
	}
	for _, name := range names {
		if slices.Contains(known, name) || slices.ContainsFunc(c.Problems, func(p folder.Problem) bool { return p.Skill == name }) {
			continue
		}
		remedy := "the skills are " + strings.Join(known, ", ")
		if near := spelling.Nearest(name, known); near != "" {
			remedy = fmt.Sprintf("write %q", near)
		} else if len(known) == 0 {
			remedy = "there are no skills: put the skill's folder into " + filepath.Join(c.settings.Home, Folder)
		}
		p := folder.Problem{File: c.settings.Origin(key), Wrong: fmt.Sprintf("%s: no skill is called %q", key, name), Remedy: remedy, IsMinor: minor}
		if !slices.Contains(c.Problems, p) {
			c.Problems = append(c.Problems, p)
		}
	}
}

// checkServers leaves out each skill whose tools would have the same names as the tools of an MCP
// server.
func (c *Catalog) checkServers() {
	c.Skills = slices.DeleteFunc(c.Skills, func(s skills.Skill) bool {
		_, taken := c.settings.MCP[s.Name]
		if !taken || len(s.Programs) == 0 {
			return false
		}
		c.Problems = append(c.Problems, folder.Problem{
			File: filepath.Join(s.Path, folder.Manifest), Wrong: "its tools would have the same names as those of the MCP server " + s.Name,
			Remedy: "give the skill and its folder, or the server, another name", Skill: s.Name,
		})
		return true
	})
}

// Err returns the problems that keep the server from starting; nil if there are none. They are
// mistakes in the settings: a skill that cannot be used is only left out.
func (c *Catalog) Err() error {
	var all []error
	for _, p := range c.Problems {
		if !p.IsMinor && p.Skill == "" {
			all = append(all, &config.SettingError{Where: p.File, Key: "skills", Remedy: p.Wrong + ": " + p.Remedy})
		}
	}
	return errors.Join(all...)
}

// Minor returns the problems that are not serious; see folder.Problem.Minor.
func (c *Catalog) Minor() (all []folder.Problem) {
	for _, p := range c.Problems {
		if p.IsMinor {
			all = append(all, p)
		}
	}
	return all
}

// LeftOut returns the problems because of which skills are left out.
func (c *Catalog) LeftOut() (all []folder.Problem) {
	for _, p := range c.Problems {
		if !p.IsMinor && p.Skill != "" {
			all = append(all, p)
		}
	}
	return all
}

// WithPrograms returns the names of the skills that add tools and that at least one agent has.
func (c *Catalog) WithPrograms() (names []string) {
	for _, s := range c.Skills {
		if len(s.Programs) > 0 && len(c.Agents(s.Name)) > 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// Unsuited returns a problem for each program that needs a stricter sandbox than this mode.
func (c *Catalog) Unsuited(mode sandbox.Mode) (all []folder.Problem) {
	runner := skills.Runner{Mode: mode}
	for _, s := range c.Skills {
		for _, p := range s.Programs {
			if !runner.CanRun(p) {
				all = append(all, folder.Problem{
					File: filepath.Join(s.Path, folder.Manifest), Skill: s.Name,
					Wrong:  fmt.Sprintf("tool %s: it needs the sandbox %s, and commands on this machine run in %s", p.Name, p.Sandboxing, mode),
					Remedy: "make that sandbox work here, as docs/tools.md says, or change sandboxing",
				})
			}
		}
	}
	return all
}

// OfAgent returns the operator's skills that an agent has.
func (c *Catalog) OfAgent(agent string) (has []skills.Skill) {
	for _, s := range c.Skills {
		if c.has(agent, s.Name) {
			has = append(has, s)
		}
	}
	return has
}

func (c *Catalog) has(agent, skill string) bool {
	only := c.settings.Agents[agent].Skills
	return !slices.Contains(c.settings.Skills.Off, skill) && (only == nil || slices.Contains(only, skill))
}

// Agents returns the names of the agents that have a particular skill of the operator's.
func (c *Catalog) Agents(skill string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.settings.Agents)) {
		if c.has(name, skill) {
			names = append(names, name)
		}
	}
	return names
}

// A ListedSkill describes one of the operator's skills in the API.
type ListedSkill struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Folder      string   `json:"folder"`
	Agents      []string `json:"agents"` // agents that have it
	Trusted     bool     `json:"trusted"`
	Tools       []string `json:"tools"` // tools that it adds to agents with the required permissions
	Version     string   `json:"version,omitempty"`
	// Programs says more about Tools, in the same order.
	Programs []ListedProgram `json:"programs"`
}

// A ListedProgram describes a tool of a skill in the API, as the skill's manifest declares it.
type ListedProgram struct {
	Tool        string             `json:"tool"`
	Binary      string             `json:"binary"`
	TimeoutMS   int64              `json:"timeout_ms"`
	Sandbox     folder.Sandboxing  `json:"sandbox,omitempty"`
	Permissions []tools.Permission `json:"permissions"`
	After       []string           `json:"after,omitempty"` // tools after which it runs within a step
	Version     string             `json:"version,omitempty"`
	Skill       string             `json:"skill"`
}

// List returns all of the operator's skills, including those that no agent has.
func (c *Catalog) List() []ListedSkill {
	all := []ListedSkill{}
	for _, s := range c.Skills {
		agents := c.Agents(s.Name)
		if agents == nil {
			agents = []string{}
		}
		one := ListedSkill{Name: s.Name, Description: s.Description, Folder: s.Path, Agents: agents, Trusted: s.Trusted, Version: s.Version, Tools: []string{}, Programs: []ListedProgram{}}
		for _, p := range s.Programs {
			name := skills.ToolName(s.Name, p.Name)
			listed := ListedProgram{
				Tool: name, Binary: p.Binary, TimeoutMS: p.Timeout.Milliseconds(), Sandbox: p.Sandboxing,
				Permissions: append([]tools.Permission{}, p.Needs...), Version: s.Version, Skill: s.Name,
			}
			for _, before := range p.After {
				listed.After = append(listed.After, skills.ToolName(s.Name, before))
			}
			one.Tools, one.Programs = append(one.Tools, name), append(one.Programs, listed)
		}
		all = append(all, one)
	}
	return all
}
