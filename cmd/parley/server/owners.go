package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/llm"
	"parley/agent/openai"
	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/billing"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
	"parley/cmd/parley/introduction"
	"parley/cmd/parley/models"
	"parley/cmd/parley/platforms"
	"parley/cmd/parley/watch"
)

// offerEvery is how often it is checked whether a channel has an owner by now.
const offerEvery = time.Minute

// offerOwnership prints a link or a code, as long as a channel has no owner, that makes whoever
// uses it first the owner: once, and again whenever the last code has expired.
func (s *Server) offerOwnership(ctx context.Context, l *endpoint, out io.Writer) {
	for last := ""; ; {
		last = s.printOffer(ctx, l, out, last)
		select {
		case <-time.After(offerEvery):
		case <-ctx.Done():
			return
		}
	}
}

// printOffer prints the current link or code unless it is the last that was printed, and returns
// its code.
func (s *Server) printOffer(ctx context.Context, l *endpoint, out io.Writer, last string) string {
	if owned, err := s.hasOwner(ctx, l); err != nil || owned {
		return last
	}
	code, err := s.home.Book.StandingOffer(ctx, l.name)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("no owner's code could be made", slog.String("channel", l.name), slog.Any("error", err))
		}
		return last
	}
	if code == last {
		return last
	}
	if _, err := platforms.Account(ctx, l.config.Platform, l.channel); err != nil {
		s.log.Debug("the bot's name is not known yet", slog.String("channel", l.name), slog.Any("error", err))
	}
	if link := channels.InviteLink(l.channel, code); link != "" {
		fmt.Fprintf(out, "\n%s has no owner yet. Open this link within the hour and press Start: whoever does so first owns the bot.\n\n  %s\n\n", l.name, link)
		return code
	}
	fmt.Fprintf(out, "\n%s has no owner yet. Say this to the bot within the hour: whoever does so first owns it.\n\n  %sstart %s\n\n", l.name, channels.CommandPrefix(l.channel), code)
	return code
}

// hasOwner reports whether somebody owns the bot on a channel.
func (s *Server) hasOwner(ctx context.Context, l *endpoint) (bool, error) {
	if len(s.settings.Load().Channels[l.name].Access.Owners) > 0 {
		return true, nil
	}
	pairings, err := s.home.Book.Pairings(ctx)
	if err != nil {
		return false, fmt.Errorf("look for an owner: %w", err)
	}
	for _, p := range pairings {
		if p.Owner && channelOf(p.Person) == l.name {
			return true, nil
		}
	}
	return false, nil
}

// notifyOwners sends each owner a text about something that needs their attention, in the
// chat where they talk to the bot alone: once a day for each subject.
func (s *Server) notifyOwners(ctx context.Context, subject, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerNoticeTimeout)
	defer cancel()
	chats, err := s.noticeChats(ctx)
	if err != nil {
		s.log.Warn("the owners could not be told", slog.Any("error", err))
		return
	}
	now := time.Now()
	for _, at := range chats {
		id := bus.DerivedID(at.String()+" "+subject, "#owner/"+now.UTC().Format(time.DateOnly))
		out := bus.Outbound{ID: id, To: at, Text: text, At: now, Expires: now.Add(24 * time.Hour)}
		if err := bus.PublishOutbound(ctx, s.home.Bus, out); err != nil {
			s.log.Warn("an owner could not be told", slog.String("chat", at.String()), slog.Any("error", err))
		}
	}
}

// notifyOwnersOnce sends the owners a text about something that needs their attention. The ids of
// these messages are made of suffix, so a caller may repeat the call after an error, and nobody
// gets the text twice.
func (s *Server) notifyOwnersOnce(ctx context.Context, suffix, text string) error {
	chats, err := s.noticeChats(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, at := range chats {
		out := bus.Outbound{ID: bus.DerivedID(at.String(), suffix), To: at, Text: text, At: now, Expires: now.Add(24 * time.Hour)}
		if err := bus.PublishOutbound(ctx, s.home.Bus, out); err != nil && !bus.IsRefusal(err) {
			return err
		}
	}
	return nil
}

// noticeChats returns the addresses to which notices for the owners are sent: those in the list `to`
// of the section [notices], or, if it is empty, the chats in which only an owner and the bot are.
func (s *Server) noticeChats(ctx context.Context) ([]bus.Address, error) {
	c := s.settings.Load()
	chats := s.resolvePlaces(c.Tell.To)
	if len(chats) > 0 {
		return chats, nil
	}
	chats, err := s.ownersChats(ctx)
	if err == nil && len(chats) == 0 {
		err = watch.ErrNobody
	}
	return chats, err
}

// disksOfFiles returns the sources that watch the disks which a fleet shares for files.
func disksOfFiles(c *config.Config) (sources []watch.Source) {
	for _, folder := range c.Folders() {
		if c.Store.URL == "" || home.IsOwnFolder(c, folder.Dir) {
			continue
		}
		name := "the conversations' files"
		if folder.Agent != "" {
			name = "the files of " + folder.Agent + "'s conversations"
		}
		sources = append(sources, watch.Disk("", name, folder.Dir, nil))
	}
	return sources
}

// watchConcerns looks, until ctx is done, for what needs the owners' attention, such as a
// full disk, and notifies them.
func (s *Server) watchConcerns(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	c := s.settings.Load()
	after := c.Tell.After
	sources := []watch.Source{watch.Disk(s.hostName(), "the home", s.home.Dir, nil)}
	if s.role.Works() {
		sources = append(sources, disksOfFiles(c)...)
		sources = append(sources, watch.Quotas(s.home.Workspaces, c.Workspace.MaxMB))
	}
	if s.role.Receives() {
		var holds atomic.Bool
		beside.Go(func() {
			_ = bus.WhileHeld(ctx, s.home.Bus, "notices", func(held context.Context) error { // the only error is that the bus was closed
				holds.Store(true)
				<-held.Done()
				holds.Store(false)
				return nil
			})
		})
		sources = append(sources, watch.DeadLetters(s.home.Bus, holds.Load), billing.Source(s.home.Store.Money().Spent, s.currentCaps, holds.Load))
		for _, l := range s.channels {
			if l.config.Platform == "" {
				continue
			}
			judges := holds.Load
			if _, byHTTP := channels.AsHTTPReceiver(l.channel); l.receive && !byHTTP {
				judges = l.isOurs
			}
			sources = append(sources, watch.Channel(l.name, l.isConnected, judges, after))
		}
	}
	_ = watch.Run(ctx, watch.Config{ // Run ends only with ctx
		Sources: sources, Notes: s.home.Book, Tell: s.notifyOwnersOnce, Log: s.log,
		Every: min(30*time.Second, max(after/6, 100*time.Millisecond)), Calm: min(time.Minute, after),
	})
}

// currentCaps returns what models may cost, by the settings in force.
func (s *Server) currentCaps() billing.Caps {
	c := s.settings.Load()
	caps := billing.Caps{UserDay: c.Budget.UserDay, Day: c.Budget.Day, Month: c.Budget.Month, TellAt: c.Budget.TellAt, Agents: map[string]int64{}}
	for name, a := range c.Agents {
		caps.Agents[name] = a.Day
	}
	return caps
}

// newBilling makes what answers the command /usage, with which people ask what models have cost.
func (s *Server) newBilling() *billing.UsageReporter {
	d := &billing.UsageReporter{Usage: s.home.Store.Bill().Usage, Linked: s.linked}
	for _, model := range s.models {
		if model.Info().Price != (llm.Price{}) {
			d.Caps = s.currentCaps
		}
	}
	return d
}

// linked returns the ids of all people who are known to be the same person as this one.
func (s *Server) linked(ctx context.Context, person string) (all []string, err error) {
	links, err := s.home.Book.Linked(ctx, person)
	for _, l := range links {
		all = append(all, l.Person)
	}
	return all, err
}

// openPrices reads the list of the models' prices, to learn which date it is of.
func (s *Server) openPrices() error {
	list, err := models.Prices(s.settings.Load())
	s.billing.Prices = list.Date
	return err
}

// defaultCaps is the subject under which the book notes which of the default caps on cost were
// announced.
const defaultCaps = "default caps"

// announceDefaultCaps announces the caps on models that hold by default: in the log, and
// to the owners of a bot that people used before there were caps. Each cap is announced
// once.
func (s *Server) announceDefaultCaps(ctx context.Context) error {
	if s.billing.Caps == nil {
		return nil // no cap holds without known prices
	}
	c := s.settings.Load()
	text, notes := billing.DefaultCapsText(s.currentCaps(), func(key string) bool { return c.Origin("budget."+key) != "" })
	told, err := s.home.Book.Noted(ctx, defaultCaps, "")
	if err != nil {
		return err
	}
	known := strings.Fields(told.Value)
	if !slices.ContainsFunc(notes, func(n string) bool { return !slices.Contains(known, n) }) {
		return nil
	}
	s.log.Warn("what models cost is bounded by default", slog.String("caps", strings.ReplaceAll(text, "`", "")))
	used, err := s.home.Store.List(ctx, "", 1)
	if err == nil && told.Value == "" && len(used) > 0 {
		err = s.notifyOwnersOnce(ctx, "#caps", text)
	}
	if err != nil && !errors.Is(err, watch.ErrNobody) {
		return err
	}
	return s.home.Book.SetNote(ctx, defaultCaps, "", strings.Join(append(known, notes...), " "))
}

// hostName returns the name of this machine.
func (s *Server) hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "this machine"
	}
	return name
}

// ownerNoticeTimeout bounds how long a caller waits until the owners are notified.
const ownerNoticeTimeout = 5 * time.Second

// ownersChats returns where the owners of the channels talk to the bot alone, as far as
// the book knows.
func (s *Server) ownersChats(ctx context.Context) ([]bus.Address, error) {
	owns := map[string]bool{}
	for name, c := range s.settings.Load().Channels {
		for _, user := range c.Access.Owners {
			owns[name+":"+user] = true
		}
	}
	pairings, err := s.home.Book.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for owners: %w", err)
	}
	for _, p := range pairings {
		owns[p.Person] = owns[p.Person] || p.Owner && p.Approved
	}
	known, err := s.home.Book.Chats(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for chats with owners: %w", err)
	}
	var chats []bus.Address
	for _, chat := range known {
		if !chat.Group && owns[chat.Person] {
			chats = append(chats, bus.Address{Channel: chat.Address.Channel, Chat: chat.Address.Chat})
		}
	}
	slices.SortFunc(chats, func(a, b bus.Address) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(chats), nil
}

// introduction returns a function for the text that introduces the bot to people who talk to it
// on a channel for the first time; the function returns "" if there is no such text.
func (s *Server) introduction(l *endpoint) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c := s.settings.Load()
		now := c.Channels[l.name]
		if now.Introduce == config.IntroduceNever {
			return "", nil
		}
		owners, err := s.ownersNames(ctx, now)
		if err != nil {
			return "", err
		}
		return introduction.Text(introduction.Facts{About: now.About, Owners: owners, Models: s.modelPlaces(agentsOf(now)), Days: c.Retention.Days, Prefix: channels.CommandPrefix(l.channel)}), nil
	}
}

// agentsOf returns the agents that answer on a channel.
func agentsOf(c config.Channel) []string {
	all := []string{c.Agent}
	for _, r := range c.Routes {
		all = append(all, r.Agent)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// modelPlaces returns where texts to these agents go to be answered, for introduction.Facts. If
// some go to a provider, the list does not have this machine itself.
func (s *Server) modelPlaces(agents []string) (hosts []string) {
	c := s.settings.Load()
	for _, agent := range agents {
		for _, choice := range c.ModelsOf(agent) {
			model := c.Model
			if name, further := strings.CutPrefix(choice.Table, "models."); further {
				model = c.Models[name]
			}
			if choice.Demo || !model.Configured && s.models[agent] != nil {
				hosts = append(hosts, introduction.Local)
				break // the demo always answers
			}
			if !model.Configured { // other processes answer
				return nil
			}
			hosts = append(hosts, introduction.Host(cmp.Or(model.BaseURL, openai.DefaultURL)))
		}
	}
	isLocal := func(host string) bool { return host == introduction.Local }
	if slices.ContainsFunc(hosts, func(host string) bool { return !isLocal(host) }) {
		return slices.DeleteFunc(hosts, isLocal)
	}
	return slices.Compact(hosts)
}

// ownersNames returns the names that the platform has for a channel's owners, or their
// ids where no name is known.
func (s *Server) ownersNames(ctx context.Context, c config.Channel) ([]string, error) {
	pairings, err := s.home.Book.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for owners: %w", err)
	}
	var owners []string
	for _, user := range c.Access.Owners {
		owners = append(owners, c.Name+":"+user)
	}
	paired := map[string]string{}
	for _, p := range pairings {
		paired[p.Person] = p.Name
		if p.Owner && p.Approved && channelOf(p.Person) == c.Name {
			owners = append(owners, p.Person)
		}
	}
	slices.Sort(owners)
	owners = slices.Compact(owners)
	names, err := s.home.Book.Names(ctx, owners...)
	if err != nil {
		return nil, fmt.Errorf("look for the names of owners: %w", err)
	}
	for i, person := range owners {
		owners[i] = cmp.Or(paired[person], names[person], person)
	}
	return owners, nil
}
