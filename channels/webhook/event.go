package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/outbox"
	"parley/channels/webhook/events"
)

// A Starter passes events (what programs have posted) to agents; it is an *events.Channel.
type Starter interface {
	Start(ctx context.Context, e events.Event) error
}

// A starter takes the place of the outbox for one post to a webhook that has an agent: what it accepts starts a
// turn instead of being sent. The post is recorded like a message, so that a repeated post is recognized in the
// same way. Its first destination is the session; the others are where the answer goes.
type starter struct {
	*Handler
	d delivery
}

// Record implements Outbox: it records a post under a key that no message to people can have.
func (s starter) Record(ctx context.Context, r outbox.Request, to []bus.Address) (channels.Submission, error) {
	if r.Key != "" {
		r.Key = "event/" + r.Key // never that of a message, even if the webhook once had no agent
	}
	return s.config.Outbox.Record(ctx, r, to)
}

// Accept implements Outbox: it records a post and starts a turn for it. The status has no destinations if a search
// for a twin has used the post's key.
func (s starter) Accept(ctx context.Context, r outbox.Request) (outbox.Status, error) {
	to, err := s.config.Resolve(r.To)
	if err != nil {
		return outbox.Status{}, err
	}
	at := events.Address(s.config.Name, s.group(s.d))
	p, err := s.Record(ctx, r, append([]bus.Address{at}, to...))
	if err != nil {
		return outbox.Status{}, err
	}
	status := outbox.Status{ID: p.ID, Destinations: []outbox.Destination{}}
	if len(p.Destinations) == 0 {
		return status, nil // the search for a twin has recorded it
	}
	s.point("event:recorded")
	at = p.Destinations[0]
	err = s.config.Agent.Start(ctx, events.Event{ID: p.ID, At: at, Kind: s.config.Kind, Text: s.eventText(r.Text), Posted: p.At})
	if err != nil {
		return outbox.Status{}, err
	}
	s.point("event:started")
	status.Destinations = append(status.Destinations, outbox.Destination{Address: at.String(), State: channels.Queued, At: p.At})
	return status, nil
}

// The maximum lengths of an event's parts that an agent is given, in characters.
const (
	maxEventText   = 3000
	maxEventFields = 4000
)

// eventText returns what an agent is given: the text that people would read, and the fields as they were posted, each
// cut if it is too long.
func (s starter) eventText(text string) string {
	return truncate(maxEventText, text) + "\n\nAs it was posted:\n\n" + string(jsonBlock(s.d.data, maxEventFields))
}

func (h *Handler) point(name string) {
	if h.config.Point != nil {
		h.config.Point(name)
	}
}

// maxGroup is the maximum number of bytes of a group's name in a session's key: a key has at most 256 bytes, and
// its other parts need the rest.
const maxGroup = 110

// group returns the name of the group that an event belongs to: an Alertmanager group, an issue or pull request on
// GitHub, or a text that the template group prints. It is "" for a webhook with only one group.
func (h *Handler) group(d delivery) string {
	var name string
	switch h.config.Kind {
	case Alertmanager:
		if name = plainText(d.data["groupKey"]); name == "" {
			name = exactText(d.data["groupLabels"])
		}
	case GitHub:
		name = groupOnGitHub(d)
	default:
		if h.groups == nil {
			return ""
		}
		text := &boundedBuffer{}
		if err := h.groups.Execute(text, d.data); err != nil && !errors.Is(err, errTooLong) {
			h.config.Log.Warn("the template of the group failed, so the event is with those of no group")
			return ""
		}
		name = strings.TrimSpace(strings.ReplaceAll(text.String(), "<no value>", ""))
	}
	return nameOfGroup(name)
}

// groupOnGitHub returns the name of a group of GitHub events: the repository, with the number of the issue or pull
// request or, if there is none, with the branch or tag that the event is about.
func groupOnGitHub(d delivery) string {
	name, _ := valueAt(d.data, "repository.full_name")
	for _, path := range []string{
		"number", "issue.number", "pull_request.number", "discussion.number",
		"workflow_run.pull_requests.0.number", "check_suite.pull_requests.0.number", "check_run.pull_requests.0.number",
	} {
		if number, ok := valueAt(d.data, path); ok && number != "" {
			return name + "#" + number
		}
	}
	for _, path := range []string{"ref", "workflow_run.head_branch", "check_suite.head_branch", "check_run.check_suite.head_branch"} {
		if ref, ok := valueAt(d.data, path); ok && ref != "" {
			return name + "@" + strings.TrimPrefix(ref, "refs/heads/")
		}
	}
	return name
}

// nameOfGroup returns a name for a group that a session's key can contain: a name that is too long, or contains
// invisible characters, is shortened, and ends with a hash of the whole name.
func nameOfGroup(name string) string {
	room, clean := maxGroup, bus.IsClean(name) && !markup.IsBlank(name) && name != "." && name != ".."
	kept := 0
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("._@-", c) >= 0 {
			room--
		} else {
			room -= 3
		}
		if room >= 17 {
			kept = i + 1
		}
	}
	if name == "" || clean && room >= 0 {
		return name
	}
	short := ""
	if clean {
		short = strings.ToValidUTF8(name[:kept], "")
	}
	return fmt.Sprintf("%s~%.14s", short, digest(name))
}
