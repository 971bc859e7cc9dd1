// Package judge has a model decide whether a tool call runs, a person is asked about it, or it is denied.
//
// The operator names the model and the calls that it judges. It is asked only about calls that the rules let run or ask
// about, and its verdict can only make the decision stricter. Text from outside is framed for the model, and its answer
// counts only if it is exactly one verdict: otherwise a person is asked.
//
// judge.go selects the calls and makes the request; answer.go reads the answer; answers.go remembers verdicts.
package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"parley/agent/frames"
	"parley/agent/llm"
	"parley/tools"
)

// A Judge says which calls are judged, and by which model.
type Judge struct {
	// Model is the model that is asked. If it is nil, people are asked instead.
	Model llm.Model
	// Timeout limits how long an answer may take.
	Timeout time.Duration
	// Judges reports whether a call is judged.
	Judges func(call tools.Call) bool
	// Rules identifies the operator's rules. If they change, remembered verdicts are not used.
	Rules string
	// Answers remembers verdicts.
	Answers *Answers
}

// Rules are the operator's rules.
type Rules interface {
	// Judges reports whether a model judges a call.
	Judges(call tools.Call) bool
	// Version identifies the rules.
	Version() string
}

// New makes a Judge without a model for the named calls. If there are none, it returns nil.
func New(named []string, within time.Duration, rules Rules) *Judge {
	if len(named) == 0 {
		return nil
	}
	return &Judge{Timeout: within, Judges: rules.Judges, Rules: rules.Version(), Answers: &Answers{}}
}

// With returns the judge with the model that it asks. If j is nil, it returns nil: no call is judged.
func (j *Judge) With(m llm.Model) *Judge {
	if j == nil {
		return nil
	}
	with := *j
	with.Model = m
	return &with
}

const (
	// maxArguments is how many bytes of a call's arguments the model reads. If there are more, it reads the first
	// argumentsHead and the last argumentsTail bytes.
	maxArguments  = 12_000
	argumentsHead = 8_000
	argumentsTail = 3_900
	// answerTokens limits the answer. Reasoning models need some tokens before they write anything.
	answerTokens = 1024
	// MaxAnswer is how many bytes of an answer are read. A longer one is no verdict.
	MaxAnswer = 16_384
)

// A Question is a call with everything that the model is told about it.
type Question struct {
	Call tools.Call
	// Arguments are the call's arguments in the form that the model reads. They, the words and Strangers contain no
	// secrets.
	Arguments string
	// WillAsk says that a person will be asked about the call in any case.
	WillAsk bool
	// Said are the person's words in the turn, each in its frame, and Earlier are the newest ones before the turn.
	Earlier, Said []string
	// Strangers are texts by strangers that the agent had read, each in its frame. MoreStrangers is how many others
	// there are. MemoryUntrusted says that strangers may have written some of the agent's memory.
	Strangers       []string
	MoreStrangers   int
	MemoryUntrusted bool
}

// IsWhole reports whether the model reads all of the call. Otherwise it can't allow the call.
func (q *Question) IsWhole() bool { return len(q.Arguments) <= maxArguments }

// Request returns the request to the model. Equal questions give equal bytes.
func (q *Question) Request() llm.Request {
	var b strings.Builder
	q.writeCall(&b)
	q.writeSaid(&b)
	q.writeMarks(&b)
	return llm.Request{
		System: textSystem, MaxTokens: answerTokens,
		Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: b.String()}}}},
	}
}

// writeCall writes the call in its frame.
func (q *Question) writeCall(b *strings.Builder) {
	b.WriteString("<" + frames.Judged)
	frames.WriteAttribute(b, "tool", q.Call.Name)
	frames.WriteAttribute(b, "agent", q.Call.Agent)
	frames.WriteAttribute(b, "chat", q.Call.Address)
	frames.WriteAttribute(b, "for", q.Call.Person)
	if q.Call.Parent != "" {
		frames.WriteAttribute(b, "sub-agent", "yes")
	}
	if q.WillAsk {
		frames.WriteAttribute(b, "rules", "ask")
	} else {
		frames.WriteAttribute(b, "rules", "allow")
	}
	args := q.Arguments
	if !q.IsWhole() {
		head, tail := tools.Beginning(args, argumentsHead), lastBytes(args, argumentsTail)
		left := len(args) - len(head) - len(tail)
		frames.WriteAttribute(b, "cut", fmt.Sprintf(textCut, left))
		args = head + fmt.Sprintf(textGap, left) + tail
	}
	b.WriteString(">\n" + frames.Escape(args) + "\n</" + frames.Judged + ">")
}

// writeSaid writes the person's words: the earlier ones, and then those of the turn, so that the model sees which were
// answered.
func (q *Question) writeSaid(b *strings.Builder) {
	notice := func(text string) { b.WriteString("\n<" + frames.Notice + ">" + text + "</" + frames.Notice + ">\n") }
	b.WriteString("\n")
	if len(q.Earlier) > 0 {
		notice(textEarlier)
		b.WriteString(strings.Join(q.Earlier, "\n") + "\n")
	}
	text := textSaid
	if q.Call.Scheduled {
		text += textScheduled
	}
	if len(q.Said) == 0 {
		text += textNothingSaid
	}
	notice(text)
	for _, said := range q.Said {
		b.WriteString(said + "\n")
	}
}

// writeMarks writes which parts of the text that the agent had read strangers may have written.
func (q *Question) writeMarks(b *strings.Builder) {
	b.WriteString("\n<" + frames.Notice + ">")
	switch {
	case !q.Call.Untrusted:
		b.WriteString(textTrusted)
	default:
		b.WriteString(textUntrusted)
		if q.MemoryUntrusted {
			b.WriteString(textMemory)
		}
		if len(q.Strangers) == 0 {
			b.WriteString(textGone)
		}
		if q.MoreStrangers > 0 {
			fmt.Fprintf(b, textFurther, q.MoreStrangers)
		}
	}
	b.WriteString("</" + frames.Notice + ">")
	for _, text := range q.Strangers {
		b.WriteString("\n" + text)
	}
}

// lastBytes returns at most the last n bytes of a text, without splitting a character.
func lastBytes(text string, n int) string {
	at := max(0, len(text)-n)
	for at < len(text) && text[at]&0xC0 == 0x80 {
		at++
	}
	return text[at:]
}

// Hash returns a hash of everything that the verdict on a question depends on: the call, the person's words, the
// marks, the model, and the rules.
func (j *Judge) Hash(q *Question, r llm.Request) string {
	h := sha256.New()
	for _, part := range []string{
		j.Rules, j.Model.Info().Name, q.Call.Session, q.Call.Name, string(q.Call.Args), r.System, r.Messages[0].Blocks[0].Text,
	} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// HarmlessQuestion returns a question about a call that a person has asked for and that only reads. It shows whether a
// model can judge.
func HarmlessQuestion() *Question {
	q := &Question{
		Call:      tools.Call{Name: "list_directory", Agent: "main", Address: "console:local", Person: "console:owner"},
		Arguments: `{"path":"."}`,
	}
	q.Said = []string{"<" + frames.Message + " from=\"console:owner\">\n" + textHarmless + "\n</" + frames.Message + ">"}
	return q
}
