// Package asks makes the asks that a turn puts to people: whether a tool call may run, and the model's
// questions. It writes their text, and says what an answer means for the call.
package asks

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
	"parley/tools/plainjson"
)

// The commands that answer an ask. Each names the ask by its id.
const (
	Approve = "approve"
	Deny    = "deny"
	Answer  = "answer" // answers a question with the words that follow
)

// ID returns the id of the ask about a call of a session. The same session and call always get the same id.
func ID(session, call string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + call))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:bus.AskIDLength]
}

// nodeWaitPrefix is the prefix of the ids of waits for nodes.
const nodeWaitPrefix = "node:"

// NodeWaitID returns the id of a call's wait for a node, after n earlier waits. The same wait always gets the same id:
// the process that finds out that the node is back sends the session a message with that id.
func NodeWaitID(session, call string, n int) string {
	return nodeWaitPrefix + ID(session, call+"#"+strconv.Itoa(n))
}

// IsNodeWait reports whether an id belongs to a wait for a node.
func IsNodeWait(id string) bool { return strings.HasPrefix(id, nodeWaitPrefix) }

// InputsHash is a hash of a call's inputs besides its arguments. Mode says what was hashed: "" means the files that the
// arguments name; the code that makes the hash defines the other values. Version is the version of the tool (see
// tools.Spec.Version); "" if the tool has none.
type InputsHash struct{ Mode, Sum, Version string }

// Hash returns a hash of everything that the approval of a call covers: the tool with its version, its
// arguments, the session, and the call's inputs. It begins with the mode of the inputs, unless that is "", so that
// the same kind of inputs can be compared later.
func Hash(call tools.Call, on InputsHash) string {
	h := sha256.New()
	for _, part := range []string{call.Name, canonicalJSON(call.Args), call.Session, on.Sum} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	if on.Version != "" { // other tools keep the hashes that earlier releases made
		fmt.Fprintf(h, "version %d:%s", len(on.Version), on.Version)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if on.Mode != "" {
		return on.Mode + "." + sum
	}
	return sum
}

// ModeOf returns the mode of the inputs in a hash that Hash has made; "" if the hash begins with none, as those of
// releases that had no modes yet.
func ModeOf(hash string) string {
	mode, _, found := strings.Cut(hash, ".")
	if !found {
		return ""
	}
	return mode
}

// canonicalJSON writes a JSON value in one form, so that equal values have the same bytes, whether or not they came with
// the escapes that package plainjson avoids. The form itself has these escapes, because earlier releases wrote them:
// a hash in an open ask or in a grant of such a release stays valid, and while one runs beside this release, each
// recognizes what the other has asked. It returns what isn't JSON unchanged.
func canonicalJSON(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return string(raw)
	}
	again, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(again)
}

// EncodePlaces returns addresses as JSON for the log. It returns nil if there are none, which means that people
// are asked in the conversation itself.
func EncodePlaces(places []bus.Address) json.RawMessage {
	if len(places) == 0 {
		return nil
	}
	raw, err := plainjson.Marshal(places)
	if err != nil { // texts always marshal
		panic(err)
	}
	return raw
}

// Places returns the addresses where people are asked instead of in the conversation; none if they are asked in
// the conversation.
func Places(a sessions.Ask) ([]bus.Address, error) {
	if a.Places == nil {
		return nil, nil
	}
	var to []bus.Address
	if err := json.Unmarshal(a.Places, &to); err != nil {
		return nil, fmt.Errorf("decode the addresses of ask %s: %w", a.ID, err)
	}
	return to, nil
}

// Result returns the result or the failure of a call after an ask about it has ended. runs reports that the
// call was approved instead, and still has to run.
func Result(a sessions.Ask, end bus.Ask) (result tools.Result, failed *tools.Error, runs bool) {
	by := end.Answer.By.NameAndID()
	switch {
	case end.State == bus.AskExpired:
		failed = tools.Errorf(tools.Timeout, "Nobody answered in time, so nothing was done.")
	case end.State != bus.AskAnswered:
		failed = tools.Errorf(tools.Cancelled, "The request was withdrawn, so nothing was done.")
	case a.Kind == bus.AskQuestion:
		raw, err := plainjson.Marshal(map[string]string{"answer": choiceOf(end.Answer.Text, a.Choices)})
		if err != nil { // a text always marshals
			panic(err)
		}
		result.Content = raw
	case end.Answer.Text != bus.Deny:
		runs = true
	case end.Answer.Reason != "":
		failed = tools.Errorf(tools.PermissionDenied, "Denied by %s: %s", by, end.Answer.Reason)
	default:
		failed = tools.Errorf(tools.PermissionDenied, "Denied by %s, without a reason. Do not try to do the same thing another way: ask what is wanted.", by)
	}
	return result, failed, runs
}

// choiceOf returns the choice that an answer names by its number or its words, or the answer itself if it names
// none.
func choiceOf(text string, choices []string) string {
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(strings.TrimSuffix(text, ".")); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1]
	}
	for _, c := range choices {
		if strings.EqualFold(strings.TrimSpace(c), text) {
			return c
		}
	}
	return text
}

// QuestionText returns a question with its numbered choices, on one line.
func QuestionText(a sessions.Ask) string {
	var text strings.Builder
	text.WriteString(a.Question)
	for i, choice := range a.Choices {
		fmt.Fprintf(&text, " (%d) %s", i+1, choice)
	}
	return text.String()
}

// NeedsApproval returns the failure of a call that needs a person's approval when nobody can be asked. reason
// says why the call needs approval, "" if that is not known; obstacle says why nobody can be asked.
func NeedsApproval(tool, reason, obstacle string) *tools.Error {
	if reason != "" {
		reason = " (" + reason + ")"
	}
	return tools.Errorf(tools.PermissionDenied, "%s needs the approval of an owner%s, %s. Nothing was done: go on without it, or say what should be done by hand.", tool, reason, obstacle)
}

// Changed returns the failure of an approved call that is no longer the same as what was approved.
func Changed(tool string) *tools.Error {
	return tools.Errorf(tools.PermissionDenied, "%s was approved, but what was approved has changed since: its arguments, the tool itself, the directory, or a file that it names or may read. Nothing was done. Call it again if it is still wanted: it will be asked about anew.", tool)
}
