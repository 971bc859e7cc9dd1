package demo

import (
	"regexp"
	"slices"
	"strings"
)

// A request is one thing that a person asks for: a tool call, or only an answer in words.
type request struct {
	words string // the person's words
	tool  string
	args  map[string]string
	say   string // the answer if no tool is needed
}

// A rule recognizes one way of asking. The named groups of its form are the tool's arguments. A rule without a
// tool leads to textIntroduction.
type rule struct {
	tool string
	form *regexp.Regexp
}

// A grammar holds the rules for everything that the model understands.
type grammar struct {
	rules  []rule
	polite *regexp.Regexp // polite words that may precede a request
	joint  *regexp.Regexp // the words that join two requests
}

// newGrammar makes the grammar.
func newGrammar() grammar {
	// The name of a file or folder is quoted, or contains no spaces. A period at the end is ignored, unless the
	// text before it is something that others will read.
	const path, end = "(?P<path>\"[^\"]+\"|`[^`]+`|\\S+?)", `(?:[\s,]+(?:please|thanks))?[\s.!?]*`
	g := grammar{
		polite: regexp.MustCompile(`(?i)^(?:(?:please|hey|ok|first|now|and)[,!]?\s+|(?:can|could|would) you\s+)+`),
		joint:  regexp.MustCompile(`(?i)\s*\n\s*|[,;.]?\s+(?:and\s+)?then\b[,:]?\s+`),
	}
	for _, r := range [][2]string{
		{"", `(?:hi|hello|hey|help|/?start|who are you|what (?:are you|can you do))` + end},
		{"memory_read", `what do you (?:remember|know)(?:\s+about\s+(?P<query>.+?))?` + end},
		{"memory_write", `(?:remember|note)(?:\s+that)?:?\s+(?P<content>.+)`},
		{"message", `(?:tell|message)\s+(?P<channel>[\w.-]+)(?:[\s:]+(?P<chat_id>[^\s:,]+))?(?:\s+that\s+|:\s+)(?P<content>.+)`},
		{"list_directory", `(?:list|show|what|which)(?:\s+(?:me|all|are|the|my))*\s+(?:files|folders|workspace)(?:\s+(?:are|do|you|have|there))*` +
			`(?:\s+in\s+(?:the\s+)?` + path + `(?:\s+(?:folder|directory))?)?` + end},
		{"list_directory", `(?:ls|list)(?:\s+` + path + `)?` + end},
		{"write_file", `(?:write|save)\s+(?P<content>.+)\s+(?:to|in|into|as)\s+(?:the\s+)?(?:file\s+)?` + path + end},
		{"grep", `(?:find|grep|search(?:\s+for)?)\s+(?P<pattern>.+?)(?:\s+in\s+` + path + `)?` + end},
		{"read_file", `(?:read|open|show|cat)\s+(?:the\s+)?(?:file\s+)?` + path + end},
		{"read_file", `what(?:'s|\s+is)\s+in\s+` + path + end},
	} {
		g.rules = append(g.rules, rule{r[0], regexp.MustCompile(`(?is)^` + r[1] + `$`)})
	}
	return g
}

// requests returns the requests in messages. It splits a message only if each part is a request, so "remember
// that we eat, then sleep" stays whole.
func (g grammar) requests(messages []string) (all []request) {
	const most = 20 // a text with more parts is not a list of requests
	for _, text := range messages {
		var each []request
		parts := g.joint.Split(strings.TrimSpace(text), most)
		for _, part := range parts {
			if q, ok := g.request(part); ok {
				each = append(each, q)
			}
		}
		if len(each) < len(parts) {
			q, ok := g.request(text)
			if !ok {
				q = request{say: textNotUnderstood + textIntroduction}
			}
			each = []request{q}
		}
		all = append(all, each...)
	}
	if len(all) == 0 {
		return []request{{say: textIntroduction}}
	}
	return all
}

// request parses a single request; it returns false if no rule matches.
func (g grammar) request(text string) (request, bool) {
	text = g.polite.ReplaceAllString(strings.TrimSpace(text), "")
	for _, r := range g.rules {
		groups := r.form.FindStringSubmatch(text)
		if groups == nil {
			continue
		}
		if r.tool == "" {
			return request{say: textIntroduction}, true
		}
		q := request{words: text, tool: r.tool, args: map[string]string{}}
		for i, name := range r.form.SubexpNames() {
			if value := strings.Trim(groups[i], "\"`"); name != "" && value != "" {
				q.args[name] = value
			}
		}
		return q, q.fixArgs()
	}
	return request{}, false
}

// fixArgs turns the person's words into arguments for the tool, and reports whether they make sense.
func (q request) fixArgs() bool {
	if path := q.args["path"]; q.tool == "list_directory" && (path == "" || path == "workspace") {
		q.args["path"] = "."
	}
	if pattern, ok := q.args["pattern"]; ok {
		q.args["pattern"] = "(?i)" + regexp.QuoteMeta(pattern)
	}
	return !slices.Contains([]string{"me", "us", "you", "them"}, strings.ToLower(q.args["channel"]))
}
