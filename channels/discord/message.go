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

// A message is a Discord message, as an event or history shows it. discordgo's own type
// cannot decode messages with components of a newer kind.
type message struct {
	ID          string                         `json:"id"`
	Channel     string                         `json:"channel_id"`
	Guild       string                         `json:"guild_id"` // the server's id, in events only; "" in direct messages
	Content     string                         `json:"content"`
	At          time.Time                      `json:"timestamp"`
	Edited      *time.Time                     `json:"edited_timestamp"`
	Type        discordgo.MessageType          `json:"type"`
	Author      *user                          `json:"author"`
	Member      *member                        `json:"member"` // what the server adds to the author, in events only
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
	Answers   *message `json:"referenced_message"` // the message that this one replies to
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
	Member     *member `json:"member"` // what the server adds to a user who is mentioned, in events only
}

// A member is what a server adds to a user, such as a nickname.
type member struct {
	Nick string `json:"nick"`
}

// isSpeech reports whether a person says something in a message. Joins, pins and calls are
// not speech, nor are messages of this bot (the user me), of other bots or of webhooks.
func (m *message) isSpeech(me string) bool {
	switch {
	case m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply:
		return false
	case m.Author == nil || m.Author.Bot || m.Author.System || m.Author.ID == me || m.Webhook != "":
		return false
	}
	return isID(m.ID) && isID(m.Channel) && isID(m.Author.ID)
}

// mentions reports whether the message names the user me, or replies to a message of that
// user.
func (m *message) mentions(me string) bool {
	if slices.ContainsFunc(m.Mentions, func(u *user) bool { return u != nil && u.ID == me }) {
		return true
	}
	return m.Type == discordgo.MessageTypeReply && m.Answers != nil && m.Answers.Author != nil && m.Answers.Author.ID == me
}

// A reaction is an emoji that a person has added to a message, or has removed from it.
type reaction struct {
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	Message string `json:"message_id"`
	Guild   string `json:"guild_id"`
	Author  string `json:"message_author_id"` // whose message it is; Discord gives it only when the reaction is added
	Member  *struct {
		member
		User *user `json:"user"`
	} `json:"member"`
	Emoji struct {
		ID   string `json:"id"` // the id of a server's own emoji; "" for all others
		Name string `json:"name"`
	} `json:"emoji"`
}

// mayConcernBot reports whether a person (not the bot me) has reacted to what may be a message of
// the bot. For a removed reaction Discord does not say whose message it was.
func (r *reaction) mayConcernBot(me string, removed bool) bool {
	bot := r.User == me || r.Member != nil && r.Member.User != nil && r.Member.User.Bot
	return !bot && (removed || r.Author == me) && isID(r.User) && isID(r.Channel) && isID(r.Message) && r.Emoji.Name != ""
}

// isForward reports whether the message forwards another.
func (m *message) isForward() bool { return len(m.Snapshots) > 0 }

// snowflake returns the number that a Discord id is; 0 if the text is not an id. Newer
// things have higher numbers.
func snowflake(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// discordEpoch is the moment from which Discord's ids count time, in milliseconds since
// 1970.
const discordEpoch = 1420070400000

// snowflakeAt returns the lowest id that a thing made at that moment can have.
func snowflakeAt(at time.Time) uint64 {
	return uint64(max(at.UnixMilli()-discordEpoch, 0)) << 22
}

// snowflakeBefore returns the id that a thing made d earlier than the one with this id would have;
// 0 if there is none.
func snowflakeBefore(id uint64, d time.Duration) uint64 {
	before := uint64(d.Milliseconds()) << 22
	if before > id {
		return 0
	}
	return id - before
}

// snowflakeTime returns when the thing with that id was made; the zero time if the text is
// not an id.
func snowflakeTime(id string) time.Time {
	n := snowflake(id)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + discordEpoch).UTC()
}

// messageID returns the id that a message has on the bus. It never changes, however often Discord
// delivers the message.
func (c *Channel) messageID(me, channel, message string) string {
	return c.name + ":" + me + ":" + channel + ":" + message
}

// personID returns the id that a Discord user has on the bus: CHANNEL:USER.
func (c *Channel) personID(user string) string { return c.name + ":" + user }

// replyAddress returns the address to which a reply to a message in that place goes.
// Discord treats a thread as a channel of its own; on the bus it is a thread of the
// channel that it is in.
func (c *Channel) replyAddress(p place) bus.Address {
	if p.isThread() && p.Parent != "" {
		return bus.Address{Channel: c.name, Chat: p.Parent, Thread: p.ID}
	}
	return bus.Address{Channel: c.name, Chat: p.ID}
}

const (
	historyPages   = 10 // how many pages of one channel or thread are read
	historyThreads = 10 // how many threads of one channel are read
)

// History implements channels.Historian: it reads the newest messages of a channel or a thread. Of
// a channel's threads it reads those ten that have the newest messages, among the threads that this
// process knows.
func (c *Channel) History(ctx context.Context, at bus.Address, since time.Time, most int) ([]channels.Utterance, bool, error) {
	places := []string{cmp.Or(at.Thread, at.Chat)}
	if at.Thread == "" {
		threads := c.directory.threadsOf(at.Chat)
		places = append(places, threads[:min(len(threads), historyThreads)]...)
	}
	var said []channels.Utterance
	more := false
	for i, id := range places {
		found, older, err := c.readNewest(ctx, id, since, most)
		if err != nil && i > 0 {
			continue // a thread that is gone, or that the bot may not read
		}
		if err != nil {
			return nil, false, err
		}
		more = more || older
		for _, m := range slices.Backward(found) {
			u := channels.Utterance{At: snowflakeTime(m.ID), Text: c.typedText(m, false), Thread: at.Thread}
			if i > 0 {
				u.Thread = id
			}
			if m.Author != nil {
				u.From = bus.Person{ID: c.personID(m.Author.ID), Name: displayName(m.Author, m.Member)}
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

// readNewest reads up to most messages of a channel or a thread since a moment, the newest
// first. more is true if there are older ones that it did not read.
func (c *Channel) readNewest(ctx context.Context, id string, since time.Time, most int) (found []*message, more bool, err error) {
	before := ""
	for range historyPages {
		page, err := c.history(ctx, id, before)
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

// IsIn implements channels.Historian: a person is in a channel of a server if they may see
// the channel and read its history.
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
	return err == nil && permissionsOf(user, &guild, &where, &who)&needed == needed, err
}

// permissionsOf returns the permissions that a member of a server has in one of its
// channels.
func permissionsOf(user string, guild *discordgo.Guild, where *discordgo.Channel, who *discordgo.Member) int64 {
	var may int64
	for _, r := range guild.Roles {
		if r.ID == guild.ID || slices.Contains(who.Roles, r.ID) {
			may |= r.Permissions
		}
	}
	if guild.OwnerID == user || may&discordgo.PermissionAdministrator != 0 {
		return discordgo.PermissionAll
	}
	// First the rules for everybody apply, then those for roles, then those for the person.
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

// FindChat implements channels.Historian: it finds a channel of a server by its id or its name; ""
// if there is none, or if two channels have that name.
func (c *Channel) FindChat(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "#")
	if isID(name) {
		p, err := c.directory.findPlace(ctx, name)
		if err != nil || p.Guild == "" || p.isThread() {
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

// get fetches the JSON at a URL of the REST API and decodes it into into.
func (c *Channel) get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, request{method: http.MethodGet, url: url}, into)
}
