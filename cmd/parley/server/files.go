package server

import (
	"cmp"

	"parley/agent/transcribe"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/attachments"
	"parley/sessions"
)

// newFiles makes the keeper of the files that come with messages, and of those that models look at, in
// the sessions' workspaces.
func newFiles(on foundation, all endpoints, of *modelChains, w *workspaces) *attachments.Keeper {
	return attachments.New(attachments.Config{
		Workspace: on.home.Workspace, Writable: w.openUntil,
		Sees: func(session string) bool {
			model := of.byAgent[sessions.AgentOf(session)]
			return model == nil || !model.Info().Blind
		},
		Fetcher: func(channel string) (channels.Fetcher, int64) { return fetcherOf(all, channel, on.settings.Load()) },
		Words:   func() attachments.Transcriber { return transcriberOf(on.settings.Load()) }, Log: on.log,
	})
}

// transcriberOf returns what transcribes voice messages; nil if none is configured.
func transcriberOf(c *config.Config) attachments.Transcriber {
	t := c.Transcribe
	if t == (config.Transcribe{}) {
		return nil
	}
	return transcribe.New(transcribe.Config{BaseURL: t.BaseURL, APIKey: string(t.APIKey), Model: cmp.Or(t.Model, "whisper-1")})
}

// fetcherOf returns what fetches the files that came over a channel, and how many bytes one
// may have; nil if the channel has no files.
func fetcherOf(all endpoints, channel string, c *config.Config) (channels.Fetcher, int64) {
	l := all.named(channel)
	if l == nil {
		return nil, 0
	}
	f, ok := channels.AsFetcher(l.channel)
	if !ok {
		return nil, 0
	}
	return f, int64(cmp.Or(c.Channels[channel].FilesMB, config.DefaultFilesMB)) << 20
}
