package connections

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/channels"
)

// probeInterval is the interval at which an unreachable platform is tried again.
const probeInterval = 30 * time.Second

// A Probe asks the platform of a channel that only sends for the bot's account.
type Probe struct {
	Name      string // of the channel
	Channel   channels.Channel
	LookUpBot func(ctx context.Context) error // asks the platform
	// Setting returns the setting that is wrong if the platform refuses the account.
	Setting func(refused *channels.SendError) string
	OnError func(why string) // is told each error
	Log     *slog.Logger
}

// Run asks the platform until ctx is done: at the start, so that a refused token is reported before the first alert is
// sent, and repeatedly while the platform is unreachable, because otherwise nobody would find out that it is back
// until the next message.
func (p *Probe) Run(ctx context.Context) {
	for asked := false; ; {
		if !asked || !channels.Connected(p.Channel) {
			err := p.LookUpBot(ctx)
			refused, ok := errors.AsType[*channels.SendError](err)
			if ok && refused.Fault == channels.Stop && !asked {
				p.Log.Error("the platform refuses this account; the other channels go on", slog.String("channel", p.Name),
					slog.String("code", refused.Code), slog.String("key", p.Setting(refused)))
			}
			if err != nil {
				p.OnError(err.Error())
			}
			asked = true
		}
		select {
		case <-time.After(probeInterval):
		case <-ctx.Done():
			return
		}
	}
}
