// Package git provides the tools with which an agent works on git repositories in its workspace.
//
// git runs in a sandbox, because the configuration of a repository, which an agent may have written, can make git
// run programs.
package git

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
)

// Config connects the git tools to the sandbox in which git runs, and to the sessions'
// directories.
type Config struct {
	Sandbox sandbox.Sandbox
	// Place returns where git runs for a call: in the folder path of the session's workspace, in the sandbox.
	Place func(ctx context.Context, call tools.Call, path string) (sandbox.Place, error)
	// Changed is called after a call that may have changed the session's files.
	Changed func(call tools.Call)
}

// New makes the tools git_status, git_diff, git_log, git_commit and git_branch.
func New(c Config) []tools.Tool {
	g := gitTools{c}
	return []tools.Tool{
		tools.New(gitSpec("git_status", tools.Pure, "Show the branch and the changed files of a git repository in the workspace, as git status --short --branch does."), g.status),
		tools.New(gitSpec("git_diff", tools.Pure, "Show what has changed in a git repository: not yet staged, staged, or against a commit or branch."), g.diff),
		tools.New(gitSpec("git_log", tools.Pure, "List the newest commits of a git repository with author, date and message."), g.log),
		tools.New(gitSpec("git_commit", tools.Once, "Commit changes in a git repository: those of the given paths, new files included, or else of all files that git already tracks."), g.commit),
		tools.New(gitSpec("git_branch", tools.Once, "List the branches of a git repository; or with a name make a new branch and switch to it."), g.branch),
	}
}

func gitSpec(name string, effect tools.Effect, description string) tools.Spec {
	return tools.Spec{
		Name: name, Description: description, Effect: effect, Permission: tools.Git,
		Timeout: 60 * time.Second, MaxTimeout: 300 * time.Second,
		// Git runs programs named in a repository's configuration: these may do anything that the sandbox allows.
		Touches: tools.TouchesAlways(tools.Touch{
			Reads: tools.AnyFiles{}, Writes: tools.AnyFiles{}, Outward: tools.RunsProgram{Effect: "run what reaches the network", Offline: true},
		}),
	}
}

type gitTools struct{ Config }

// A gitResult is the result of a git command, for the model.
type gitResult struct {
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

type statusArgs struct {
	Path string `json:"path,omitempty" jsonschema:"folder of the repository; left out: the workspace"`
}

func (g gitTools) status(ctx context.Context, call tools.Call, args statusArgs) (any, error) {
	return g.run(ctx, call, args.Path, "", "git", "--no-optional-locks", "--no-pager", "status", "--short", "--branch")
}

type diffArgs struct {
	Path   string `json:"path,omitempty" jsonschema:"folder of the repository; left out: the workspace"`
	Staged bool   `json:"staged,omitempty" jsonschema:"what is staged for the next commit"`
	Ref    string `json:"ref,omitempty" jsonschema:"commit or branch to compare with"`
}

func (g gitTools) diff(ctx context.Context, call tools.Call, args diffArgs) (any, error) {
	line := []string{"git", "--no-optional-locks", "--no-pager", "diff", "--no-color"}
	if args.Staged {
		line = append(line, "--cached")
	}
	if args.Ref != "" {
		if err := checkNotOption("ref", args.Ref); err != nil {
			return nil, err
		}
		line = append(line, args.Ref)
	}
	return g.run(ctx, call, args.Path, "", append(line, "--")...)
}

// How many commits git_log lists by default, and at most.
const (
	defaultLogLimit = 20
	maxLogLimit     = 200
)

type logArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"folder of the repository; left out: the workspace"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many commits; 20 if left out, at most 200"`
}

func (g gitTools) log(ctx context.Context, call tools.Call, args logArgs) (any, error) {
	if args.Limit <= 0 {
		args.Limit = defaultLogLimit
	}
	return g.run(ctx, call, args.Path, "", "git", "--no-optional-locks", "--no-pager", "log", "--no-color", "--date=iso-strict", "-n", strconv.Itoa(min(args.Limit, maxLogLimit)))
}

type commitArgs struct {
	Message string   `json:"message" jsonschema:"the commit's message"`
	Paths   []string `json:"paths,omitempty" jsonschema:"files and folders to commit, from the repository's folder; left out: all tracked files that have changed"`
	Path    string   `json:"path,omitempty" jsonschema:"folder of the repository; left out: the workspace"`
}

// commitScript is the shell script that commits. It reads the commit message from standard input, and names the
// agent as author and committer if the repository's configuration names nobody.
const commitScript = `git config user.name >/dev/null || export GIT_AUTHOR_NAME="$1" GIT_COMMITTER_NAME="$1"
git config user.email >/dev/null || export GIT_AUTHOR_EMAIL=agent@parley.invalid GIT_COMMITTER_EMAIL=agent@parley.invalid
shift
if [ $# -gt 0 ]; then git add -A -- "$@" && exec git commit -q -F -; fi
exec git commit -q -a -F -`

func (g gitTools) commit(ctx context.Context, call tools.Call, args commitArgs) (any, error) {
	if strings.TrimSpace(args.Message) == "" {
		return nil, tools.Errorf(tools.InvalidArgs, "a commit needs a message")
	}
	if slices.Contains(args.Paths, "") {
		return nil, tools.Errorf(tools.InvalidArgs, "a path is empty: give a file or folder, . for all")
	}
	return g.run(ctx, call, args.Path, args.Message, append([]string{"sh", "-c", commitScript, "sh", call.Agent}, args.Paths...)...)
}

type branchArgs struct {
	Name string `json:"name,omitempty" jsonschema:"the new branch; left out: list those that there are"`
	From string `json:"from,omitempty" jsonschema:"commit or branch that it begins at; left out: the current one"`
	Path string `json:"path,omitempty" jsonschema:"folder of the repository; left out: the workspace"`
}

func (g gitTools) branch(ctx context.Context, call tools.Call, args branchArgs) (any, error) {
	if args.Name == "" {
		if args.From != "" {
			return nil, tools.Errorf(tools.InvalidArgs, "from is for a new branch: give its name too")
		}
		return g.run(ctx, call, args.Path, "", "git", "--no-pager", "branch", "--list", "--no-color", "-vv", "--all")
	}
	line := []string{"git", "switch", "-c", args.Name}
	if args.From != "" {
		line = append(line, args.From)
	}
	for i, name := range line[3:] {
		if err := checkNotOption([]string{"name", "from"}[i], name); err != nil {
			return nil, err
		}
	}
	return g.run(ctx, call, args.Path, "", line...)
}

// checkNotOption refuses a name that begins like an option, because git would take it for one.
func checkNotOption(what, name string) error {
	if strings.HasPrefix(name, "-") || strings.ContainsRune(name, 0) {
		return tools.Errorf(tools.InvalidArgs, "%s cannot begin with -", what)
	}
	return nil
}

// run runs a command in a folder of the workspace; in the workspace itself if path is "".
func (g gitTools) run(ctx context.Context, call tools.Call, path, stdin string, args ...string) (any, error) {
	place, err := g.Place(ctx, call, path)
	if err != nil {
		return nil, err
	}
	c := place.Command(args...)
	c.HeldAt, c.Stdin = call.HeldAt, strings.NewReader(stdin)
	c.Env = []string{"GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_EDITOR=true"}
	began := time.Now()
	r, err := g.Sandbox.Run(ctx, c)
	g.Changed(call)
	if err != nil {
		return nil, sandbox.ErrorForModel(err)
	}
	if err := sandbox.EndedError(r, time.Since(began)); err != nil {
		return nil, err
	}
	return gitResult{r.ExitCode, r.Stdout, r.Stderr}, nil
}
