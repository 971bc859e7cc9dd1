// This file has the import rules: which package may import which, which package owns which library, what no package
// has, and how JSON is written. It reads the source and runs none of it.

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

// ground is the one package that every other package may import without listing it.
const ground = "tools/plainjson"

// A rule lists the packages of this module that a package may import, all from lower layers. A path that ends in
// "/..." covers the packages below it that have no rule of their own. The standard library is always allowed, and
// tests may import any package, but from cmd only suites.
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
		{"tools/target", 0, nil},    // for packages that decide where calls go
		{"deploy", 0, nil},          // files that the program gives out
		{"tools/plainhttp", 0, nil}, // for packages that send requests to servers nearby
		{"tools/posting", 0, nil},   // for packages that post to places in the settings
		{"tools/process", 0, nil},   // for packages that serve
		{"tools/testlog", 0, nil},
		{"tools/testrace", 0, nil},
		{ground, 0, nil},
		{"channels/markup/document", 0, nil},
		{"channels/markup", 1, []string{"channels/markup/document"}},
		{"sessions/sqldb", 1, nil}, // for packages that store data in SQL

		{"bus/redisbus/master", 1, nil},
		{"bus/redisbus/sentinel", 2, []string{"bus/redisbus/master"}},
		{"bus/redisbus/cluster", 2, []string{"bus/redisbus/master"}},
		{"bus/redisbus/server", 3, []string{"bus/redisbus/cluster", "bus/redisbus/master", "bus/redisbus/sentinel"}},
		{"bus/redisbus/unsent", 2, []string{"bus"}},
		{"bus/redisbus", 4, []string{"bus", "bus/redisbus/cluster", "bus/redisbus/master", "bus/redisbus/server", "bus/redisbus/unsent", "sessions/sqldb"}},
		{"bus/redisbus/shards", 5, []string{"bus", "bus/redisbus"}},
		{"bus/fanout", 2, []string{"bus"}},
		{"bus/trace", 2, []string{"bus"}},
		{"bus/trace/otlp", 3, []string{"bus/trace", "tools/posting"}},
		{"bus/...", 2, []string{"bus", "sessions/sqldb"}},
		{"sessions/...", 2, []string{"sessions", "sessions/sqldb"}},
		{"sessions/search/vectors", 2, []string{"sessions/sqldb"}}, // numbers, without texts
		{"sessions/search", 3, []string{"sessions", "sessions/search/vectors", "sessions/sqldb"}},
		{"sessions/subscriptions", 2, []string{"sessions", "sessions/sqldb"}},
		{"sessions/archive", 2, []string{"sessions", "sessions/sqldb"}},
		{"sessions/archive/folder", 2, nil},
		{"sessions/archive/bucket", 2, nil},
		{"sessions/schedules", 3, []string{"sessions/sqldb", "sessions/subscriptions"}},
		{"sessions/jobs", 3, []string{"sessions", "sessions/sqldb", "sessions/subscriptions"}},
		{"sessions/nodes", 2, []string{"sessions", "sessions/sqldb"}},
		{"sessions/subagents", 3, []string{"sessions", "sessions/sqldb", "sessions/subscriptions"}},
		{"sessions/sqlstore", 4, []string{"sessions", "sessions/activity", "sessions/archive", "sessions/bill", "sessions/jobs", "sessions/nodes", "sessions/participants", "sessions/rates", "sessions/schedules", "sessions/search", "sessions/sqldb", "sessions/subagents", "sessions/subscriptions"}},
		{"sessions/sqlstore/sqlstoretest", 5, []string{"sessions/sqlstore", "sessions/sqldb/sqldbtest"}},
		{"sessions/sessionstest", 4, []string{"sessions", "sessions/search", "sessions/sqldb", "tools/testrace"}},
		{"sessions/search/searchtest", 4, []string{"sessions", "sessions/search"}},
		{"sessions/search/sight", 2, []string{"sessions"}},
		{"sessions/workspace", 2, nil},
		{"sessions/outgoing", 2, nil},
		{"sessions/snapshots", 2, nil},
		{"tools/...", 2, []string{"tools"}},
		{"tools/guard", 2, []string{"tools", "tools/guard/shellline", "tools/target"}},
		{"tools/canvas/folder", 4, []string{"tools", "tools/canvas", "tools/guard"}},
		{"tools/guard/shellline", 1, nil},
		{"tools/history", 3, []string{"tools", "tools/since"}},
		{"tools/recall", 3, []string{"tools", "tools/since"}},
		{"tools/sandbox/cgroup", 0, nil},
		{"tools/sandbox/egress", 1, []string{"tools/target"}},
		{"tools/sandbox/seccomp", 0, nil},
		{"tools/sandbox", 2, []string{"tools", "tools/sandbox/cgroup", "tools/sandbox/egress", "tools/sandbox/supervisor"}},
		{"tools/sandbox/supervisor", 1, []string{"tools/sandbox/cgroup", "tools/sandbox/seccomp"}},
		{"tools/web", 2, []string{"tools", "tools/documents/pages", "tools/target"}},
		{"tools/canvas", 3, []string{"tools", "tools/sandbox"}},
		{"tools/shell", 3, []string{"tools", "tools/sandbox"}},
		{"tools/documents/pages", 1, nil}, // for packages that read or show documents
		{"tools/documents/charset", 1, nil},
		{"tools/documents/pdf", 2, []string{"tools/documents/pages"}},
		{"tools/documents/office", 3, []string{"tools/documents/charset", "tools/documents/pages", "tools/documents/table"}},
		{"tools/documents/table", 2, []string{"tools/documents/charset", "tools/documents/pages"}},
		{"tools/documents", 4, []string{
			"tools", "tools/documents/office", "tools/documents/pages", "tools/documents/pdf", "tools/documents/table", "tools/sandbox",
		}},
		{"tools/ignore", 1, nil}, // for packages that search a workspace
		{"tools/files", 2, []string{"tools", "tools/documents/pages", "tools/ignore"}},
		{"tools/code/symbols", 1, nil},
		{"tools/code", 2, []string{"tools", "tools/code/symbols", "tools/ignore"}},
		{"tools/mcp/lines", 1, nil},  // for packages that talk to programs by lines
		{"tools/mcp/pins", 1, nil},   // for packages that accept servers
		{"tools/mcp/signin", 1, nil}, // for packages that sign in to servers
		{"tools/mcp", 3, []string{"tools", "tools/mcp/lines", "tools/mcp/pins", "tools/mcp/signin", "tools/sandbox"}},
		{"tools/skills/folder", 2, []string{"tools"}},
		{"tools/skills", 3, []string{"tools", "tools/sandbox", "tools/skills/folder"}},
		{"tools/git", 3, []string{"tools", "tools/sandbox"}},
		{"tools/nodes", 2, []string{"tools"}},
		{"tools/nodes/wire", 3, []string{"tools/nodes"}},
		{"tools/nodes/ssh", 3, []string{"tools"}},
		{"tools/nodes/mqtt", 3, []string{"tools", "tools/nodes"}},
		{"tools/nodes/mqtt/mqtttest", 3, nil},
		{"tools/nodes/tunnel", 4, []string{"tools/nodes/mqtt"}},
		{"tools/nodes/placed", 4, []string{"tools", "tools/changes", "tools/code", "tools/documents/pages", "tools/files", "tools/git", "tools/shell"}},
		{"tools/nodes/background", 4, []string{"tools", "tools/jobs", "tools/nodes", "tools/sandbox"}},
		{"tools/nodes/device", 4, []string{"tools", "tools/nodes", "tools/nodes/wire"}},
		{"channels", 2, []string{"bus", "channels/markup"}},
		{"channels/backoff", 2, nil},
		{"agent/llm", 2, []string{"tools"}},
		{"agent/journal", 2, []string{"sessions"}},
		{"agent/frames", 1, nil}, // for packages that tell models whose words are whose
		{"agent/prompt", 2, []string{"agent/frames"}},
		{"agent/task", 3, []string{"bus", "sessions", "tools", "agent/journal"}},
		{"agent/quota", 2, []string{"bus"}},
		{"agent/budget", 3, []string{"agent/llm", "sessions", "sessions/bill"}},
		{"agent/audit", 2, []string{"sessions"}},
		{"agent/excerpt", 2, nil},
		{"agent/asks", 3, []string{"agent/excerpt", "bus", "sessions", "tools"}},
		{"agent/route", 2, []string{"bus"}},
		{"agent/nodes/waits", 2, []string{"bus", "sessions"}},
		{"agent/nodes", 4, []string{"bus", "sessions", "sessions/nodes", "tools", "tools/nodes", "tools/nodes/mqtt", "tools/nodes/wire"}},
		{"agent/shortfall", 3, []string{"agent/llm"}},
		{"agent/pictures", 2, nil},
		{"agent/ownfiles", 3, []string{"agent/pictures", "sessions"}},
		{"agent/audio", 1, nil}, // for speech recognition and speech
		{"agent/transcribe", 2, []string{"agent/audio"}},
		{"agent/speech", 2, []string{"agent/audio"}},
		{"agent/blocks", 3, []string{"agent/excerpt", "bus", "sessions", "tools"}}, // for packages that show watchers what the log has
		{"agent/stream", 4, []string{"bus", "agent/blocks", "agent/llm"}},
		{"agent/estimate", 3, []string{"agent/llm"}},

		{"channels/...", 3, []string{"channels", "channels/backoff", "channels/markup", "bus"}},
		{"channels/console/typedfiles", 3, []string{"bus"}},
		{"channels/console/past", 3, nil},
		{"channels/console", 4, []string{"channels", "channels/backoff", "channels/console/past", "channels/console/typedfiles", "channels/markup", "bus"}},
		{"channels/web", 3, []string{"channels", "channels/markup", "bus", "sessions"}},
		{"channels/web/page", 1, nil}, // files for browsers
		{"channels/discord", 4, []string{"channels", "channels/backoff", "channels/discord/socket", "channels/markup", "bus"}},
		{"channels/slack/events", 3, nil},
		{"channels/slack/files", 3, []string{"channels", "channels/markup", "bus"}},
		{"channels/telegram/webhook", 3, nil},
		{"channels/telegram", 4, []string{"channels", "channels/backoff", "channels/markup", "channels/telegram/webhook", "bus", "tools/plainhttp"}},
		{"channels/sqlbook", 3, []string{"channels", "channels/markup", "bus", "sessions/sqldb", "sessions/subscriptions"}},
		{"channels/slack", 4, []string{"channels", "channels/backoff", "channels/markup", "channels/slack/assistant", "channels/slack/events", "channels/slack/files", "channels/slack/interaction", "channels/slack/stream", "bus"}},
		{"channels/pacing", 3, []string{"channels", "bus"}},
		{"channels/reactions", 3, []string{"channels", "bus"}},
		{"channels/channelstest", 3, []string{"channels", "channels/markup", "bus", "tools/testlog"}},
		{"channels/gateway", 4, []string{"channels", "channels/markup", "channels/pacing", "channels/reactions", "bus", "bus/trace", "tools/spelling"}},
		{"channels/drafts", 4, []string{"channels", "channels/backoff", "channels/markup", "channels/pacing", "bus"}},
		{"channels/files", 3, []string{"bus", "channels/markup"}},
		{"channels/dispatch", 5, []string{"channels", "channels/drafts", "channels/files", "channels/markup", "channels/pacing", "channels/reactions", "bus", "bus/trace"}},
		{"channels/stagetest", 4, []string{"channels/channelstest", "channels/sqlbook", "bus", "bus/..."}},

		{"agent/judge", 3, []string{"agent/frames", "agent/llm", "tools"}},
		{"agent/proposals", 3, []string{"bus", "sessions", "agent/frames", "agent/llm", "agent/journal"}},
		{"agent/transcript", 3, []string{"bus", "sessions", "tools", "agent/frames", "agent/llm", "agent/journal"}},
		{"agent/...", 3, []string{"agent/llm", "tools"}}, // the models

		{"agent/openai/window", 3, []string{"agent/llm"}},
		{"agent/openai/toollist", 2, []string{"tools"}},
		{"agent/openai/thinktags", 2, nil},
		{"agent/openai/wire", 3, []string{"agent/llm"}}, // for packages that read what servers write
		{"agent/openai/increment", 2, nil},
		{"agent/openai/responses", 4, []string{"agent/llm", "agent/openai/thinktags", "agent/openai/wire"}},
		{"agent/openai", 5, []string{
			"agent/llm", "agent/openai/increment", "agent/openai/responses", "agent/openai/thinktags", "agent/openai/toollist", "agent/openai/window", "agent/openai/wire", "tools", "tools/plainhttp",
		}},
		{"agent/prices", 3, []string{"agent/llm"}},
		{"agent/failover", 3, []string{"agent/llm"}},
		{"agent/demo", 4, []string{"agent/llm", "agent/transcript", "tools"}}, // reads its input as a model does
		{"agent/agenttest", 4, []string{"agent/transcript"}},
		{"agent/attached", 3, []string{"bus", "sessions", "agent/journal"}},
		{"agent/sessioncache", 3, []string{"agent/journal", "sessions"}},
		{"agent", 4, []string{
			"bus", "bus/trace", "sessions", "sessions/bill", "tools", "agent/asks", "agent/attached", "agent/judge", "agent/llm", "agent/budget", "agent/proposals", "agent/task", "agent/transcript", "agent/sessioncache",
		}},
		{"agent/turn", 5, []string{
			"agent", "bus", "sessions", "sessions/bill", "tools", "agent/attached", "agent/audit", "agent/blocks", "agent/journal", "agent/route", "agent/estimate", "agent/task",
		}},
		{"agent/calls", 6, []string{
			"agent", "agent/turn", "bus", "sessions", "tools", "agent/asks", "agent/audit", "agent/journal", "agent/excerpt", "agent/judge", "agent/task", "agent/transcript",
		}},
		{"agent/model", 6, []string{
			"agent", "agent/turn", "bus", "sessions", "sessions/bill", "agent/blocks", "agent/journal", "agent/judge", "agent/llm", "agent/budget", "agent/route", "agent/shortfall", "agent/stream",
			"agent/estimate", "agent/transcript",
		}},
		{"agent/figures", 6, []string{"agent", "agent/turn", "sessions"}},
		{"agent/spans", 6, []string{"agent", "agent/journal", "agent/turn", "bus", "bus/trace", "sessions", "sessions/subagents", "tools"}},
		{"agent/metrics", 5, []string{"agent", "agent/failover", "agent/llm", "bus"}},
		{"agent/episodes", 6, []string{"agent", "agent/excerpt", "agent/journal", "agent/turn", "sessions", "tools"}},
		{"agent/worker", 7, []string{
			"agent", "agent/calls", "agent/episodes", "agent/figures", "agent/model", "agent/spans", "agent/turn", "bus", "sessions", "sessions/bill", "tools", "agent/asks", "agent/attached", "agent/blocks", "agent/journal", "agent/llm",
			"agent/budget", "agent/quota", "agent/excerpt", "agent/proposals", "agent/route", "agent/shortfall", "agent/estimate", "agent/task", "agent/transcript", "agent/sessioncache",
		}},

		{"cmd/parley/...", 5, []string{"bus", "sessions", "tools", "channels", "channels/markup", "agent", "agent/llm", "cmd/parley/api/exchange"}},
		{"cmd/parley/data/backup", 5, []string{"bus/sqlitebus", "sessions/sqldb", "sessions/workspace"}},
		{"cmd/parley/data/erase", 5, []string{"bus", "channels", "channels/sqlbook", "agent/ownfiles", "cmd/parley/api/exchange", "sessions", "sessions/sqldb"}},
		{"channels/welcome", 5, []string{"channels/markup", "tools"}},
		{"cmd/parley/data/attachments", 5, []string{
			"agent", "agent/llm", "agent/pictures", "bus", "channels", "agent/ownfiles", "agent/transcribe", "sessions", "sessions/outgoing", "sessions/workspace", "tools", "tools/guard", "tools/image",
		}},
		{"cmd/parley/data/homedb", 5, []string{"bus/sqlitebus", "channels/sqlbook", "sessions/sqldb", "sessions/sqlstore"}},
		{"cmd/parley/data/migrate", 6, []string{"bus", "bus/redisbus", "bus/redisbus/shards", "bus/sqlitebus", "channels/sqlbook", "cmd/parley/data/homedb", "sessions/sqldb", "sessions/sqlstore"}},
		{"cmd/parley/hometest", 5, []string{"..."}},
		{"cmd/parley/parleytest", 5, []string{"..."}},
		{"channels/outbox", 5, []string{"bus", "channels", "channels/markup", "tools/spelling"}},
		{"channels/onbehalf", 6, []string{"bus", "channels", "channels/markup", "channels/outbox", "tools", "tools/message"}},
		{"channels/files/copies", 5, []string{"bus", "channels", "channels/files", "channels/markup", "sessions/outgoing", "sessions/sqldb", "tools"}},
		{"agent/inputs", 4, []string{"agent/asks", "sessions", "sessions/workspace", "tools", "tools/guard"}},
		{"agent/undo", 6, []string{"agent", "bus", "sessions/snapshots", "sessions/workspace", "tools", "tools/changes", "tools/guard"}},

		{"cmd/parley/config/schema", 5, []string{"tools/spelling"}},
		{"cmd/parley/config", 6, []string{"bus", "sessions/subscriptions", "tools", "tools/spelling", "tools/nodes/ssh", "tools/sandbox/egress", "cmd/parley/config/schema", "channels/outbox"}},
		{"channels/webhook/events", 5, []string{"bus", "channels", "channels/markup", "sessions"}},
		{"channels/routing", 5, []string{"bus", "channels", "channels/gateway", "sessions"}},
		{"channels/webhook", 6, []string{"bus", "channels", "channels/markup", "channels/webhook/events", "channels/outbox"}},
		{"agent/jobs", 6, []string{"bus", "sessions", "tools", "tools/jobs", "tools/nodes", "tools/sandbox", "tools/shell"}},
		{"agent/subagents", 6, []string{"agent/task", "bus", "sessions", "sessions/subagents", "sessions/workspace", "tools", "tools/subagents", "tools/guard"}},
		{"channels/history", 6, []string{"bus", "channels", "sessions", "tools", "tools/history"}},
		{"channels/subscriptions", 6, []string{"bus", "channels", "channels/backoff", "channels/problems", "sessions/subscriptions", "tools/posting"}},
		{"channels/recall", 6, []string{
			"bus", "channels", "channels/console", "channels/markup", "channels/web", "sessions", "sessions/search", "sessions/search/sight", "tools", "tools/recall",
		}},
		{"channels/heartbeat", 5, []string{"bus", "channels", "channels/markup", "sessions"}},
		{"channels/billing", 6, []string{"bus", "channels", "sessions/bill", "channels/problems"}},
		{"channels/why", 6, []string{"bus", "channels", "channels/gateway", "sessions"}},
		{"agent/schedules", 5, []string{"bus", "sessions/schedules", "tools", "tools/schedules"}},
		{"channels/owners", 6, []string{"bus", "channels", "channels/problems"}},
		{"channels/people", 5, []string{"bus", "channels"}},
		{"cmd/parley/data/owndata", 6, []string{"agent/proposals", "bus", "channels", "channels/people", "sessions", "sessions/schedules", "cmd/parley/api/exchange", "cmd/parley/data/erase", "tools/memory"}},
		{"cmd/parley/api/exchange", 4, []string{"bus", "sessions", "tools/spelling"}},
		{"cmd/parley/api/deadletters", 5, []string{"bus", "sessions", "cmd/parley/api/exchange"}},
		{"cmd/parley/api/ongoing", 5, []string{"bus", "sessions", "sessions/subagents", "cmd/parley/api/exchange"}},
		{"cmd/parley/api/snapshot", 5, []string{"agent/blocks", "bus", "channels", "channels/console", "channels/web", "sessions"}},
		{"cmd/parley/api", 7, []string{
			"agent/blocks", "agent/excerpt", "bus", "bus/fanout", "sessions", "sessions/activity", "sessions/bill", "sessions/schedules", "sessions/search", "sessions/subscriptions", "channels", "channels/console", "channels/markup", "channels/web", "channels/why", "cmd/parley/api/deadletters", "cmd/parley/api/exchange", "cmd/parley/api/ongoing", "cmd/parley/api/snapshot", "cmd/parley/data/erase", "tools/process", "channels/outbox",
			"tools/spelling",
		}},

		// Only these packages name implementations.
		{"cmd/parley/server/models", 7, []string{"agent", "agent/demo", "agent/failover", "agent/llm", "agent/openai", "agent/prices", "channels", "channels/heartbeat", "channels/welcome", "cmd/parley/config", "sessions/bill", "sessions/search"}},
		{"cmd/parley/server/archives", 7, []string{"agent/metrics", "bus", "channels/problems", "sessions/archive", "sessions/archive/bucket", "sessions/archive/folder", "cmd/parley/config"}},
		{"cmd/parley/server/inventory", 7, []string{"agent/metrics", "tools", "cmd/parley/api/exchange", "cmd/parley/config"}},
		{"cmd/parley/server/voices", 7, []string{
			"agent", "agent/llm", "agent/openai", "agent/prices", "agent/speech", "bus", "channels", "channels/markup", "cmd/parley/config", "sessions/outgoing", "tools", "tools/speak",
		}},
		{"cmd/parley/server/mcpservers", 7, []string{"bus", "channels", "sessions", "tools", "tools/mcp", "tools/mcp/pins", "tools/mcp/signin", "tools/sandbox", "cmd/parley/api/exchange", "cmd/parley/config"}},
		{"cmd/parley/server/nodelinks", 7, []string{
			"agent/metrics", "agent/nodes", "agent/nodes/waits", "bus", "channels", "sessions", "sessions/nodes", "tools", "tools/guard", "tools/nodes", "tools/nodes/mqtt", "tools/nodes/ssh", "tools/nodes/tunnel", "tools/nodes/wire", "cmd/parley/api/exchange", "cmd/parley/config",
		}},
		{"cmd/parley/server/skillfolders", 7, []string{
			"channels", "sessions", "tools", "tools/guard", "tools/sandbox", "tools/skills", "tools/skills/folder", "tools/spelling", "cmd/parley/api/exchange", "cmd/parley/config",
		}},
		{"cmd/parley/server/platforms", 7, []string{
			"channels/discord",
			"channels/slack",
			"channels/telegram",
			"bus", "channels", "cmd/parley/config", "deploy",
		}},
		{"cmd/parley/data/home", 7, []string{
			"bus", "bus/...", "sessions", "sessions/...", "sessions/sqldb", "sessions/workspace", "channels", "channels/sqlbook", "tools", "tools/crash", "tools/guard", "tools/memory", "tools/sandbox",
			"agent/ownfiles", "agent/route", "cmd/parley/data/backup", "cmd/parley/config", "cmd/parley/data/erase", "cmd/parley/data/homedb", "cmd/parley/data/migrate",
		}},
		{"cmd/parley/server", 8, []string{"..."}},

		{"cmd/parley/terminal/client", 9, []string{"bus", "bus/sqlitebus", "channels", "sessions", "cmd/parley/data/home", "cmd/parley/server/mcpservers", "cmd/parley/server"}},
		{"cmd/parley/terminal", 9, []string{"channels/console", "cmd/parley/data/home"}},
		{"cmd/parley/doctor", 10, []string{"..."}},
		{"cmd/parley/terminal/report", 11, []string{
			"bus", "sessions", "sessions/bill", "cmd/parley/api", "cmd/parley/doctor", "cmd/parley/server/mcpservers", "cmd/parley/server/nodelinks", "cmd/parley/server/skillfolders", "channels/why", "cmd/parley/terminal", "sessions/nodes",
		}},
		{"cmd/parley/node", 10, []string{
			"bus/sqlitebus", "cmd/parley/config", "cmd/parley/data/home", "sessions/workspace", "tools", "tools/crash", "tools/documents", "tools/documents/pages", "tools/files", "tools/guard", "tools/nodes", "tools/nodes/background", "tools/nodes/camera", "tools/nodes/device", "tools/nodes/mqtt", "tools/nodes/ssh", "tools/nodes/tunnel", "tools/nodes/wire", "tools/sandbox", "tools/shell", "tools/skills", "tools/skills/folder",
		}},
		{"cmd/parley/onboard", 10, []string{
			"agent/llm", "agent/openai", "channels", "tools/spelling", "cmd/parley/config", "cmd/parley/server/platforms", "cmd/parley/terminal", "deploy",
		}},
		{"cmd/parley", 12, []string{"..."}},
	}
}

// beforeMain reports whether a package has to work before the large libraries are initialized, and so before main.
func beforeMain(dir string) bool {
	return dir == "tools/sandbox/supervisor"
}

// libraries returns, for each third-party library, the packages that may use it, so that it can be replaced in few
// places. Tests may use any of them.
func libraries() map[string][]string {
	anyAbove := []string{
		"bus/...", "sessions/...", "tools/...", "channels", "channels/...", "agent", "agent/...", "cmd/parley", "cmd/parley/...",
	}
	return map[string][]string{
		"charm.land/bubbles/v2":                    {"channels/console"},
		"charm.land/bubbletea/v2":                  {"channels/console"},
		"github.com/alecthomas/kong":               {"cmd/parley"},
		"github.com/bwmarrin/discordgo":            {"channels/discord"},
		"github.com/charmbracelet/x/ansi":          {"channels/console"},
		"github.com/chromedp/cdproto":              {"cmd/parley/e2e/page"},
		"github.com/chromedp/chromedp":             {"cmd/parley/e2e/page"},
		"github.com/charmbracelet/x/vt":            {"channels/console/consoletest"},
		"github.com/go-telegram/bot":               {"channels/telegram"},
		"github.com/eclipse/paho.mqtt.golang":      {"tools/nodes/mqtt", "tools/nodes/mqtt/mqtttest"},
		"github.com/google/jsonschema-go":          {"tools"},
		"github.com/gorilla/websocket":             {"channels/discord/...", "channels/slack", "channels/slack/slacktest", "channels/web", "tools/nodes/wire"},
		"github.com/jackc/pgx/v5":                  {"sessions/sqldb"},
		"github.com/landlock-lsm/go-landlock":      {"tools/sandbox/supervisor"},
		"github.com/johannesboyne/gofakes3":        {"cmd/parley/e2e/operation"},
		"github.com/minio/minio-go/v7":             {"sessions/archive/bucket"},
		"github.com/modelcontextprotocol/go-sdk":   {"tools/mcp", "tools/mcp/lines", "tools/mcp/signin"},
		"github.com/pelletier/go-toml/v2":          {"cmd/parley/config/schema", "tools/skills/folder"},
		"github.com/prometheus/client_golang":      {"agent/metrics", "cmd/parley", "cmd/parley/..."},
		"github.com/redis/go-redis/v9":             {"bus/redisbus", "bus/redisbus/cluster", "bus/redisbus/redistest", "bus/redisbus/sentinel", "bus/redisbus/server"},
		"github.com/rivo/uniseg":                   {"channels/markup", "channels/markup/document", "channels/console"},
		"github.com/santhosh-tekuri/jsonschema/v6": {"tools"},
		"github.com/sashabaranov/go-openai":        {"agent/audio", "agent/openai", "agent/speech", "agent/transcribe"},
		"github.com/slack-go/slack":                {"channels/slack", "channels/slack/assistant", "channels/slack/stream"},
		"github.com/yuin/goldmark":                 {"channels/markup/document"},
		"github.com/yuin/goldmark-emoji":           {"channels/markup/document"},
		"go.yaml.in/yaml/v4":                       {"tools/skills/folder"},
		"golang.org/x/image":                       {"agent/pictures"},
		"golang.org/x/oauth2":                      {"tools/mcp/signin"},
		"golang.org/x/sync":                        anyAbove,
		"golang.org/x/sys":                         {"cmd/parley/data/home", "tools/nodes/ssh", "tools/sandbox/cgroup", "tools/sandbox/seccomp", "tools/sandbox/supervisor"},
		"golang.org/x/term":                        {"channels/console", "cmd/parley", "cmd/parley/onboard", "cmd/parley/terminal"},
		"golang.org/x/text":                        {"sessions/search"},
		"golang.org/x/time":                        anyAbove,
		"modernc.org/sqlite":                       {"sessions/sqldb"},
		"mvdan.cc/sh/v3":                           {"tools/guard/shellline"},

		"codeberg.org/readeck/go-readability":             {"tools/web"},
		"github.com/JohannesKaufmann/html-to-markdown/v2": {"tools/web"},
		"github.com/klippa-app/go-pdfium":                 {"tools/documents/pdf"},
		"github.com/tetratelabs/wazero":                   {"tools/documents/pdf"},
		"golang.org/x/net":                                {"channels/markup/markuptest", "tools/canvas", "tools/documents/charset", "tools/target", "tools/web"},
	}
}

// covers reports whether pattern names the package dir, or ends in "/..." and names a folder above it.
func covers(pattern, dir string) bool {
	below, deep := strings.CutSuffix(pattern, "...")
	return pattern == dir || deep && strings.HasPrefix(dir, below)
}

// ruleOf returns the rule for the package dir: its own, or else the nearest one above.
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

// An inspection collects violations of the rules, and the packages that it saw.
type inspection struct {
	problems []string
	packages map[string]bool // by folder: whether it has a package comment
	tests    map[string]bool // the same for folders with tests, where the comment may be if there is no other file
}

func inspect(source fs.FS) (*inspection, error) {
	in := &inspection{packages: map[string]bool{}, tests: map[string]bool{}}
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
	for dir, documented := range in.tests {
		if _, ok := in.packages[dir]; !ok {
			in.packages[dir] = documented
		}
	}
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
		in.tests[dir] = in.tests[dir] || documents(file)
		return
	}
	in.packages[dir] = in.packages[dir] || documents(file)
	if dir != ground && !isSuite(dir) { // suites imitate other programs, which escape characters
		in.encoders(name, file)
	}
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

// escapes returns the functions that may write JSON with the escapes that package plainjson avoids.
func escapes() []string {
	return []string{
		"agent/asks.canonicalJSON", // older releases hash this form, too
		"tools/redact.escapeJSON",  // looks for secrets in either form
	}
}

// encoders reports code that writes JSON with another package than plainjson.
func (in *inspection) encoders(name string, file *ast.File) {
	called := ""
	for _, spec := range file.Imports {
		if spec.Path.Value != `"encoding/json"` {
			continue
		}
		if called = "json"; spec.Name != nil {
			called = spec.Name.Name
		}
	}
	if called == "" {
		return
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && slices.Contains(escapes(), path.Dir(name)+"."+f.Name.Name) {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			selected, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := selected.X.(*ast.Ident)
			if ok && from.Name == called && slices.Contains([]string{"Marshal", "MarshalIndent", "NewEncoder", "HTMLEscape"}, selected.Sel.Name) {
				in.say(name, "json.%s escapes <, > and &: plainjson writes JSON that is stored, compared, hashed or shown", selected.Sel.Name)
			}
			return true
		})
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

// documents reports whether the file's comment introduces its package.
func documents(file *ast.File) bool {
	doc := file.Doc.Text()
	if file.Name.Name == "main" {
		return strings.HasPrefix(doc, "Parley ") || strings.HasPrefix(doc, "Command ")
	}
	return strings.HasPrefix(doc, "Package "+file.Name.Name+" ")
}

// broken returns the rule that an import by the package dir breaks, or "".
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
	if strings.HasPrefix(inner, "cmd/") && !strings.HasPrefix(dir, "cmd/") && !(test && isSuite(inner)) {
		return "nothing imports cmd: it imports everything"
	}
	if test {
		return ""
	}
	if isSuite(inner) && !isSuite(dir) {
		return "a suite is for tests alone"
	}
	if inner == ground {
		return ""
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

// variables reports package variables that can change. It allows sentinel errors, assertions, embedded files, and
// what the linker sets in main.
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

// raw returns a comment unchanged, including directives.
func raw(doc *ast.CommentGroup) (text string) {
	if doc != nil {
		for _, c := range doc.List {
			text += c.Text + "\n"
		}
	}
	return text
}

// makesError reports whether x is errors.New, fmt.Errorf or a value of an error type.
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

// Folders below cmd/parley are for the command line, the composition of the server, the settings, and the files of
// the home. Other packages belong elsewhere. There should be 30 packages, and two more may start there before they
// move.
func TestCmdHasFewPackages(t *testing.T) {
	const most = 32
	in, err := inspect(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for dir := range in.packages {
		below, ok := strings.CutPrefix(dir+"/", "cmd/parley/")
		if ok && !strings.HasPrefix(below, "e2e/") && !strings.HasPrefix(below, "chaos/") && !strings.HasSuffix(below, "test/") {
			found = append(found, dir)
		}
	}
	if slices.Sort(found); len(found) > most || len(found) == 0 {
		t.Errorf("cmd has %d packages, want at most %d: move what needs neither the settings nor the composition to its noun, under agent, bus, channels, sessions or tools:\n%s",
			len(found), most, strings.Join(found, "\n"))
	}
}

func TestImportsPointDown(t *testing.T) {
	stated := map[string]bool{}
	for _, r := range rules() {
		if stated[r.path] {
			t.Errorf("%s has two rules", r.path)
		}
		stated[r.path] = true
		for i, may := range r.may {
			if slices.Contains(r.may[:i], may) {
				t.Errorf("%s may import %s, as is said twice", r.path, may)
			}
		}
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

// TestImportRulesSeeWhatIsWrong plants one violation after another, and each is reported.
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
		{"tests take all", "bus/x_test.go", imports("bus", "parley/bus/sqlitebus"), ""},
		{"tests alone", "cmd/parley/e2e/x/x_test.go", imports("x", "parley/channels/slack/slacktest"), ""},
		{"sentinel", "bus/x.go", "// Package bus is planted.\npackage bus\nvar ErrX = errors.New(\"x\")\nvar _ Bus = nil\n", ""},
		{"platforms take an adapter", "cmd/parley/server/platforms/x.go", imports("platforms", "parley/channels/telegram"), ""},
		{"suite's list", "bus/bustest/x.go", "// Package bustest is planted.\npackage bustest\nvar checks []string\n", ""},
		{"embed", "bus/x.go", "// Package bus is planted.\npackage bus\n//go:embed x.lua\nvar script string\n", ""},
		{"stamp", "cmd/parley/x.go", "// Parley is planted.\npackage main\nvar version = \"devel\"\n", ""},

		{"all take the ground", "bus/x.go", imports("bus", "parley/tools/plainjson"), ""},
		{"test encodes", "bus/x_test.go", "// Package bus is planted.\npackage bus\nimport \"encoding/json\"\nvar f = json.Marshal\n", ""},
		{"suite encodes", "bus/bustest/x.go", "// Package bustest is planted.\npackage bustest\nimport \"encoding/json\"\nfunc f() { json.Marshal(1) }\n", ""},
		{"reads JSON", "bus/x.go", "// Package bus is planted.\npackage bus\nimport \"encoding/json\"\nfunc f() { json.Unmarshal(nil, nil) }\n", ""},
		{"may escape", "agent/asks/x.go", "// Package asks is planted.\npackage asks\nimport \"encoding/json\"\nfunc canonicalJSON() { json.Marshal(1) }\n", ""},
		{"ground takes another", "tools/plainjson/x.go", imports("plainjson", "parley/bus"), "tools/plainjson imports no other"},
		{"escapes", "bus/x.go", "// Package bus is planted.\npackage bus\nimport \"encoding/json\"\nfunc f() { json.Marshal(1) }\n", "bus/x.go: json.Marshal escapes <, > and &"},
		{"escapes by another name", "cmd/parley/api/x.go", "// Package api is planted.\npackage api\nimport j \"encoding/json\"\nfunc f() { j.NewEncoder(nil).Encode(1) }\n", "json.NewEncoder escapes"},
		{"escapes beside", "agent/asks/x.go", "// Package asks is planted.\npackage asks\nimport \"encoding/json\"\nfunc hash() { json.MarshalIndent(1, \"\", \"\") }\n", "json.MarshalIndent escapes"},

		{"contracts meet", "bus/x.go", imports("bus", "parley/sessions"), `bus/x.go: imports "parley/sessions": bus imports no other`},
		{"contract takes library", "bus/x.go", imports("bus", "golang.org/x/sync/errgroup"), "golang.org/x/sync belongs to"},
		{"contract takes implementation", "bus/x.go", imports("bus", "parley/bus/sqlitebus"), "bus imports no other"},
		{"siblings", "bus/redisbus/x.go", imports("redisbus", "parley/bus/sqlitebus"), "bus/redisbus may import bus, bus/redisbus/cluster, bus/redisbus/master, bus/redisbus/server, bus/redisbus/unsent, sessions/sqldb only"},
		{"agent takes channels", "agent/x.go", imports("agent", "parley/channels"), "agent may import bus, bus/trace, sessions, sessions/bill, tools, agent/asks, agent/attached, agent/judge, agent/llm, agent/budget, agent/proposals, agent/task, agent/transcript, agent/sessioncache only"},
		{"channels take agent", "channels/slack/x.go", imports("slack", "parley/agent"), "channels/slack may import"},
		{"tool takes bus", "tools/message/x.go", imports("message", "parley/bus"), "tools/message may import tools only"},
		{"adapter takes ground", "channels/slack/x.go", imports("slack", "parley/sessions/sqldb"), "channels/slack may import"},
		{"home takes an adapter", "cmd/parley/data/home/x.go", imports("home", "parley/channels/slack"), "cmd/parley/data/home may import"},
		{"part takes the server", "cmd/parley/api/x.go", imports("api", "parley/cmd/parley/server"), "cmd/parley/api may import"},
		{"part takes implementation", "cmd/parley/new/x.go", imports("new", "parley/bus/redisbus"), "cmd/parley/new may import"},
		{"another's library", "channels/slack/x.go", imports("slack", "github.com/go-telegram/bot/models"), "belongs to channels/telegram"},
		{"nobody's library", "agent/x.go", imports("agent", "example.org/x"), "no package owns"},
		{"code takes suite", "cmd/parley/x.go", imports("main", "parley/bus/bustest"), "for tests alone"},
		{"code takes testing", "bus/x.go", imports("bus", "testing"), "only tests and suites"},
		{"test takes a suite of cmd", "bus/x_test.go", imports("bus", "parley/cmd/parley/hometest"), ""},
		{"test takes cmd", "bus/x_test.go", imports("bus", "parley/cmd/parley/config"), "nothing imports cmd"},
		{"cgo", "bus/x.go", imports("bus", "C"), "no cgo"},
		{"no rule", "pkg/x/x.go", imports("x", "os"), "pkg/x has no import rule"},
		{"at the top", "x.go", imports("parley", "os"), "has no import rule"},
		{"empty name", "tools/fileutil/x.go", imports("fileutil", "os"), `no "util"`},
		{"wrong name", "tools/files/x.go", imports("file", "os"), "package file lives in a folder named files"},
		{"stray program", "tools/x/x.go", imports("main", "os"), "programs live in cmd"},
		{"no comment", "bus/x.go", "package bus\n", "no comment introduces"},
		{"tests alone, no comment", "cmd/parley/e2e/x/x_test.go", "package x\n", "cmd/parley/e2e/x: no comment introduces"},
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
