// This file holds the import rules: which package may import which, who owns which
// library, and what no package has. It reads the source; it runs none of it.

package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "parley"

// A rule says what the code of one package, or with "/..." of those below it that
// have no line of their own, may import from this module: only from layers below.
// Everybody may import the standard library; tests may import any package.
type rule struct {
	path  string
	layer int
	may   []string
}

func rules() []rule {
	return []rule{
		{"bus", 1, nil},
		{"sessions", 1, nil},
		{"tools/spelling", 0, nil}, // the ground under every "did you mean"
		{"tools", 1, []string{"tools/spelling"}},
		{"tools/target", 0, nil},    // the ground under all that decides where calls go
		{"tools/plainhttp", 0, nil}, // the ground under all that asks servers nearby
		{"testlog", 0, nil},
		{"channels/markup/document", 0, nil},
		{"channels/markup", 1, []string{"channels/markup/document"}},
		{"sessions/sqldb", 1, nil}, // the ground under all that is kept in SQL

		{"bus/...", 2, []string{"bus", "sessions/sqldb"}},
		{"sessions/...", 2, []string{"sessions", "sessions/sqldb"}},
		{"sessions/sqlstore", 3, []string{"sessions", "sessions/bill", "sessions/purges", "sessions/schedules", "sessions/sqldb", "sessions/tasks"}},
		{"sessions/workspace", 2, nil},
		{"sessions/outgoing", 2, nil},
		{"sessions/snapshots", 2, nil},
		{"tools/...", 2, []string{"tools"}},
		{"tools/guard", 2, []string{"tools", "tools/guard/shellline", "tools/target"}},
		{"tools/guard/shellline", 1, nil},
		{"tools/sandbox/cgroup", 0, nil},
		{"tools/sandbox/egress", 1, []string{"tools/target"}},
		{"tools/sandbox/seccomp", 0, nil},
		{"tools/sandbox", 2, []string{"tools", "tools/sandbox/cgroup", "tools/sandbox/egress", "tools/sandbox/supervisor"}},
		{"tools/sandbox/supervisor", 1, []string{"tools/sandbox/cgroup", "tools/sandbox/seccomp"}},
		{"tools/web", 2, []string{"tools", "tools/documents/pages", "tools/target"}},
		{"tools/shell", 3, []string{"tools", "tools/sandbox"}},
		{"tools/documents/pages", 1, nil}, // the ground under what reads documents and what shows them
		{"tools/documents/charset", 1, nil},
		{"tools/documents/pdf", 2, []string{"tools/documents/pages"}},
		{"tools/documents/office", 3, []string{"tools/documents/charset", "tools/documents/pages", "tools/documents/table"}},
		{"tools/documents/table", 2, []string{"tools/documents/charset", "tools/documents/pages"}},
		{"tools/documents", 4, []string{
			"tools", "tools/documents/office", "tools/documents/pages", "tools/documents/pdf", "tools/documents/table", "tools/sandbox",
		}},
		{"tools/files", 2, []string{"tools", "tools/documents/pages"}},
		{"tools/mcp/lines", 1, nil},  // the ground under what speaks with programs
		{"tools/mcp/pins", 1, nil},   // the ground under what is accepted
		{"tools/mcp/signin", 1, nil}, // and under what is signed in to
		{"tools/mcp", 3, []string{"tools", "tools/mcp/lines", "tools/mcp/pins", "tools/mcp/signin", "tools/sandbox"}},
		{"tools/skills/folder", 2, []string{"tools"}},
		{"tools/skills", 3, []string{"tools", "tools/sandbox", "tools/skills/folder"}},
		{"tools/git", 3, []string{"tools", "tools/sandbox"}},
		{"channels", 2, []string{"bus", "channels/markup"}},
		{"channels/backoff", 2, nil},
		{"agent/llm", 2, []string{"tools"}},
		{"agent/journal", 2, []string{"sessions"}},
		{"agent/prompt", 2, nil},
		{"agent/delegation", 3, []string{"bus", "sessions", "tools", "agent/journal"}},
		{"agent/quota", 2, []string{"bus"}},
		{"agent/purse", 3, []string{"agent/llm", "sessions", "sessions/bill"}},
		{"agent/audit", 2, []string{"sessions"}},
		{"agent/quote", 2, nil},
		{"agent/asks", 3, []string{"agent/quote", "bus", "sessions", "tools"}},
		{"agent/route", 2, []string{"bus"}},
		{"agent/shortfall", 3, []string{"agent/llm"}},
		{"agent/pictures", 2, nil},
		{"agent/transcribe", 2, nil},
		{"agent/attempt", 2, []string{"tools"}},
		{"agent/stream", 3, []string{"bus", "agent/llm"}},
		{"agent/tally", 3, []string{"agent/llm"}},

		{"channels/...", 3, []string{"channels", "channels/backoff", "channels/markup", "bus"}},
		{"channels/discord", 4, []string{"channels", "channels/backoff", "channels/discord/socket", "channels/markup", "bus"}},
		{"channels/slack/events", 3, nil},
		{"channels/slack/files", 3, []string{"channels", "channels/markup", "bus"}},
		{"channels/telegram/webhook", 3, nil},
		{"channels/telegram", 4, []string{"channels", "channels/backoff", "channels/markup", "channels/telegram/webhook", "bus", "tools/plainhttp"}},
		{"channels/sqlbook", 3, []string{"channels", "channels/markup", "bus", "sessions/sqldb"}},
		{"channels/slack", 4, []string{"channels", "channels/backoff", "channels/markup", "channels/slack/assistant", "channels/slack/events", "channels/slack/files", "channels/slack/interaction", "channels/slack/stream", "bus"}},
		{"channels/pacing", 3, []string{"channels", "bus"}},
		{"channels/reactions", 3, []string{"channels", "bus"}},
		{"channels/channelstest", 3, []string{"channels", "channels/markup", "bus", "testlog"}},
		{"channels/gateway", 4, []string{"channels", "channels/markup", "channels/pacing", "channels/reactions", "bus"}},
		{"channels/dispatch", 4, []string{"channels", "channels/enclosure", "channels/markup", "channels/pacing", "channels/reactions", "bus"}},
		{"channels/stagetest", 4, []string{"channels/channelstest", "channels/sqlbook", "bus", "bus/..."}},

		{"agent/transcript", 3, []string{"bus", "sessions", "tools", "agent/llm", "agent/journal"}},
		{"agent/...", 3, []string{"agent/llm", "tools"}}, // the models

		{"agent/openai/window", 3, []string{"agent/llm"}},
		{"agent/openai/toollist", 2, []string{"tools"}},
		{"agent/openai/lenient", 2, nil}, // the ground under all that reads what servers write
		{"agent/openai/thinktags", 2, nil},
		{"agent/openai/increment", 2, nil},
		{"agent/openai/ending", 3, []string{"agent/llm", "agent/openai/lenient"}},
		{"agent/openai/toolcall", 3, []string{"agent/llm", "agent/openai/lenient"}},
		{"agent/openai/usage", 3, []string{"agent/llm", "agent/openai/lenient"}},
		{"agent/openai/responses", 4, []string{"agent/llm", "agent/openai/ending", "agent/openai/lenient", "agent/openai/thinktags", "agent/openai/toolcall", "agent/openai/usage"}},
		{"agent/openai", 5, []string{
			"agent/llm", "agent/openai/ending", "agent/openai/increment", "agent/openai/lenient", "agent/openai/responses", "agent/openai/thinktags", "agent/openai/toolcall", "agent/openai/toollist", "agent/openai/usage", "agent/openai/window", "tools", "tools/plainhttp",
		}},
		{"agent/prices", 3, []string{"agent/llm"}},
		{"agent/failover", 3, []string{"agent/llm"}},
		{"agent/demo", 4, []string{"agent/llm", "agent/transcript", "tools"}}, // reads what it was sent as a model does
		{"agent/agenttest", 4, []string{"agent/transcript"}},
		{"agent/news", 3, []string{"bus", "sessions", "agent/journal"}},
		{"agent/attached", 3, []string{"bus", "sessions", "agent/journal"}},
		{"agent/warm", 3, []string{"agent/journal", "sessions"}},
		{"agent", 4, []string{
			"bus", "sessions", "sessions/bill", "tools", "agent/asks", "agent/attached", "agent/audit", "agent/delegation", "agent/llm", "agent/journal", "agent/news", "agent/transcript",
			"agent/attempt", "agent/purse", "agent/quota", "agent/quote", "agent/route", "agent/shortfall", "agent/stream", "agent/tally", "agent/warm",
		}},

		{"cmd/parley/...", 5, []string{"bus", "sessions", "tools", "channels", "channels/markup", "agent", "agent/llm"}},
		{"cmd/parley/backup", 5, []string{"bus/sqlitebus", "sessions/sqldb", "sessions/workspace"}},
		{"cmd/parley/aging", 4, []string{"agent/pictures", "sessions"}},
		{"cmd/parley/erase", 5, []string{"bus", "channels", "channels/sqlbook", "cmd/parley/aging", "sessions", "sessions/sqldb"}},
		{"cmd/parley/introduction", 5, []string{"channels/markup"}},
		{"cmd/parley/attachments", 5, []string{
			"agent", "agent/llm", "agent/pictures", "bus", "channels", "cmd/parley/aging", "sessions", "sessions/workspace", "tools", "tools/guard", "tools/image",
		}},
		{"cmd/parley/jsonfile", 4, nil},
		{"cmd/parley/garbage", 4, nil},
		{"cmd/parley/mapped", 4, nil},
		{"cmd/parley/audit", 5, []string{"cmd/parley/jsonfile", "sessions"}},
		{"cmd/parley/homedb", 4, []string{"bus/sqlitebus", "channels/sqlbook", "sessions/sqldb", "sessions/sqlstore"}},
		{"cmd/parley/migrate", 5, []string{"bus", "bus/redisbus", "bus/sqlitebus", "channels/sqlbook", "cmd/parley/homedb", "cmd/parley/jsonfile", "sessions/sqldb", "sessions/sqlstore"}},
		{"cmd/parley/hometest", 5, []string{"..."}},
		{"cmd/parley/parleytest", 5, []string{"..."}},
		{"cmd/parley/outbox", 5, []string{"bus", "channels", "channels/markup", "tools/spelling"}},
		{"cmd/parley/outfiles", 5, []string{"bus", "channels", "channels/enclosure", "channels/markup", "sessions/outgoing", "sessions/sqldb", "tools"}},
		{"cmd/parley/undo", 6, []string{"agent", "bus", "cmd/parley/outfiles", "sessions/snapshots", "sessions/workspace", "tools", "tools/changes", "tools/guard"}},
		{"cmd/parley/metrics", 5, []string{"agent", "agent/failover", "agent/llm", "bus"}},

		{"cmd/parley/config", 6, []string{"bus", "tools", "tools/spelling", "tools/sandbox/egress", "cmd/parley/config/positions", "cmd/parley/outbox"}},
		{"cmd/parley/occasion", 4, []string{"bus"}},
		{"cmd/parley/events", 5, []string{"bus", "channels", "channels/markup", "cmd/parley/occasion", "sessions"}},
		{"cmd/parley/routing", 5, []string{"bus", "channels", "channels/gateway", "sessions"}},
		{"cmd/parley/webhook", 6, []string{"bus", "channels", "channels/markup", "cmd/parley/events", "cmd/parley/outbox"}},
		{"cmd/parley/jobs", 6, []string{"bus", "cmd/parley/occasion", "sessions", "tools", "tools/jobs", "tools/sandbox", "tools/shell"}},
		{"cmd/parley/handover", 6, []string{"agent/delegation", "bus", "cmd/parley/occasion", "sessions", "sessions/tasks", "sessions/workspace", "tools", "tools/delegate", "tools/guard"}},
		{"cmd/parley/recall", 5, []string{"agent/route", "channels", "sessions", "sessions/sqlstore"}},
		{"cmd/parley/reading", 6, []string{"bus", "channels", "sessions", "tools", "tools/history"}},
		{"cmd/parley/watch", 5, []string{"bus", "channels"}},
		{"cmd/parley/heartbeat", 5, []string{"bus", "channels", "channels/markup", "cmd/parley/occasion", "sessions"}},
		{"cmd/parley/billing", 6, []string{"bus", "sessions/bill", "cmd/parley/watch"}},
		{"cmd/parley/clock", 5, []string{"bus", "cmd/parley/occasion", "sessions/schedules", "tools", "tools/schedule"}},
		{"cmd/parley/personal", 5, []string{"bus", "channels"}},
		{"cmd/parley/owndata", 6, []string{"bus", "channels", "sessions", "sessions/schedules", "cmd/parley/erase"}},
		{"cmd/parley/api", 6, []string{
			"bus", "sessions", "sessions/bill", "sessions/schedules", "channels", "channels/console", "channels/markup", "channels/web", "cmd/parley/erase", "cmd/parley/outbox",
			"tools/spelling",
		}},

		// Those that name implementations: of a channel, of what is remembered, and
		// of all the rest.
		{"cmd/parley/walls", 7, []string{"tools/sandbox", "cmd/parley/config"}},
		{"cmd/parley/models", 7, []string{"agent/demo", "agent/failover", "agent/llm", "agent/openai", "agent/prices", "channels", "cmd/parley/config"}},
		{"cmd/parley/mcpservers", 7, []string{"bus", "channels", "tools", "tools/mcp", "tools/mcp/pins", "tools/mcp/signin", "tools/sandbox", "cmd/parley/config"}},
		{"cmd/parley/skillfolders", 7, []string{
			"tools", "tools/guard", "tools/sandbox", "tools/skills", "tools/skills/folder", "tools/spelling", "cmd/parley/config",
		}},
		{"cmd/parley/platforms", 7, []string{"bus", "channels", "channels/discord", "channels/slack", "channels/telegram", "cmd/parley/config"}},
		{"cmd/parley/home", 7, []string{
			"bus", "bus/...", "sessions", "sessions/...", "sessions/sqldb", "sessions/workspace", "channels", "channels/sqlbook",
			"cmd/parley/aging", "cmd/parley/backup", "cmd/parley/config", "cmd/parley/crash", "cmd/parley/erase", "cmd/parley/homedb", "cmd/parley/jsonfile", "cmd/parley/migrate",
		}},
		{"cmd/parley/server", 8, []string{"..."}},

		{"cmd/parley/client", 9, []string{"bus", "bus/sqlitebus", "channels", "sessions", "cmd/parley/home", "cmd/parley/mcpservers", "cmd/parley/server"}},
		{"cmd/parley/terminal", 9, []string{"channels/console", "cmd/parley/home"}},
		{"cmd/parley/doctor", 10, []string{"..."}},
		{"cmd/parley/unit", 5, nil},
		{"cmd/parley/report", 11, []string{
			"bus", "sessions", "sessions/bill", "cmd/parley/api", "cmd/parley/doctor", "cmd/parley/mcpservers", "cmd/parley/skillfolders", "cmd/parley/terminal",
		}},
		{"cmd/parley/onboard", 10, []string{
			"agent/llm", "agent/openai", "channels", "tools/spelling", "cmd/parley/config", "cmd/parley/platforms", "cmd/parley/terminal",
		}},
		{"cmd/parley", 12, []string{"..."}},
	}
}

// beforeMain tells whether a package has to do its work before the large libraries are
// initialised, and so before main.
func beforeMain(dir string) bool {
	return dir == "tools/sandbox/supervisor" || dir == "cmd/parley/garbage"
}

// libraries says for each library from elsewhere which packages may use it, so that
// it can be exchanged there and nowhere else. Tests may use any of them.
func libraries() map[string][]string {
	anyAbove := []string{
		"bus/...", "sessions/...", "tools/...", "channels", "channels/...", "agent", "agent/...", "cmd/parley", "cmd/parley/...",
	}
	return map[string][]string{
		"charm.land/bubbles/v2":                    {"channels/console"},
		"charm.land/bubbletea/v2":                  {"channels/console"},
		"github.com/alecthomas/kong":               {"cmd/parley", "cmd/parley/completion"},
		"github.com/bwmarrin/discordgo":            {"channels/discord"},
		"github.com/charmbracelet/x/ansi":          {"channels/console"},
		"github.com/go-telegram/bot":               {"channels/telegram"},
		"github.com/google/jsonschema-go":          {"tools"},
		"github.com/gorilla/websocket":             {"channels/discord/...", "channels/slack", "channels/slack/slacktest", "channels/web"},
		"github.com/jackc/pgx/v5":                  {"sessions/sqldb"},
		"github.com/landlock-lsm/go-landlock":      {"tools/sandbox/supervisor"},
		"github.com/modelcontextprotocol/go-sdk":   {"tools/mcp", "tools/mcp/lines", "tools/mcp/signin"},
		"github.com/pelletier/go-toml/v2":          {"cmd/parley/config", "cmd/parley/config/positions", "tools/skills/folder"},
		"github.com/prometheus/client_golang":      {"cmd/parley", "cmd/parley/..."},
		"github.com/redis/go-redis/v9":             {"bus/redisbus"},
		"github.com/rivo/uniseg":                   {"channels/markup", "channels/markup/document", "channels/console"},
		"github.com/santhosh-tekuri/jsonschema/v6": {"tools"},
		"github.com/sashabaranov/go-openai":        {"agent/openai", "agent/transcribe"},
		"github.com/slack-go/slack":                {"channels/slack", "channels/slack/assistant", "channels/slack/stream"},
		"github.com/yuin/goldmark":                 {"channels/markup/document"},
		"github.com/yuin/goldmark-emoji":           {"channels/markup/document"},
		"go.yaml.in/yaml/v4":                       {"tools/skills/folder"},
		"golang.org/x/image":                       {"agent/pictures"},
		"golang.org/x/oauth2":                      {"tools/mcp/signin"},
		"golang.org/x/sync":                        anyAbove,
		"golang.org/x/sys":                         {"cmd/parley/home", "tools/sandbox/cgroup", "tools/sandbox/seccomp", "tools/sandbox/supervisor"},
		"golang.org/x/term":                        {"channels/console", "cmd/parley", "cmd/parley/onboard"},
		"golang.org/x/time":                        anyAbove,
		"modernc.org/libc":                         {"sessions/sqldb"},
		"modernc.org/sqlite":                       {"sessions/sqldb"},
		"mvdan.cc/sh/v3":                           {"tools/guard/shellline"},

		"codeberg.org/readeck/go-readability":             {"tools/web"},
		"github.com/JohannesKaufmann/html-to-markdown/v2": {"tools/web"},
		"github.com/klippa-app/go-pdfium":                 {"tools/documents/pdf"},
		"github.com/tetratelabs/wazero":                   {"tools/documents/pdf"},
		"golang.org/x/net":                                {"tools/documents/charset", "tools/target", "tools/web"},
	}
}

// covers tells whether pattern names the package dir, or with "/..." one above it.
func covers(pattern, dir string) bool {
	below, deep := strings.CutSuffix(pattern, "...")
	return pattern == dir || deep && strings.HasPrefix(dir, below)
}

// ruleOf finds the line for the package dir: its own, or else the nearest above.
func ruleOf(dir string) (rule, bool) {
	var best rule
	for _, r := range rules() {
		if r.path == dir {
			return r, true
		}
		if covers(r.path, dir) && len(r.path) > len(best.path) {
			best = r
		}
	}
	return best, best.path != ""
}

// An inspection collects what breaks the rules, and which packages it saw.
type inspection struct {
	problems []string
	packages map[string]bool // by folder: has it a package comment?
}

func inspect(source fs.FS) (*inspection, error) {
	in := &inspection{packages: map[string]bool{}}
	err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		code, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, code, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		in.file(name, file)
		return nil
	})
	for dir, documented := range in.packages {
		if !documented {
			in.say(dir, "no comment introduces the package: \"Package NAME …\", for main \"Parley …\"")
		}
	}
	slices.Sort(in.problems)
	return in, err
}

func (in *inspection) say(where, format string, args ...any) {
	in.problems = append(in.problems, where+": "+fmt.Sprintf(format, args...))
}

func (in *inspection) file(name string, file *ast.File) {
	dir := path.Dir(name)
	if _, ok := ruleOf(dir); !ok {
		in.say(name, "%s has no import rule: Go code lives in cmd/parley, channels, bus, agent, tools and sessions", dir)
		return
	}
	in.name(name, file.Name.Name)
	test := strings.HasSuffix(name, "_test.go")
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			in.say(name, "import %s: %v", spec.Path.Value, err)
			continue
		}
		if rule := broken(dir, imported, test); rule != "" {
			in.say(name, "imports %q: %s", imported, rule)
		}
	}
	if test {
		return
	}
	in.packages[dir] = in.packages[dir] || documents(file)
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && decl.Name.Name == "init" && !beforeMain(dir) {
				in.say(name, "func init: say it in a constructor or in main")
			}
		case *ast.GenDecl:
			if isSuite(dir) {
				continue // it lists its checks, as a test lists its cases
			}
			in.variables(name, file.Name.Name, decl)
		}
	}
}

func (in *inspection) name(name, pkg string) {
	dir := path.Base(path.Dir(name))
	pkg = strings.TrimSuffix(pkg, "_test")
	if pkg == "main" && !strings.HasPrefix(name, "cmd/") {
		in.say(name, "programs live in cmd")
	}
	if pkg != "main" && pkg != dir {
		in.say(name, "package %s lives in a folder named %s", pkg, dir)
	}
	for _, word := range []string{"util", "common", "helper", "manager"} {
		if strings.Contains(dir, word) {
			in.say(name, "the name %s says nothing: no %q", dir, word)
		}
	}
	if dir == "base" {
		in.say(name, "the name base says nothing")
	}
}

// documents tells whether the file's comment introduces its package.
func documents(file *ast.File) bool {
	doc := file.Doc.Text()
	if file.Name.Name == "main" {
		return strings.HasPrefix(doc, "Parley ") || strings.HasPrefix(doc, "Command ")
	}
	return strings.HasPrefix(doc, "Package "+file.Name.Name+" ")
}

// broken names the rule that an import by the package dir breaks, or nothing.
func broken(dir, imported string, test bool) string {
	inner, ours := strings.CutPrefix(imported, module+"/")
	switch first, _, _ := strings.Cut(imported, "/"); {
	case ours:
		return brokenWithin(dir, inner, test)
	case imported == "C":
		return "no cgo, so that one static binary is all there is"
	case imported == "testing" && !test && !isSuite(dir):
		return "only tests and suites (folders named …test) may"
	case strings.Contains(first, "."):
		return brokenByLibrary(dir, imported, test)
	}
	return ""
}

func brokenWithin(dir, inner string, test bool) string {
	if strings.HasPrefix(inner, "cmd/") && !strings.HasPrefix(dir, "cmd/") {
		return "nothing imports cmd: it imports everything"
	}
	if test {
		return ""
	}
	if isSuite(inner) && !isSuite(dir) {
		return "a suite is for tests alone"
	}
	r, _ := ruleOf(dir)
	if slices.ContainsFunc(r.may, func(p string) bool { return covers(p, inner) }) {
		return ""
	}
	if len(r.may) == 0 {
		return dir + " imports no other package of this module; what it needs it declares as an interface, and cmd/parley hands it in"
	}
	return dir + " may import " + strings.Join(r.may, ", ") +
		" only; what else it needs it declares as an interface, and cmd/parley hands it in"
}

func brokenByLibrary(dir, imported string, test bool) string {
	for library, owners := range libraries() {
		if imported != library && !strings.HasPrefix(imported, library+"/") {
			continue
		}
		if test || slices.ContainsFunc(owners, func(p string) bool { return covers(p, dir) }) {
			return ""
		}
		return library + " belongs to " + strings.Join(owners, ", ")
	}
	return "no package owns this library: give it an owner in libraries"
}

func isSuite(dir string) bool { return strings.HasSuffix(dir, "test") }

var sentinel = regexp.MustCompile(`^[eE]rr[A-Z]`)

// variables allows what never changes: sentinel errors, assertions, embedded
// files, and what the linker stamps into main.
func (in *inspection) variables(name, pkg string, decl *ast.GenDecl) {
	if decl.Tok != token.VAR || strings.Contains(raw(decl.Doc), "//go:embed ") {
		return
	}
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok || strings.Contains(raw(spec.Doc), "//go:embed ") {
			continue
		}
		for i, id := range spec.Names {
			stamped := pkg == "main" && (id.Name == "version" || id.Name == "revision")
			if id.Name == "_" || stamped || sentinel.MatchString(id.Name) && i < len(spec.Values) && makesError(spec.Values[i]) {
				continue
			}
			in.say(name, "var %s: a package has no variables but sentinel errors; hand it in, or make it a function", id.Name)
		}
	}
}

// raw is a comment as it stands, directives included.
func raw(doc *ast.CommentGroup) (text string) {
	if doc != nil {
		for _, c := range doc.List {
			text += c.Text + "\n"
		}
	}
	return text
}

// makesError tells whether x is errors.New, fmt.Errorf or a value of an error type.
func makesError(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.UnaryExpr:
		return x.Op == token.AND && makesError(x.X)
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		return ok && (f.Sel.Name == "New" || f.Sel.Name == "Errorf")
	}
	return false
}

func TestImports(t *testing.T) {
	in, err := inspect(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range in.problems {
		t.Error(problem)
	}
	for _, dir := range []string{"bus", "sessions", "tools", "channels", "agent"} {
		if _, ok := in.packages[dir]; !ok {
			t.Errorf("the inspection did not see %s", dir)
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, r := range rules() {
		for _, may := range r.may {
			if may == "..." {
				continue
			}
			if below, ok := ruleOf(may); !ok || below.layer >= r.layer {
				t.Errorf("%s (layer %d) may import %s, which is no package of a layer below", r.path, r.layer, may)
			}
			if _, err := os.Stat(path.Join("../..", strings.TrimSuffix(may, "/..."))); err != nil {
				t.Errorf("%s may import %s, which there is not: %v", r.path, may, err)
			}
		}
	}
}

// TestPackagesFitInTheHead holds packages and files to the sizes that CONTRIBUTING.md names.
func TestPackagesFitInTheHead(t *testing.T) {
	const maxFiles, maxLines = 15, 400
	root, files := os.DirFS("../.."), map[string]int{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files[path.Dir(name)]++
		source, err := fs.ReadFile(root, name)
		if n := strings.Count(string(source), "\n"); n > maxLines {
			t.Errorf("%s has %d lines: cut it by nouns, to at most %d", name, n, maxLines)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, n := range files {
		if n > maxFiles {
			t.Errorf("%s has %d files beside its tests: give a noun of it a package of its own, so that it has at most %d", dir, n, maxFiles)
		}
	}
	if len(files) < 50 {
		t.Errorf("the sizes of only %d packages were looked at", len(files))
	}
}

// TestImportRulesSeeWhatIsWrong plants one fault after the other.
func TestImportRulesSeeWhatIsWrong(t *testing.T) {
	imports := func(pkg, imported string) string {
		doc := "Package " + pkg
		if pkg == "main" {
			doc = "Parley"
		}
		return fmt.Sprintf("// %s is planted.\npackage %s\n\nimport _ %q\n", doc, pkg, imported)
	}
	for _, c := range []struct{ name, file, source, want string }{
		{"std", "bus/x.go", imports("bus", "net/http"), ""},
		{"contract", "bus/redisbus/x.go", imports("redisbus", "parley/bus"), ""},
		{"ground", "bus/redisbus/x.go", imports("redisbus", "parley/sessions/sqldb"), ""},
		{"own library", "bus/redisbus/x.go", imports("redisbus", "github.com/redis/go-redis/v9"), ""},
		{"root takes all", "cmd/parley/x.go", imports("main", "parley/channels/slack"), ""},
		{"tests take all", "bus/x_test.go", imports("bus_test", "parley/bus/sqlitebus"), ""},
		{"sentinel", "bus/x.go", "// Package bus is planted.\npackage bus\nvar ErrX = errors.New(\"x\")\nvar _ Bus = nil\n", ""},
		{"platforms take an adapter", "cmd/parley/platforms/x.go", imports("platforms", "parley/channels/telegram"), ""},
		{"suite's list", "bus/bustest/x.go", "// Package bustest is planted.\npackage bustest\nvar checks []string\n", ""},
		{"embed", "bus/x.go", "// Package bus is planted.\npackage bus\n//go:embed x.lua\nvar script string\n", ""},
		{"stamp", "cmd/parley/x.go", "// Parley is planted.\npackage main\nvar version = \"devel\"\n", ""},

		{"contracts meet", "bus/x.go", imports("bus", "parley/sessions"), `bus/x.go: imports "parley/sessions": bus imports no other`},
		{"contract takes library", "bus/x.go", imports("bus", "golang.org/x/sync/errgroup"), "golang.org/x/sync belongs to"},
		{"contract takes implementation", "bus/x.go", imports("bus", "parley/bus/sqlitebus"), "bus imports no other"},
		{"siblings", "bus/redisbus/x.go", imports("redisbus", "parley/bus/sqlitebus"), "bus/redisbus may import bus, sessions/sqldb only"},
		{"agent takes channels", "agent/x.go", imports("agent", "parley/channels"), "agent may import bus, sessions, sessions/bill, tools, agent/asks, agent/attached, agent/audit, agent/delegation, agent/llm, agent/journal, agent/news, agent/transcript, agent/attempt, agent/purse, agent/quota, agent/quote, agent/route, agent/shortfall, agent/stream, agent/tally, agent/warm only"},
		{"channels take agent", "channels/slack/x.go", imports("slack", "parley/agent"), "channels/slack may import"},
		{"tool takes bus", "tools/message/x.go", imports("message", "parley/bus"), "tools/message may import tools only"},
		{"adapter takes ground", "channels/slack/x.go", imports("slack", "parley/sessions/sqldb"), "channels/slack may import"},
		{"home takes an adapter", "cmd/parley/home/x.go", imports("home", "parley/channels/slack"), "cmd/parley/home may import"},
		{"part takes the server", "cmd/parley/api/x.go", imports("api", "parley/cmd/parley/server"), "cmd/parley/api may import"},
		{"part takes implementation", "cmd/parley/new/x.go", imports("new", "parley/bus/redisbus"), "cmd/parley/new may import"},
		{"another's library", "channels/slack/x.go", imports("slack", "github.com/go-telegram/bot/models"), "belongs to channels/telegram"},
		{"nobody's library", "agent/x.go", imports("agent", "example.org/x"), "no package owns"},
		{"code takes suite", "cmd/parley/x.go", imports("main", "parley/bus/bustest"), "for tests alone"},
		{"code takes testing", "bus/x.go", imports("bus", "testing"), "only tests and suites"},
		{"test takes cmd", "bus/x_test.go", imports("bus_test", "parley/cmd/parley/config"), "nothing imports cmd"},
		{"cgo", "bus/x.go", imports("bus", "C"), "no cgo"},
		{"no rule", "pkg/x/x.go", imports("x", "os"), "pkg/x has no import rule"},
		{"at the top", "x.go", imports("parley", "os"), "has no import rule"},
		{"empty name", "tools/fileutil/x.go", imports("fileutil", "os"), `no "util"`},
		{"wrong name", "tools/files/x.go", imports("file", "os"), "package file lives in a folder named files"},
		{"stray program", "tools/x/x.go", imports("main", "os"), "programs live in cmd"},
		{"no comment", "bus/x.go", "package bus\n", "no comment introduces"},
		{"variable", "bus/x.go", "// Package bus is planted.\npackage bus\nvar count int\n", "var count"},
		{"false sentinel", "bus/x.go", "// Package bus is planted.\npackage bus\nvar errCount = 3\n", "var errCount"},
		{"init", "bus/x.go", "// Package bus is planted.\npackage bus\nfunc init() {}\n", "func init"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := inspect(fstest.MapFS{c.file: {Data: []byte(c.source)}})
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Join(in.problems, "\n")
			if (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
