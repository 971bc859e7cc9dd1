package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels/discord/socket"
)

// gatewayIntents select the events that the gateway sends. The developer portal must allow the bot to read what people
// write in servers.
const gatewayIntents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions | discordgo.IntentMessageContent

// Receive passes what people say to publish until ctx is done, then returns nil. It fails if the channel is
// configured only to send, and with the fault Stop if Discord refuses the account.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	if c.onlySends {
		return errors.New(`discord: ` + c.name + ` has mode = "send": it does not receive`)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newReceiver(c, publish)
	if err := r.position.load(ctx); err != nil {
		return nil //nolint:nilerr // ctx ended
	}
	var working sync.WaitGroup
	working.Go(func() { r.position.saveRegularly(ctx, c.timing.saveInterval) })
	err := r.socket.Run(ctx)
	cancel()
	// The work that adds to the lanes ends first, then the lanes; the cursor is saved last, so that it covers
	// everything that was published.
	r.background.Wait()
	r.interactions.running.Wait()
	r.lanes.running.Wait()
	working.Wait()
	r.position.save(context.WithoutCancel(ctx))
	return err
}

// A receiver is one run of Receive. The socket delivers events, the lanes keep each channel's events in order, the
// publisher publishes, and catchUp reads from history what the socket did not deliver.
type receiver struct {
	*api
	directory    *directory
	interactions *interactions
	commands     *commandMenu
	socket       *socket.Socket
	lanes        *lanes
	position     *position
	publisher    *publisher
	catchUp      *catchUp
	background   sync.WaitGroup // background work that an event has started and that no lane waits for
}

// newReceiver builds a receiver and connects its parts.
func newReceiver(c *Channel, publish func(context.Context, bus.Inbound) error) *receiver {
	t := c.historian.translator
	r := &receiver{
		api: c.api, directory: t.directory, commands: &commandMenu{c.api},
		interactions: &interactions{translator: t, directory: t.directory, publish: publish, responder: responder{c.api}, answerTimeout: c.timing.answerTimeout, log: c.log},
	}
	r.lanes = newLanes(c.maxQueued)
	r.position = &position{name: c.name, book: t.book, lanes: r.lanes, log: r.log}
	r.publisher = newPublisher(t, publish, r.log)
	r.catchUp = newCatchUp(c.name, c.historian, r.publisher, r.lanes, r.position, c.timing.overlap, c.rateLimited)
	r.position.missedMessages = r.catchUp
	r.lanes.handle, r.lanes.catchUp = r.publishItem, r.catchUp.readMissed
	r.socket = socket.New(socket.Config{
		Token: c.token, Intents: int(gatewayIntents), AllowUnencrypted: c.apiURL.Scheme == "http", FindGateway: c.findGateway, Handle: r.handle, ReportReachable: c.reachability.Note,
		HelloTimeout: c.timing.helloTimeout, Log: r.log,
	})
	return r
}

// handle processes one event of the gateway. It never blocks.
func (r *receiver) handle(ctx context.Context, e socket.Event) {
	switch e.Type {
	case socket.Ready:
		r.beginSession(ctx, e.Data)
	case "GUILD_CREATE":
		var g guild
		if err := json.Unmarshal(e.Data, &g); err != nil {
			r.logUnreadable(ctx, e)
			return
		}
		r.catchUp.readGuild(ctx, g.ID, r.directory.setGuild(g))
	case "GUILD_DELETE":
		var g guild
		if json.Unmarshal(e.Data, &g) == nil {
			r.catchUp.stopAwaitingGuild(g.ID) // if the server comes back, GUILD_CREATE will come again
		}
	case "INTERACTION_CREATE":
		r.interactions.receive(ctx, e.Data)
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		one := new(reaction)
		if err := json.Unmarshal(e.Data, one); err != nil {
			r.logUnreadable(ctx, e)
			return
		}
		if removed := e.Type == "MESSAGE_REACTION_REMOVE"; one.mayConcernBot(r.directory.botUser().ID, removed) {
			r.lanes.add(ctx, &laneItem{channel: one.Channel, reaction: one, removed: removed})
		}
	case "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		r.receiveChange(ctx, e)
	case "MESSAGE_CREATE":
		m := new(message)
		if err := json.Unmarshal(e.Data, m); err != nil {
			r.logUnreadable(ctx, e)
			return
		}
		r.receiveMessage(ctx, m)
	default:
		if strings.HasPrefix(e.Type, "CHANNEL_") || strings.HasPrefix(e.Type, "THREAD_") || strings.HasPrefix(e.Type, "GUILD_ROLE_") {
			r.catchUp.noteNewChannels(ctx, r.directory.applyEvent(e.Type, e.Data))
		}
	}
}

// receiveChange queues a person's edit or deletion of a message. An update that only adds a link preview has no
// edit time, and is ignored.
func (r *receiver) receiveChange(ctx context.Context, e socket.Event) {
	if e.Type == "MESSAGE_UPDATE" {
		m := new(message)
		if json.Unmarshal(e.Data, m) == nil && m.Edited != nil && m.isSpeech(r.directory.botUser().ID) {
			r.lanes.add(ctx, &laneItem{channel: m.Channel, message: m, edited: true})
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
			r.lanes.add(ctx, &laneItem{channel: gone.Channel, deleted: n})
		}
	}
}

// logUnreadable logs an event that can't be decoded. There is no retry, because its content would be the same.
func (r *receiver) logUnreadable(ctx context.Context, e socket.Event) {
	r.log.LogAttrs(ctx, slog.LevelError, "an event cannot be read and is left out",
		slog.String("event", e.Type), slog.Int("bytes", len(e.Data)))
}

// beginSession starts catching up when Discord begins a new session: messages since the
// last session were missed.
func (r *receiver) beginSession(ctx context.Context, data json.RawMessage) {
	var begun struct {
		User   discordgo.User `json:"user"`
		Guilds []guild        `json:"guilds"`
		App    struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if err := json.Unmarshal(data, &begun); err != nil {
		r.logUnreadable(ctx, socket.Event{Type: socket.Ready, Data: data})
		return
	}
	r.directory.reset(begun.User)
	r.catchUp.beginSession(begun.Guilds)
	r.background.Go(func() { r.catchUp.readDirectChats(ctx) })
	r.background.Go(func() { r.commands.offerCommands(ctx, cmp.Or(begun.App.ID, begun.User.ID)) })
}

// receiveMessage puts a message into its channel's lane (queue), behind the history that must be read for the
// channel first.
func (r *receiver) receiveMessage(ctx context.Context, m *message) {
	id := snowflake(m.ID)
	if id == 0 || !isID(m.Channel) {
		return
	}
	r.catchUp.readHistoryBefore(ctx, m)
	if m.isSpeech(r.directory.botUser().ID) {
		r.lanes.add(ctx, &laneItem{channel: m.Channel, id: id, message: m})
	}
	r.position.noteHeard(id)
}

// publishItem publishes one item from a lane, retrying until that succeeds or ctx ends.
func (r *receiver) publishItem(ctx context.Context, _ *lane, n *laneItem) {
	r.publisher.deliver(ctx, n)
}
