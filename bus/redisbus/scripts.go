package redisbus

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua scripts/shared/*.lua
var sources embed.FS

// A script is one of the Lua files in the folder scripts. Each file describes its arguments and what it
// returns.
type script int

const (
	publishScript script = iota
	claimScript
	readScript
	extendScript
	settleScript
	givebackScript
	rewakeScript
	declineScript
	nudgeScript
	replayScript
	dropScript
	unpauseScript
	holdScript
	extendHoldsScript
	releaseScript
	emitScript
	repairScript
	forgetScript
	beginScript
	countScript
	keepCountedScript
	raiseClockScript
	scriptCount
)

// String returns the name of the script's file.
func (s script) String() string {
	return [scriptCount]string{
		"publish", "claim", "read", "extend", "settle", "giveback", "rewake", "decline", "nudge", "replay",
		"drop", "unpause", "hold", "extend_holds", "release", "emit", "repair", "forget", "begin",
		"count", "keep_counted", "raise_clock",
	}[s]
}

// needsReplica reports whether what the script has done must be on a replica before anybody relies on it. If
// it were lost with the master, mail would be lost, or handled twice. The other scripts change nothing,
// or nothing that would be missed.
func (s script) needsReplica() bool {
	switch s {
	case readScript, rewakeScript, declineScript, nudgeScript, emitScript, repairScript, keepCountedScript:
		return false
	}
	return true
}

// A scriptLibrary holds every script in the form in which the server gets it.
type scriptLibrary [scriptCount]*redis.Script

func readScripts() (l scriptLibrary, err error) {
	for s := range scriptCount {
		text, err := scriptSource(s.String())
		if err != nil {
			return l, err
		}
		l[s] = redis.NewScript(text)
	}
	return l, nil
}

// scriptSource returns the text of a script, preceded by the shared texts that its first line
// names. The server runs them with every call, so a script names only those that it needs.
func scriptSource(name string) (string, error) {
	text, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	var all strings.Builder
	for name := range strings.FieldsSeq(strings.TrimPrefix(first, "--!")) {
		shared, err := sources.ReadFile("scripts/shared/" + name + ".lua")
		if err != nil {
			return "", err
		}
		all.Write(shared)
	}
	all.Write(text)
	return all.String(), nil
}

// load sends the server every script, so that calls can name them by their hashes.
func (l *scriptLibrary) load(ctx context.Context, client *redis.Client) error {
	for s, x := range l {
		if err := x.Load(ctx, client).Err(); err != nil {
			return fmt.Errorf("load script %s: %w", script(s), err)
		}
	}
	return nil
}
