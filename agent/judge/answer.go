package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"parley/tools"
)

// A Fault says why a model gave no verdict; "" if it gave one.
type Fault string

// The faults.
const (
	TimedOut   Fault = "timeout"     // it took too long
	Failed     Fault = "failed"      // it gave no answer
	Unreadable Fault = "unreadable"  // its answer is no verdict
	OverBudget Fault = "over_budget" // a budget has too little left
	TooLong    Fault = "too_long"    // the model can't read all of the question
	NoModel    Fault = "no_model"    // there is no model to ask
)

// A Verdict is a model's decision about a call.
type Verdict struct {
	Decision tools.Decision // Allow, Ask or Deny; Ask beside a Fault
	// Reason is the model's reason: one line, which may repeat what strangers wrote. It may be empty.
	Reason string
	Fault  Fault
	// Took is how long the model took; Remembered says that it had answered the same question before.
	Took       time.Duration
	Remembered bool
}

// Word returns the verdict as one word, for metrics and the audit: a decision or a fault.
func (v Verdict) Word() string {
	if v.Fault != "" {
		return string(v.Fault)
	}
	return string(v.Decision)
}

// Unanswered returns the verdict on a call that no model has judged: a person is asked.
func Unanswered(why Fault) Verdict { return Verdict{Decision: tools.Ask, Fault: why} }

// maxReason is how many bytes of a reason are kept.
const maxReason = 300

// errNoVerdict is returned for an answer that is not exactly one verdict.
var errNoVerdict = errors.New("the answer is not a verdict")

// Read reads a model's answer. Unless it is exactly one JSON object with a verdict, each name at most once, it is no
// verdict: text around the object might be a quotation. clean removes secrets from the reason.
func Read(answer string, clean func(string) string) Verdict {
	said, err := parse(answer)
	if err != nil {
		return Unanswered(Unreadable)
	}
	v := Verdict{Decision: tools.Decision(said["verdict"]), Reason: plainReason(said["reason"], clean)}
	switch v.Decision {
	case tools.Allow, tools.Ask, tools.Deny:
		return v
	}
	return Unanswered(Unreadable)
}

// parse returns the fields of an answer. It doesn't decode into a struct, because that would take VERDICT for
// verdict, and the last of two verdicts for the only one. It returns an error for anything but one JSON object with
// these two names.
func parse(answer string) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(answer)))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errNoVerdict
	}
	said := map[string]string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("read the verdict: %w", err)
		}
		value, err := d.Token()
		key, _ := name.(string)
		text, isText := value.(string)
		if _, twice := said[key]; err != nil || !isText || twice || key != "verdict" && key != "reason" {
			return nil, errNoVerdict
		}
		said[key] = text
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, fmt.Errorf("read the verdict: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoVerdict
	}
	return said, nil
}

// plainReason returns a reason as one line of at most maxReason bytes, without invisible characters, secrets, which these
// could hide, and quotation marks that could end a quotation of it.
func plainReason(text string, clean func(string) string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case strings.ContainsRune("\"“”„‟«»〝〞″＂", r):
			return '\''
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return tools.Clip(clean(strings.Join(strings.Fields(text), " ")), maxReason)
}
