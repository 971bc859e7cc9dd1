package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"parley/channels"
	"parley/cmd/parley/platforms"
)

// offerEvery is how often it is looked whether a channel needs an owner's code.
const offerEvery = time.Minute

// offer prints a link or a code for the bot's owner while it has none: once, and
// again whenever the last one has expired.
func (s *Server) offer(ctx context.Context, l *endpoint, out io.Writer) {
	for last := ""; ; {
		last = s.offerAgain(ctx, l, out, last)
		select {
		case <-time.After(offerEvery):
		case <-ctx.Done():
			return
		}
	}
}

// offerAgain prints what is on offer if that is not the last code, and returns it.
func (s *Server) offerAgain(ctx context.Context, l *endpoint, out io.Writer, last string) string {
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

// hasOwner tells whether somebody owns the bot on a channel.
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
