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

// A script is one of those in the folder scripts; each says there what it takes
// and returns.
type script int

const (
	publishScript script = iota
	claimScript
	readScript
	extendScript
	settleScript
	givebackScript
	rewakeScript
	nudgeScript
	replayScript
	dropScript
	unpauseScript
	holdScript
	keepScript
	releaseScript
	emitScript
	repairScript
	forgetScript
	scriptCount
)

func (s script) String() string {
	return [scriptCount]string{
		"publish", "claim", "read", "extend", "settle", "giveback", "rewake", "nudge", "replay",
		"drop", "unpause", "hold", "keep", "release", "emit", "repair", "forget",
	}[s]
}

// A library is every script as the server gets it.
type library [scriptCount]*redis.Script

func readScripts() (l library, err error) {
	for s := range scriptCount {
		text, err := source(s.String())
		if err != nil {
			return l, err
		}
		l[s] = redis.NewScript(text)
	}
	return l, nil
}

// source is a script behind those of the shared texts that its first line names.
// To run a script is to run them too, so it names no more than it needs.
func source(name string) (string, error) {
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

// load hands the server every script, so that calls can name them.
func (l *library) load(ctx context.Context, client *redis.Client) error {
	for s, x := range l {
		if err := x.Load(ctx, client).Err(); err != nil {
			return fmt.Errorf("load script %s: %w", script(s), err)
		}
	}
	return nil
}
