package demo

import (
	"regexp"
	"strings"
)

// The tools that it knows how to use.
const (
	toolList     = "list_directory"
	toolRead     = "read_file"
	toolWrite    = "write_file"
	toolGrep     = "grep"
	toolRemember = "memory_write"
	toolRecall   = "memory_read"
	toolMessage  = "message"
)

// introduction is the answer to whatever it does not understand.
const introduction = "I am Parley's built-in demo model: a handful of rules, no AI. The tools that I use are real, though. I understand:\n\n" +
	"- list the files (in docs)\n" +
	"- read notes.txt\n" +
	"- write hello to notes.txt\n" +
	"- find hello\n" +
	"- remember that I like tea\n" +
	"- what do you remember\n" +
	"- tell telegram 42 that lunch is ready\n\n" +
	"Several of them can be joined with “then”.\n\n" +
	"To talk to a real model, set `OPENAI_API_KEY` (and `OPENAI_BASE_URL` for another server), " +
	"or `name`, `base_url` and `api_key` under `[model]` in parley.toml."

const (
	nothingUnderstood = "I did not understand that. " + introduction
	whereTo           = "Write it to which file? Say it like this: write hello to notes.txt"
)

// A request is one thing that a person wants: a tool's call, or just words.
type request struct {
	tool string
	args map[string]string
	say  string // the answer, where no tool is needed
}

// A rule understands one way of asking.
type rule struct {
	form *regexp.Regexp
	// verbatim rules end in what somebody wrote, which keeps its full stop.
	verbatim bool
	// make turns the form's groups into a request; none means that the form
	// was misleading.
	make func(groups []string) request
}

// A grammar is all that is understood.
type grammar struct {
	rules  []rule
	polite *regexp.Regexp // what may stand before a request
	thanks *regexp.Regexp // and after it
	joint  *regexp.Regexp // what stands between two
}

// One file or folder as people write it: quoted, or without spaces.
const pathForm = "(\"[^\"]+\"|'[^']+'|`[^`]+`|“[^”]+”|\\S+)"

func newGrammar() grammar {
	g := grammar{
		polite: regexp.MustCompile(`(?i)^(?:(?:hey|hi|hello|ok|okay|so|now|first)[,!]?\s+|@?parley\b[,:!]?\s+|please,?\s+|(?:can|could|would|will) you\s+|tell me\s+|and\s+)`),
		thanks: regexp.MustCompile(`(?i)[\s,]+(?:please|thanks|thank you)$`),
		joint:  regexp.MustCompile(`(?i)\s*\n\s*|[,;.]?\s+(?:and\s+)?then\b[,:]?\s+`),
	}
	add := func(verbatim bool, form string, make func([]string) request) {
		g.rules = append(g.rules, rule{regexp.MustCompile(`(?is)^` + form + `$`), verbatim, make})
	}
	add(false, `(?:help|hi|hello|hey|hi there|hello there|good (?:morning|afternoon|evening)|/?start|what can you do|what do you understand|who are you|what are you)`,
		func([]string) request { return request{say: introduction} })
	addMemory(add)
	addMessage(add)
	addFiles(add)
	return g
}

type adder func(verbatim bool, form string, make func([]string) request)

func addMemory(add adder) {
	recall := func(g []string) request { return request{tool: toolRecall, args: some("query", bare(g[1]))} }
	add(false, `what (?:do you (?:remember|know)|have you remembered|did i tell you)(?:\s+(?:about|of)\s+(.+))?`, recall)
	add(false, `(?:do you remember|recall)(?:\s+(.+))?`, recall)
	add(false, `(?:read|show|open)(?:\s+me)?\s+(?:your|the)\s+memory()`, recall)
	add(true, `(?:remember|memori[sz]e|note(?:\s+down)?|don['’]t forget|do not forget|keep in mind)(?:\s+that)?[:,]?\s+(.+)`,
		func(g []string) request { return request{tool: toolRemember, args: some("content", quoted(g[1]))} })
}

func addMessage(add adder) {
	tell := func(channel, chat, content string) request {
		switch strings.ToLower(channel) {
		case "me", "us", "you", "him", "her", "them", "everybody", "everyone":
			return request{}
		}
		return request{tool: toolMessage, args: map[string]string{"channel": bare(channel), "chat_id": bare(chat), "content": quoted(content)}}
	}
	const verb, that = `(?:tell|message|notify|inform)\s+`, `(?:\s+that\s+|\s*:\s+|,\s+)(.+)`
	add(true, verb+`([\w.-]+)(?:\s*:\s*|\s+)([^\s:,]+)`+that, func(g []string) request { return tell(g[1], g[2], g[3]) })
	add(true, verb+`([\w.-]+)`+that, func(g []string) request { return tell(g[1], "", g[2]) })
	add(true, verb+`([\w.-]+)(?:\s*:\s*|\s+)([-@#]?\w*\d\S*)\s+(.+)`, func(g []string) request { return tell(g[1], g[2], g[3]) })
	add(false, `(?:send|say|post)\s+(.+)\s+to\s+([\w.-]+)(?:\s*:\s*|\s+)(\S+)`, func(g []string) request { return tell(g[2], g[3], g[1]) })
	add(false, `(?:send|say|post)\s+(.+)\s+to\s+([\w.-]+)`, func(g []string) request { return tell(g[2], "", g[1]) })
}

func addFiles(add adder) {
	list := func(g []string) request {
		return request{tool: toolList, args: map[string]string{"path": folder(g[1])}}
	}
	read := func(g []string) request {
		return request{tool: toolRead, args: map[string]string{"path": bare(g[1])}}
	}
	write := func(path, content string) request {
		return request{tool: toolWrite, args: map[string]string{"path": bare(path), "content": quoted(content)}}
	}
	find := func(g []string) request {
		args := map[string]string{"pattern": "(?i)" + regexp.QuoteMeta(bare(g[1]))}
		if path := folder(g[2]); path != "." {
			args["path"] = path
		}
		return request{tool: toolGrep, args: args}
	}
	add(false, `(?:list|show|display|ls|what|which)(?:\s+me)?(?:\s+are)?(?:\s+all)?(?:\s+of)?(?:\s+(?:the|my|your|these|its))?`+
		`\s+(?:files?|folders?|director(?:y|ies)|workspace|entries)(?:\s+and\s+(?:files|folders|directories))?`+
		`(?:\s+(?:are|is|do|can))?(?:\s+(?:there|here|you have|you see|i have|we have))?(?:\s+(?:here|there))?`+
		`(?:\s+(?:in|of|under|inside|at|from)\s+(.+))?`, list)
	add(false, `(?:list|ls|dir)(?:\s+(?:the\s+)?contents?\s+of)?(?:\s+the)?(?:\s+(?:folder|directory))?(?:\s+(?:in|of)\s+(?:the\s+)?)?(?:\s*`+pathForm+`)?(?:\s+(?:folder|directory))?`, list)
	add(true, `(?:write|save)\s+(?:to|into|in)\s+(?:the\s+)?(?:file\s+)?(\S+?|"[^"]+")\s*:\s*(.+)`,
		func(g []string) request { return write(g[1], g[2]) })
	add(false, `(?:write|save|put|store)\s+(.+)\s+(?:to|into|in|as)\s+(?:(?:the|a)\s+)?(?:(?:new\s+)?file\s+)?(?:(?:called|named)\s+)?`+pathForm,
		func(g []string) request { return write(g[2], g[1]) })
	add(true, `(?:create|make)\s+(?:(?:a|the)\s+)?(?:new\s+)?(?:file\s+)?(?:(?:called|named)\s+)?`+pathForm+
		`\s+(?:with|containing|saying|that says)(?:\s+(?:the\s+)?(?:contents?|text))?:?\s+(.+)`,
		func(g []string) request { return write(g[1], g[2]) })
	add(false, `(?:write|save)\s+.+`, func([]string) request { return request{say: whereTo} })
	add(false, `search\s+(?:the\s+|my\s+|all\s+)?(?:files|workspace)\s+for\s+(.+)()`, find)
	add(false, `(?:find|search(?:\s+for)?|grep(?:\s+for)?|look\s+for)\s+(?:the\s+(?:word|text)\s+)?(.+?)(?:\s+in\s+((?:the\s+|my\s+|all\s+)?(?:the\s+)?(?:files|workspace|\S+)))?`, find)
	add(false, `(?:read|open|cat|print|display|show)(?:\s+me)?(?:\s+(?:the\s+)?contents?\s+of)?(?:\s+(?:the|my))?(?:\s+file)?\s+`+pathForm, read)
	add(false, `what(?:['’]s|\s+is)\s+(?:in|inside)\s+(?:the\s+)?(?:file\s+)?`+pathForm, read)
	add(false, `what\s+does\s+(?:the\s+)?(?:file\s+)?`+pathForm+`\s+(?:say|contain)`, read)
}

// requests reads a message. Its parts are taken apart only where each is
// something understood, so that "remember that we eat, then sleep" stays whole.
func (g grammar) requests(text string) []request {
	const most = 20 // places looked at: a long text is no list of requests
	var out []request
	rest := strings.TrimSpace(text)
	for i, from := 0, 0; i < most; i++ {
		at := g.joint.FindStringIndex(rest[from:])
		if at == nil {
			break
		}
		left, right := rest[:from+at[0]], rest[from+at[1]:]
		q, ok := g.request(left)
		if !ok || strings.Count(left, `"`)%2 == 1 || !g.begins(right) {
			from += at[1]
			continue
		}
		out = append(out, q)
		rest, from = right, 0
	}
	q, ok := g.request(rest)
	if !ok {
		q = request{say: nothingUnderstood}
	}
	return append(out, q)
}

// begins tells whether a text begins with a request, whatever follows it.
func (g grammar) begins(text string) bool {
	if at := g.joint.FindStringIndex(text); at != nil {
		if _, ok := g.request(text[:at[0]]); ok {
			return true
		}
	}
	_, ok := g.request(text)
	return ok
}

// request reads a single request, as it stands or without the politeness
// before it.
func (g grammar) request(text string) (request, bool) {
	text = strings.TrimSpace(text)
	for range 6 {
		if q, ok := g.match(text); ok {
			return q, true
		}
		short := strings.TrimSpace(g.polite.ReplaceAllString(text, ""))
		if short == text {
			break
		}
		text = short
	}
	return request{}, false
}

func (g grammar) match(text string) (request, bool) {
	plain := strings.TrimRight(text, " .!?")
	plain = g.thanks.ReplaceAllString(plain, "")
	for _, r := range g.rules {
		subject := plain
		if r.verbatim {
			subject = text
		}
		if groups := r.form.FindStringSubmatch(subject); groups != nil {
			if q := r.make(groups); q.tool != "" || q.say != "" {
				return q, true
			}
		}
	}
	return request{}, false
}

// some is an argument, if there is something to it.
func some(name, value string) map[string]string {
	if value == "" {
		return map[string]string{}
	}
	return map[string]string{name: value}
}

// quoted takes off the quotes around a text.
func quoted(text string) string {
	text = strings.TrimSpace(text)
	for _, pair := range []string{`""`, `''`, "``", "“”", "‘’", "«»"} {
		marks := []rune(pair)
		inner, begins := strings.CutPrefix(text, string(marks[0]))
		inner, ends := strings.CutSuffix(inner, string(marks[1]))
		if begins && ends && inner != "" {
			return inner
		}
	}
	return text
}

// bare is a name without quotes, and without the comma after it.
func bare(text string) string {
	return quoted(strings.TrimRight(strings.TrimSpace(text), ",;:!?"))
}

// folder is a folder as people name it: "the docs folder", "here".
func folder(text string) string {
	name := strings.TrimSpace(text)
	for _, article := range []string{"the ", "this ", "my ", "your ", "all ", "folder ", "directory "} {
		name = strings.TrimPrefix(name, article)
	}
	for _, noun := range []string{" folder", " directory"} {
		name = strings.TrimSuffix(name, noun)
	}
	switch name = bare(name); name {
	case "", "it", "here", "workspace", "files", "folder", "directory", "current":
		return "."
	}
	return name
}
