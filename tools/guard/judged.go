package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"parley/tools"
	"parley/tools/plainjson"
)

// Judges reports whether a model judges a call: a rule in Config.Judge matches it, or may match it once all parts of
// the call are known. A call that passes files on is also judged if the call that reads one of them would be.
func (g *Guard) Judges(call tools.Call) bool {
	if len(g.judge) == 0 {
		return false
	}
	t := call.Touch()
	if g.isJudged(call, t.Subject) {
		return true
	}
	return g.cfg.ReadingCall != nil && slices.ContainsFunc(t.Passes, func(path string) bool {
		reading := g.cfg.ReadingCall(call, path)
		return g.isJudged(reading, reading.Touch().Subject)
	})
}

// isJudged reports whether a rule in Config.Judge matches a call, without the files that it passes on.
func (g *Guard) isJudged(call tools.Call, of tools.Subject) bool {
	subject := g.subjectOf(call, of)
	return slices.ContainsFunc(g.judge, func(rule Rule) bool {
		return rule.coversAll() && rule.appliesTo(call.Name) || rule.matches(call.Name, subject) || rule.mayMatch(call.Name, subject)
	})
}

// coversAll reports whether a rule is about every call of its tools, so that it also matches a call of which nothing
// is known, such as a shell line without a command.
func (r Rule) coversAll() bool {
	return r.pattern == nil || !slices.ContainsFunc(r.pattern, func(piece string) bool { return piece != "" })
}

// Version returns a hash of all rules, without the rates.
func (g *Guard) Version() string {
	raw, err := plainjson.Marshal([]any{g.cfg.AllAgents, g.cfg.Agents, g.cfg.Judge, g.cfg.AskUntrusted})
	if err != nil { // texts always marshal
		panic(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
