package server

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/billing"
	"parley/channels/owners"
	"parley/channels/problems"
	"parley/channels/subscriptions"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/archives"
	"parley/cmd/parley/server/models"
)

// problemWatch watches for problems that need the owners' attention, such as a full disk.
type problemWatch struct {
	foundation
	liveChannels liveChannels
	owners       *owners.Owners
	costs        *costs
	lists        models.Lists
}

// Run watches, until ctx is done, for problems that need the owners' attention, and notifies them.
func (p *problemWatch) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	now := p.settings.Load()
	after := now.Tell.After
	sources := []problems.Source{problems.Disk(hostName(), "the home", p.home.Dir, nil)}
	if p.role.Works() {
		sources = append(sources, disksOfFiles(now)...)
		sources = append(sources, problems.Quotas(p.home.Workspaces, now.Workspace.MaxMB), problems.LeftTools(hostName(), p.lists.LeftToolsByModel))
	}
	if p.role.Receives() {
		var holds atomic.Bool
		beside.Go(func() {
			_ = bus.WhileHeld(ctx, p.home.Bus, "notices", func(held context.Context) error { // the only error is that the bus was closed
				holds.Store(true)
				<-held.Done()
				holds.Store(false)
				return nil
			})
		})
		sources = append(sources, problems.DeadLetters(p.home.Bus, holds.Load), billing.Source(p.costs.spent, p.costs.currentCaps, holds.Load), subscriptions.Source(p.home.Store.Subscriptions(), holds.Load, after), archives.Source(p.home.Store.Archive(), holds.Load))
		sources = append(sources, p.connections(holds.Load, after)...)
	}
	return problems.Run(ctx, problems.Config{
		Sources: sources, Notes: p.home.Book, Tell: p.owners.NotifyOnce, Log: p.log,
		Every: min(30*time.Second, max(after/6, 100*time.Millisecond)), GoneFor: min(time.Minute, after),
	})
}

// connections returns the sources that watch whether the channels are connected. The process that receives for a
// channel judges whether it is. If any process can tell, because the channel receives by HTTP or only sends, the
// process for which holds returns true judges it.
func (p *problemWatch) connections(holds func() bool, after time.Duration) (sources []problems.Source) {
	for _, l := range p.liveChannels {
		if l.config.Platform == "" {
			continue
		}
		judges := holds
		if _, byHTTP := channels.AsHTTPReceiver(l.channel); l.receive && !byHTTP {
			judges = l.isOurs
		}
		sources = append(sources, problems.Channel(l.name, l.isConnected, judges, after))
	}
	return sources
}

// disksOfFiles returns the sources that watch the disks on which a fleet shares files.
func disksOfFiles(c *config.Config) (sources []problems.Source) {
	for _, folder := range c.Folders() {
		if c.Store.URL == "" || home.IsOwnFolder(c, folder.Dir) {
			continue
		}
		name := "the conversations' files"
		if folder.Agent != "" {
			name = "the files of " + folder.Agent + "'s conversations"
		}
		sources = append(sources, problems.Disk("", name, folder.Dir, nil))
	}
	return sources
}

// hostName returns the name of this machine; "this machine" if it has none.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "this machine"
	}
	return name
}
