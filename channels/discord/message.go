package discord

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
)

// A message is a message of Discord's, as an event or history shows it. The library's
// own cannot be read where it has components of a newer kind.
type message struct {
	ID          string                         `json:"id"`
	Channel     string                         `json:"channel_id"`
	Guild       string                         `json:"guild_id"` // in events alone; "" in direct messages
	Content     string                         `json:"content"`
	At          time.Time                      `json:"timestamp"`
	Edited      *time.Time                     `json:"edited_timestamp"`
	Type        discordgo.MessageType          `json:"type"`
	Author      *user                          `json:"author"`
	Member      *member                        `json:"member"` // in events alone
	Flags       int                            `json:"flags"`
	Webhook     string                         `json:"webhook_id"`
	Mentions    []*user                        `json:"mentions"`
	Roles       []string                       `json:"mention_roles"`
	Attachments []*discordgo.MessageAttachment `json:"attachments"`
	Stickers    []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Poll *struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	} `json:"poll"`
	Reference *struct {
		Type    int    `json:"type"`
		Message string `json:"message_id"`
		Channel string `json:"channel_id"`
	} `json:"message_reference"`
	Answers   *message `json:"referenced_message"`
	Snapshots []struct {
		Message *message `json:"message"`
	} `json:"message_snapshots"`
}

// A user is an account on Discord.
type user struct {
	ID         string  `json:"id"`
	Username   string  `json:"username"`
	GlobalName string  `json:"global_name"`
	Bot        bool    `json:"bot"`
	System     bool    `json:"system"`
	Member     *member `json:"member"` // of who is mentioned in an event
}

// A member is a user in a server.
type member struct {
	Nick string `json:"nick"`
}

// isSpeech tells whether a person says something in a message. Joins, pins and calls
// are none, nor are messages of this bot or another, or of a webhook.
func (m *message) isSpeech(me string) bool {
	switch {
	case m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply:
		return false
	case m.Author == nil || m.Author.Bot || m.Author.System || m.Author.ID == me || m.Webhook != "":
		return false
	}
	return isID(m.ID) && isID(m.Channel) && isID(m.Author.ID)
}

// mentions tells whether the message names a user, or replies to what that user said.
func (m *message) mentions(me string) bool {
	if slices.ContainsFunc(m.Mentions, func(u *user) bool { return u != nil && u.ID == me }) {
		return true
	}
	return m.Type == discordgo.MessageTypeReply && m.Answers != nil && m.Answers.Author != nil && m.Answers.Author.ID == me
}

// A reaction is one of somebody's at a message.
type reaction struct {
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	Message string `json:"message_id"`
	Guild   string `json:"guild_id"`
	Author  string `json:"message_author_id"` // told when it is added alone
	Member  *struct {
		member
		User *user `json:"user"`
	} `json:"member"`
	Emoji struct {
		ID   string `json:"id"` // of one that is a server's own
		Name string `json:"name"`
	} `json:"emoji"`
}

// concerns tells whether a reaction of a person's may be at a message of the bot's.
func (r *reaction) concerns(me string, removed bool) bool {
	bot := r.User == me || r.Member != nil && r.Member.User != nil && r.Member.User.Bot
	return !bot && (removed || r.Author == me) && isID(r.User) && isID(r.Channel) && isID(r.Message) && r.Emoji.Name != ""
}

// forwards tells whether the message passes on another.
func (m *message) forwards() bool { return len(m.Snapshots) > 0 }

// snowflake is an id as the number that it is; 0 if it is none. Numbers grow with time.
func snowflake(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// discordEpoch is where Discord's time begins, in milliseconds since 1970.
const discordEpoch = 1420070400000

// snowflakeAt is the lowest id of a moment.
func snowflakeAt(at time.Time) uint64 {
	return uint64(max(at.UnixMilli()-discordEpoch, 0)) << 22
}

// snowflakeBefore is the id that is so much older.
func snowflakeBefore(id uint64, d time.Duration) uint64 {
	before := uint64(d.Milliseconds()) << 22
	if before > id {
		return 0
	}
	return id - before
}

// momentOf is when the thing with that id was made.
func momentOf(id string) time.Time {
	n := snowflake(id)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + discordEpoch).UTC()
}

// messageID names a message for good.
func (c *Channel) messageID(me, channel, message string) string {
	return c.name + ":" + me + ":" + channel + ":" + message
}

// person is the id of one of Discord's users.
func (c *Channel) person(user string) string { return c.name + ":" + user }

// replyAddress is where the reply to what is said in a channel goes. A thread is a channel of
// its own on Discord; here it belongs to the channel that it is in.
func (c *Channel) replyAddress(p place) bus.Address {
	if p.thread() && p.Parent != "" {
		return bus.Address{Channel: c.name, Chat: p.Parent, Thread: p.ID}
	}
	return bus.Address{Channel: c.name, Chat: p.ID}
}

const (
	historyPages   = 10 // of a channel or a thread that is read
	historyThreads = 10 // of a channel
)

// History implements channels.Historian. Of a channel's threads those are read that are
// known here and were written in last.
func (c *Channel) History(ctx context.Context, at bus.Address, since time.Time, most int) ([]channels.Utterance, bool, error) {
	places := []string{cmp.Or(at.Thread, at.Chat)}
	if at.Thread == "" {
		threads := c.directory.threads(at.Chat)
		places = append(places, threads[:min(len(threads), historyThreads)]...)
	}
	var said []channels.Utterance
	more := false
	for i, id := range places {
		found, older, err := c.readBack(ctx, id, since, most)
		if err != nil && i > 0 {
			continue // a thread that is gone, or that the bot may not read
		}
		if err != nil {
			return nil, false, err
		}
		more = more || older
		for _, m := range slices.Backward(found) {
			u := channels.Utterance{At: momentOf(m.ID), Text: c.words(m, false), Thread: at.Thread}
			if i > 0 {
				u.Thread = id
			}
			if m.Author != nil {
				u.From = bus.Person{ID: c.person(m.Author.ID), Name: displayName(m.Author, m.Member)}
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

// readBack reads the newest messages of a channel or a thread, the newest first.
func (c *Channel) readBack(ctx context.Context, id string, since time.Time, most int) (found []*message, more bool, err error) {
	before := ""
	for range historyPages {
		page, err := c.history(ctx, id, before)
		if err != nil {
			return nil, false, err
		}
		for i, m := range slices.Backward(page) {
			if momentOf(m.ID).Before(since) {
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

// IsIn implements channels.Historian: somebody is in a channel of a server who may see it
// and read its history.
func (c *Channel) IsIn(ctx context.Context, chat, person string) (bool, error) {
	_, user, _ := strings.Cut(person, ":")
	var where discordgo.Channel
	var guild discordgo.Guild
	var who discordgo.Member
	if err := c.get(ctx, discordgo.EndpointChannel(chat), &where); err != nil || where.GuildID == "" {
		return false, err
	}
	if err := c.get(ctx, discordgo.EndpointGuild(where.GuildID), &guild); err != nil {
		return false, err
	}
	err := c.get(ctx, discordgo.EndpointGuildMember(where.GuildID, user), &who)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
		return false, nil
	}
	const needed = discordgo.PermissionViewChannel | discordgo.PermissionReadMessageHistory
	return err == nil && mayDo(user, &guild, &where, &who)&needed == needed, err
}

// mayDo are the permissions of a member of a server in one of its channels.
func mayDo(user string, guild *discordgo.Guild, where *discordgo.Channel, who *discordgo.Member) int64 {
	var may int64
	for _, r := range guild.Roles {
		if r.ID == guild.ID || slices.Contains(who.Roles, r.ID) {
			may |= r.Permissions
		}
	}
	if guild.OwnerID == user || may&discordgo.PermissionAdministrator != 0 {
		return discordgo.PermissionAll
	}
	// First what holds for everybody, then for roles, then for the person.
	for _, concerns := range []func(o *discordgo.PermissionOverwrite) bool{
		func(o *discordgo.PermissionOverwrite) bool { return o.ID == guild.ID },
		func(o *discordgo.PermissionOverwrite) bool {
			return o.ID != guild.ID && slices.Contains(who.Roles, o.ID)
		},
		func(o *discordgo.PermissionOverwrite) bool { return o.ID == user },
	} {
		var deny, allow int64
		for _, o := range where.PermissionOverwrites {
			if concerns(o) {
				deny, allow = deny|o.Deny, allow|o.Allow
			}
		}
		may = may&^deny | allow
	}
	return may
}

// FindChat implements channels.Historian: a channel of a server, by its id or its name. A
// name that two have finds none.
func (c *Channel) FindChat(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "#")
	if isID(name) {
		p, err := c.directory.place(ctx, name)
		if err != nil || p.Guild == "" || p.thread() {
			return "", err
		}
		return p.ID, nil
	}
	var guilds []struct {
		ID string `json:"id"`
	}
	if err := c.get(ctx, discordgo.EndpointUser("@me")+"/guilds", &guilds); err != nil {
		return "", err
	}
	found := ""
	for _, g := range guilds {
		var all []place
		if err := c.get(ctx, discordgo.EndpointGuildChannels(g.ID), &all); err != nil {
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

// get asks Discord for something.
func (c *Channel) get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, request{method: http.MethodGet, url: url}, into)
}
