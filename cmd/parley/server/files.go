package server

import (
	"cmp"
	"context"
	"errors"

	"parley/agent/transcribe"
	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/attachments"
	"parley/cmd/parley/data/home"
	"parley/sessions"
)

// newFiles returns the keeper of the files that come with messages, and of those that models look at, in the
// sessions' workspaces.
func newFiles(on foundation, all liveChannels, of *modelChains, w *home.CallWorkspaces) *attachments.Keeper {
	return attachments.New(attachments.Config{
		Workspace: on.home.Workspace, Writable: w.Open,
		SeesPictures: func(session string) bool {
			model := of.byAgent[sessions.AgentOf(session)]
			return model == nil || !model.Info().Blind
		},
		Fetcher: func(channel string) (channels.Fetcher, int64) {
			return fetcherOf(uploads(on), all, channel, on.settings.Load())
		},
		Transcriber: func() attachments.Transcriber { return transcriberOf(on.settings.Load()) }, Log: on.log,
	})
}

// uploads returns the store of the files that come from terminals and over HTTP.
func uploads(on foundation) attachments.Uploads {
	return attachments.Uploads{Store: on.home.Outgoing, Log: on.home.Store}
}

// keepUploads stores the files of a message that comes from a terminal or over HTTP.
func (f *front) keepUploads(ctx context.Context, session, message string, all []bus.File) ([]bus.Attachment, error) {
	kept, err := uploads(f.foundation).Keep(ctx, session, message, all)
	if errors.Is(err, attachments.ErrFull) {
		return nil, exchange.Unprocessable("files_full", "there's no room for these files, because earlier ones from this session are still waiting: send them again later, or make them smaller")
	}
	if err == nil {
		err = f.home.OwnOutgoing()
	}
	if err != nil {
		return nil, err
	}
	if f.point != nil {
		f.point("upload:kept")
	}
	return kept, nil
}

// transcriberOf returns the transcriber of voice messages; nil if none is configured.
func transcriberOf(c *config.Config) attachments.Transcriber {
	t := c.Transcribe
	if t == (config.Transcribe{}) {
		return nil
	}
	return transcribe.New(transcribe.Config{BaseURL: t.BaseURL, APIKey: string(t.APIKey), Model: cmp.Or(t.Model, "whisper-1")})
}

// fetcherOf returns the fetcher of files that came over a channel, and the largest size of a file in bytes; nil if
// the channel has no files.
func fetcherOf(up attachments.Uploads, all liveChannels, channel string, c *config.Config) (channels.Fetcher, int64) {
	if channel == console.Name || channel == web.Name {
		return up, config.DefaultFilesMB << 20
	}
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
