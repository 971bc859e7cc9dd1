package discord

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
)

// pageSize is the number of messages in one page of history.
const pageSize = 100

// A historian finds channels and threads, and reads what was said in them.
type historian struct {
	*api
	translator *translator
	directory  *directory
	book       Book
}

// history reads one page of a channel's history, oldest message first.
func (h *historian) history(ctx context.Context, id, query string) ([]*message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var page []*message
	url := discordgo.EndpointChannelMessages(id) + "?limit=" + strconv.Itoa(pageSize) + "&" + query
	if err := h.call(ctx, request{method: http.MethodGet, url: url}, &page); err != nil {
		return nil, err
	}
	page = slices.DeleteFunc(page, func(m *message) bool { return m == nil })
	for _, m := range page {
		m.Channel = id
	}
	slices.SortFunc(page, func(a, b *message) int { return cmp.Compare(snowflake(a.ID), snowflake(b.ID)) })
	return page, nil
}

// MessagesBefore implements channels.ThreadReader: it returns what was said in a thread before a message, as quotes. The
// message from which the thread was started is in the parent channel, and not among them. It returns none outside of
// threads and, unless always is set, in a thread in which somebody has talked to the bot before.
func (h *historian) MessagesBefore(ctx context.Context, in bus.Inbound, most int, always bool) ([]bus.Quote, error) {
	if in.At.Thread == "" {
		return nil, nil
	}
	if _, joined, err := h.book.TalkedSince(ctx, in.At); !always && (err != nil || joined) {
		if err != nil {
			return nil, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
		}
		return nil, nil
	}
	query := ""
	if isID(in.ReplyTo) {
		query = "before=" + in.ReplyTo
	}
	page, err := h.history(ctx, in.At.Thread, query)
	if err != nil {
		return nil, err
	}
	var quotes []bus.Quote
	for _, m := range page {
		if text := h.translator.typedText(m, false); text != "" && m.Author != nil {
			from := bus.Person{ID: h.translator.personID(m.Author.ID), Name: displayName(m.Author, m.Member)}
			quotes = append(quotes, bus.Quote{Kind: bus.Earlier, From: from, At: snowflakeTime(m.ID), Text: text})
		}
	}
	return quotes[max(0, len(quotes)-most):], nil
}

// Link implements channels.Linker. Discord's web addresses name the server, which the directory knows, or asks
// Discord for once. It returns "" if the server isn't known, or for an id that isn't this channel's.
func (h *historian) Link(ctx context.Context, _ bus.Address, message string) (string, error) {
	parts := strings.Split(message, ":") // in the form that messageID makes
	if len(parts) != 4 || parts[0] != h.translator.name || !isID(parts[2]) || !isID(parts[3]) {
		return "", nil
	}
	p, err := h.directory.findPlace(ctx, parts[2])
	if err != nil || p.linkPrefix() == "" {
		return "", err
	}
	return "https://discord.com/channels/" + p.linkPrefix() + "/" + parts[2] + "/" + parts[3], nil
}

const (
	maxHistoryPages   = 10 // the maximum number of pages that are read of one channel or thread
	maxHistoryThreads = 10 // the maximum number of threads that are read of one channel
)

// History implements channels.Historian: it reads the newest messages of a channel or a thread. If it is a channel,
// it also reads the ten threads with the newest messages, among the threads that this process knows and that aren't
// private. It leaves out threads that can't be read.
func (h *historian) History(ctx context.Context, at bus.Address, since time.Time, most int) ([]channels.Utterance, bool, error) {
	places := []string{cmp.Or(at.Thread, at.Chat)}
	if at.Thread == "" {
		threads := h.directory.openThreadsOf(at.Chat)
		places = append(places, threads[:min(len(threads), maxHistoryThreads)]...)
	}
	var said []channels.Utterance
	more := false
	for i, id := range places {
		found, older, err := h.readNewest(ctx, id, since, most)
		if err != nil && i > 0 {
			continue // a thread that is gone, or that the bot may not read
		}
		if err != nil {
			return nil, false, err
		}
		more = more || older
		for _, m := range slices.Backward(found) {
			u := channels.Utterance{At: snowflakeTime(m.ID), Text: h.translator.typedText(m, false), Thread: at.Thread}
			if i > 0 {
				u.Thread = id
			}
			if m.Author != nil {
				u.From = bus.Person{ID: h.translator.personID(m.Author.ID), Name: displayName(m.Author, m.Member)}
			}
			said = append(said, u)
		}
	}
	slices.SortStableFunc(said, func(a, b channels.Utterance) int { return a.At.Compare(b.At) })
	if len(said) > most {
		more, said = true, said[len(said)-most:]
	}
	return said, more, nil
}

// readNewest reads up to most messages of a channel or a thread since a time, newest first. more is true if there
// are older ones that it did not read.
func (h *historian) readNewest(ctx context.Context, id string, since time.Time, most int) (found []*message, more bool, err error) {
	before := ""
	for range maxHistoryPages {
		page, err := h.history(ctx, id, before)
		if err != nil {
			return nil, false, err
		}
		for i, m := range slices.Backward(page) {
			if snowflakeTime(m.ID).Before(since) {
				return found, false, nil
			}
			if len(found) == most {
				return found, true, nil
			}
			found = append(found, page[i])
		}
		if len(page) < pageSize {
			return found, false, nil
		}
		before = "before=" + page[0].ID
	}
	return found, true, nil
}

// FindChat implements channels.Historian: it finds a server's channel by its id or its name; it returns "" if there
// is none, or if two channels have that name.
func (h *historian) FindChat(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "#")
	if isID(name) {
		p, err := h.directory.findPlace(ctx, name)
		if err != nil || p.Guild == "" || p.isThread() {
			return "", err
		}
		return p.ID, nil
	}
	var guilds []struct {
		ID string `json:"id"`
	}
	if err := h.get(ctx, discordgo.EndpointUser("@me")+"/guilds", &guilds); err != nil {
		return "", err
	}
	found := ""
	for _, g := range guilds {
		var all []place
		if err := h.get(ctx, discordgo.EndpointGuildChannels(g.ID), &all); err != nil {
			return "", err
		}
		for _, p := range all {
			switch {
			case !strings.EqualFold(p.Name, name):
			case found != "":
				return "", nil
			default:
				found = p.ID
			}
		}
	}
	return found, nil
}
