// Package demo is the built-in model: a few rules, no intelligence, no network.
//
// It lets a person have a first conversation on a bare machine, and says that it is a demo. It understands a
// handful of plain requests. It really carries these out: it calls the agent's own tools, reads their results
// and puts them into words. It remembers nothing between calls: each answer follows from the request alone.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/agent/llm"
	"parley/agent/transcript"
	"parley/tools"
	"parley/tools/plainjson"
)

// Name is the model's name.
const Name = "demo"

// Model is the built-in model.
type Model struct {
	grammar grammar
}

// New makes the built-in model.
func New() *Model { return &Model{grammar: newGrammar()} }

// Info implements llm.Model. It returns only the name, because the model has no window that could overflow.
func (m *Model) Info() llm.Info { return llm.Info{Name: Name} }

// Generate implements llm.Model. It calls the tool for the person's next request that has no result yet. If all
// requests have one, it puts the results into words. It uses no tokens.
func (m *Model) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	said, done := currentTurn(r.Messages)
	if n := len(said); n > 0 && len(r.Tools) == 0 && asksForSummary(said[n-1]) {
		return say(digest(r.Messages), emit), nil
	}
	var told []string
	for _, q := range m.grammar.requests(said) {
		granted := slices.ContainsFunc(r.Tools, func(s tools.Spec) bool { return s.Name == q.tool })
		switch {
		case q.tool == "":
			told = append(slices.DeleteFunc(told, func(s string) bool { return s == q.say }), q.say)
		case len(done) > 0 && done[0].use.Name == q.tool:
			told = append(told, q.resultText(done[0].result.Content))
			done = done[1:]
		case !granted:
			told = append(told, fmt.Sprintf(textNoTool, q.tool))
		case r.NoCalls:
			told = append(told, fmt.Sprintf(textStoppedBefore, q.words))
		default:
			return call(q, emit)
		}
	}
	return say(strings.Join(told, "\n\n"), emit), nil
}

// A finishedCall is a tool call of the current turn and its result.
type finishedCall struct {
	use    llm.Block
	result llm.Block
}

// currentTurn returns what people have said since the last answer, and the tool calls that followed.
func currentTurn(messages []llm.Message) (said []string, done []finishedCall) {
	for _, m := range messages[firstToAnswer(messages):] {
		for _, b := range m.Blocks {
			words := wordsOf(m, b)
			switch {
			case b.Kind == llm.BlockToolUse:
				done = append(done, finishedCall{use: b})
			case b.Kind == llm.BlockToolResult:
				if i := slices.IndexFunc(done, func(s finishedCall) bool { return s.use.Call == b.Call }); i >= 0 {
					done[i].result = b
				}
			case len(words) > 0:
				if slices.ContainsFunc(done, finishedCall.wasCancelled) { // a canceled call cancels all requests before it
					said, done = nil, nil
				}
				said = append(said, words...)
			}
		}
	}
	return said, done
}

// firstToAnswer returns the index of the first message to answer: the one after the model's last message
// without a tool call.
func firstToAnswer(messages []llm.Message) int {
	isUse := func(b llm.Block) bool { return b.Kind == llm.BlockToolUse }
	for i, m := range slices.Backward(messages) {
		if m.Role == llm.RoleAssistant && !slices.ContainsFunc(m.Blocks, isUse) {
			return i + 1
		}
	}
	return 0
}

// wasCancelled reports whether the call's result is the error tools.Cancelled. Such a call cancels all requests
// before it.
func (s finishedCall) wasCancelled() bool {
	var o outcome
	return json.Unmarshal(s.result.Content, &o) == nil && o.Error != nil && o.Error.Code == tools.Cancelled
}

// wordsOf returns what people say in a block, one text for each message. It leaves out what the system says.
func wordsOf(m llm.Message, b llm.Block) []string {
	switch {
	case m.Role != llm.RoleUser || b.Kind != llm.BlockText:
		return nil
	case strings.HasPrefix(b.Text, "<message "):
		return withPaths(transcript.Words(b.Text), b.Text)
	case strings.HasPrefix(b.Text, "<notice>"), strings.HasPrefix(b.Text, "<summary "), strings.HasPrefix(b.Text, "<past "), strings.HasPrefix(b.Text, "<remembered "):
		return nil
	}
	return []string{b.Text} // a request of the agent itself, such as that for a summary
}

// withPaths returns what people said with file names replaced: a terminal's user writes "read @notes.txt", and
// the file's path in the workspace, which the framed text names, takes the place of that name.
func withPaths(said []string, framed string) []string {
	for _, file := range regexp.MustCompile(`<attachment [^>]*name="([^"]+)"[^>]* path="([^"]+)"`).FindAllStringSubmatch(framed, -1) {
		named := regexp.MustCompile(`(^|\s)@(?:\S*/)?` + regexp.QuoteMeta(file[1]))
		for i, words := range said {
			said[i] = named.ReplaceAllString(words, "${1}"+strings.ReplaceAll(file[2], "$", "$$"))
		}
	}
	return said
}

// asksForSummary reports whether a text asks for a summary of the conversation.
func asksForSummary(text string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "summarize the conversation")
}

// digest returns the only summary that this model can make: people's last messages, shortened.
func digest(messages []llm.Message) string {
	const most, length = 20, 200
	var said []string
	for _, m := range messages {
		for _, b := range m.Blocks {
			for _, words := range wordsOf(m, b) {
				if line := []rune(strings.Join(strings.Fields(words), " ")); !asksForSummary(words) {
					said = append(said, "- "+string(line[:min(len(line), length)]))
				}
			}
		}
	}
	return textSaidLast + strings.Join(said[max(0, len(said)-most):], "\n")
}

// call returns an answer that calls the request's tool.
func call(q request, emit func(llm.Delta)) (*llm.Answer, error) {
	args, err := plainjson.Marshal(q.args)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", q.tool, err)
	}
	emit(llm.Delta{Kind: llm.BlockToolUse, Name: q.tool, Text: string(args)})
	return &llm.Answer{Blocks: []llm.Block{{Kind: llm.BlockToolUse, Name: q.tool, Args: args}}}, nil
}

// say returns an answer in words, and emits it a few words at a time.
func say(text string, emit func(llm.Delta)) *llm.Answer {
	const atOnce = 20
	for some := range slices.Chunk(strings.SplitAfter(text, " "), atOnce) {
		emit(llm.Delta{Kind: llm.BlockText, Text: strings.Join(some, "")})
	}
	return &llm.Answer{Blocks: []llm.Block{{Kind: llm.BlockText, Text: text}}}
}
