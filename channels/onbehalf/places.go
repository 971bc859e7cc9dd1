package onbehalf

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels/outbox"
	"parley/tools"
	"parley/tools/message"
)

// addresses returns the addresses for the place that the model wants to send to: a target, or a channel and a chat.
func (s *Sender) addresses(r message.Request) ([]bus.Address, *tools.Error) {
	targets := s.cfg.Targets()
	known := outbox.Directory{Targets: targets, Channels: slices.Clone(s.cfg.Channels)}
	name := requestedPlace(r)
	if _, ok := targets[r.Channel]; ok {
		name = r.Channel // no matter what else was named
	}
	to, err := known.Find(name)
	switch {
	case err == nil:
		return to, nil
	case slices.Contains(known.Channels, r.Channel) && r.Chat == "":
		return nil, tools.Errorf(tools.InvalidArgs, "chat_id is missing: name the chat on %s.", r.Channel)
	case slices.Contains(known.Channels, r.Channel):
		return nil, tools.Errorf(tools.InvalidArgs, "%v.", err)
	}
	names := known.Channels
	for _, entry := range s.cfg.MayMessage(r.Session) {
		if _, ok := targets[entry]; ok {
			names = append(names, entry)
		}
	}
	slices.Sort(names)
	return nil, tools.Errorf(tools.InvalidArgs, "there is no channel or target %q. There are: %s.", r.Channel, strings.Join(names, ", "))
}

// allowedAddresses lists the addresses that a turn may send to, its own first. Of the chats in which people were
// paired, it includes only the one of the person who asks.
func (s *Sender) allowedAddresses(ctx context.Context, r message.Request) ([]string, error) {
	reach := []string{r.From}
	targets := s.cfg.Targets()
	for _, entry := range s.cfg.MayMessage(r.Session) {
		if to, ok := targets[entry]; ok {
			for _, a := range to {
				reach = append(reach, a.String())
			}
			continue
		}
		reach = append(reach, entry)
	}
	paired, ok, err := s.cfg.Paired(ctx, r.Person)
	if err != nil {
		return nil, fmt.Errorf("look up who is paired: %w", err)
	}
	if ok && paired.Chat != "" {
		reach = append(reach, paired.Chat)
	}
	slices.Sort(reach[1:])
	return slices.Compact(reach), nil
}

// requestedPlace returns the place as the model gave it.
func requestedPlace(r message.Request) string {
	if r.Chat == "" {
		return r.Channel
	}
	return r.Channel + ":" + r.Chat
}

// Destinations returns the addresses that a message would go to if the model sent it to a channel and a chat; none if
// the tool would refuse that place.
func (s *Sender) Destinations(channel, chat string) []string {
	to, failed := s.addresses(message.Request{Channel: channel, Chat: chat})
	if failed != nil {
		return nil // the tool will refuse it too
	}
	var all []string
	for _, a := range to {
		all = append(all, a.String())
	}
	return all
}
