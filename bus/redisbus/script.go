package redisbus

import (
	"context"
	"embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
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
	scriptCount
)

func (s script) String() string {
	return [scriptCount]string{
		"publish", "claim", "read", "extend", "settle", "giveback", "rewake", "nudge", "replay",
		"drop", "unpause", "hold", "keep", "release", "emit", "repair",
	}[s]
}

// A library is every script as the server gets it: behind what they share.
type library [scriptCount]*redis.Script

func readScripts() (l library, err error) {
	prelude, err := sources.ReadFile("scripts/prelude.lua")
	if err != nil {
		return l, err
	}
	for s := range scriptCount {
		text, err := sources.ReadFile("scripts/" + s.String() + ".lua")
		if err != nil {
			return l, err
		}
		l[s] = redis.NewScript(string(prelude) + string(text))
	}
	return l, nil
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
