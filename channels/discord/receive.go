package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
	"parley/channels/discord/socket"
)

// intents are what the bot is told of. To read what people write in servers has to be
// allowed in the developer portal.
const intents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions | discordgo.IntentMessageContent

// Receive hands what people say to publish until ctx is done, and then returns nil.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	if c.sendsOnly {
		return errors.New(`discord: ` + c.name + ` has mode = "send": it does not receive`)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newReceiver(c, publish)
	if err := r.position.begin(ctx); err != nil {
		return nil //nolint:nilerr // ctx ended
	}
	var working sync.WaitGroup
	working.Go(func() { r.position.keep(ctx, c.pulse.save) })
	err := r.socket.Run(ctx)
	cancel()
	// The lanes end after what adds to them, and the cursor is saved after both, so that
	// it names everything that was published.
	r.beside.Wait()
	r.lanes.running.Wait()
	working.Wait()
	r.position.save(context.WithoutCancel(ctx))
	return err
}

// A receiver is one run of Receive: the socket brings events, the lanes keep the order of
// each channel, the publisher publishes, and catchUp reads from history what the socket
// did not bring.
type receiver struct {
	channel   *Channel
	socket    *socket.Socket
	lanes     *lanes
	position  *position
	publisher *publisher
	catchUp   *catchUp
	beside    sync.WaitGroup // what an event has begun and nothing waits for
}

func newReceiver(c *Channel, publish func(context.Context, bus.Inbound) error) *receiver {
	r := &receiver{channel: c}
	r.lanes = newLanes(c.room)
	r.position = &position{channel: c, lanes: r.lanes}
	r.publisher = newPublisher(c, publish)
	r.catchUp = newCatchUp(r.publisher, r.lanes, r.position)
	r.position.catchUp = r.catchUp
	r.lanes.work, r.lanes.catchUp = r.work, r.catchUp.fill
	r.socket = socket.New(socket.Config{
		Token: c.token, Intents: int(intents), Plain: c.server.Scheme == "http", Enter: c.findGateway, Handle: r.handle, Note: c.contact.Note,
		Hello: c.pulse.hello, Log: c.log,
	})
	return r
}

// findGateway asks Discord where its gateway is.
func (c *Channel) findGateway(ctx context.Context) (socket.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var g discordgo.GatewayBotResponse
	if err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointGatewayBot}, &g); err != nil {
		if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
			refusal.Fault = channels.Retry // the next may be taken
		}
		return socket.Entry{}, err
	}
	limit := g.SessionStartLimit
	if limit.Total == 0 { // a server in Discord's place may know of none
		limit.Remaining = 1
	}
	return socket.Entry{
		URL: g.URL, Left: limit.Remaining, AtOnce: limit.MaxConcurrency,
		ResetAfter: time.Duration(limit.ResetAfter) * time.Millisecond,
	}, nil
}

// A news is one thing that has happened in a channel.
type news struct {
	channel string
	id      uint64 // of what was said; 0 of what is in no history
	message *message

	edited  bool   // the message was said earlier, and changed
	deleted uint64 // in place of the message, the id of one that is gone

	reaction *reaction // in place of the message
	removed  bool      // the reaction was taken back
}

func (n *news) isMessage() bool { return n.id != 0 }

// handle takes one event of the gateway. It waits for nothing.
func (r *receiver) handle(ctx context.Context, e socket.Event) {
	switch e.Type {
	case socket.Ready:
		r.ready(ctx, e.Data)
	case "GUILD_CREATE":
		var g guild
		if err := json.Unmarshal(e.Data, &g); err != nil {
			r.unreadable(ctx, e)
			return
		}
		r.catchUp.readServer(ctx, g.ID, r.channel.directory.noteGuild(g))
	case "GUILD_DELETE":
		var g guild
		if json.Unmarshal(e.Data, &g) == nil {
			r.catchUp.serverGone(g.ID) // it comes anew if it comes back
		}
	case "INTERACTION_CREATE":
		r.takeInteraction(ctx, e.Data)
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		one := new(reaction)
		if err := json.Unmarshal(e.Data, one); err != nil {
			r.unreadable(ctx, e)
			return
		}
		if removed := e.Type == "MESSAGE_REACTION_REMOVE"; one.concerns(r.channel.directory.self().ID, removed) {
			r.lanes.add(ctx, &news{channel: one.Channel, reaction: one, removed: removed})
		}
	case "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		r.changed(ctx, e)
	case "MESSAGE_CREATE":
		m := new(message)
		if err := json.Unmarshal(e.Data, m); err != nil {
			r.unreadable(ctx, e)
			return
		}
		r.heard(ctx, m)
	default:
		if strings.HasPrefix(e.Type, "CHANNEL_") || strings.HasPrefix(e.Type, "THREAD_") || strings.HasPrefix(e.Type, "GUILD_ROLE_") {
			r.catchUp.noteNewPlaces(ctx, r.channel.directory.observe(e.Type, e.Data))
		}
	}
}

// changed takes that somebody has edited or deleted what they said. What only got a
// preview was edited by nobody.
func (r *receiver) changed(ctx context.Context, e socket.Event) {
	if e.Type == "MESSAGE_UPDATE" {
		m := new(message)
		if json.Unmarshal(e.Data, m) == nil && m.Edited != nil && m.isSpeech(r.channel.directory.self().ID) {
			r.lanes.add(ctx, &news{channel: m.Channel, message: m, edited: true})
		}
		return
	}
	var gone struct {
		ID      string   `json:"id"`
		IDs     []string `json:"ids"`
		Channel string   `json:"channel_id"`
	}
	if json.Unmarshal(e.Data, &gone) != nil || !isID(gone.Channel) {
		return
	}
	for _, id := range append(gone.IDs, gone.ID) {
		if n := snowflake(id); n != 0 {
			r.lanes.add(ctx, &news{channel: gone.Channel, deleted: n})
		}
	}
}

// unreadable logs an event that cannot be read. It would be no other a moment later.
func (r *receiver) unreadable(ctx context.Context, e socket.Event) {
	r.channel.log.LogAttrs(ctx, slog.LevelError, "an event cannot be read and is left out",
		slog.String("event", e.Type), slog.Int("bytes", len(e.Data)))
}

// ready begins a session: what was said since the last one is missing.
func (r *receiver) ready(ctx context.Context, data json.RawMessage) {
	var begun struct {
		User   discordgo.User `json:"user"`
		Guilds []guild        `json:"guilds"`
		App    struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if err := json.Unmarshal(data, &begun); err != nil {
		r.unreadable(ctx, socket.Event{Type: socket.Ready, Data: data})
		return
	}
	r.channel.directory.begin(begun.User)
	r.catchUp.beginSession(begun.Guilds)
	r.beside.Go(func() { r.catchUp.readDirectChats(ctx) })
	r.beside.Go(func() { r.channel.offerCommands(ctx, cmp.Or(begun.App.ID, begun.User.ID)) })
}

// heard puts what was said into its channel's lane.
func (r *receiver) heard(ctx context.Context, m *message) {
	id := snowflake(m.ID)
	if id == 0 || !isID(m.Channel) {
		return
	}
	r.catchUp.readBefore(ctx, m)
	if m.isSpeech(r.channel.directory.self().ID) {
		r.lanes.add(ctx, &news{channel: m.Channel, id: id, message: m})
	}
	r.position.reached(id)
}

// work does what one item of a lane asks for.
func (r *receiver) work(ctx context.Context, _ *lane, n *news) { r.publisher.deliver(ctx, n) }
