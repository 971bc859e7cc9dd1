package config

import (
	"fmt"
	"slices"
	"strings"

	"parley/cmd/parley/config/schema"
)

// Access says who may talk to the bot on a channel. It identifies people by the platform's ids,
// without the channel's name.
type Access struct {
	Policy    string // "pairing", "list", "members" or "open"
	AllowFrom []string
	Owners    []string
	Approvers []string // people who may approve what conversations on the channel ask for
	Chats     []Chat   // the groups in which the bot listens; nil means all
	Mention   string   // when people there must mention the bot: "always", "threads" (except in threads with it) or "never"
}

// A Chat is a group in which the bot listens.
type Chat struct {
	Chat    string // the platform's id
	Mention string // "" means the channel's setting
}

// checkAccess reports who-may-talk settings of a channel that the platform cannot apply, that have no effect, or that
// let nobody in.
func checkAccess(l *loader, path string, platform Platform) {
	policy := l.Text(path + ".access")
	if policy == "" {
		return // the value was invalid, which is already reported
	}
	if policy == "members" && !platform.Members {
		l.Report(l.At(path+".access"), path+".access", "only "+titlesThatHave(l.opts.Platforms, func(p Platform) bool { return p.Members })+` "members"`,
			`write "pairing" (an owner admits each person), or "list" with allow_from`)
	}
	if l.Mentioned(path+".allow_from") && policy != "list" {
		l.Report(l.At(path+".allow_from"), path+".allow_from", `has no effect without access = "list"`, `write access = "list", or remove allow_from`)
	}
	known := l.Value(path+".allow_from") != nil && l.Value(path+".owners") != nil // otherwise already reported as invalid
	if policy == "list" && known && len(l.Texts(path+".allow_from"))+len(l.Texts(path+".owners")) == 0 {
		l.Report(l.At(path+".access"), path+".access", `"list" lets nobody in: allow_from and owners are empty`, `write allow_from = ["42"], or owners`)
	}
}

// checkPeople reports entries in a channel's lists of people that are not user ids, or that begin
// with the channel's name.
func checkPeople(l *loader, path string, platform Platform) {
	for i, id := range l.Texts(path) {
		if _, user, ok := strings.Cut(id, ":"); ok {
			l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q names a channel", id), fmt.Sprintf("write just the user: %q", user))
			continue
		}
		if platform.IsUserID != nil && !platform.IsUserID(id) {
			l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q isn't a %s user's id", id, platform.Title), platform.UserIDRemedy)
		}
	}
}

// mentionValues returns the values that the setting mention may have.
func mentionValues() []string { return []string{"always", "threads", "never"} }

// A chatList is the kind of a setting whose value is a list of chat ids, or of { chat = …, mention
// = … }.
type chatList struct{}

// Decode converts a list into a list of Chat.
func (chatList) Decode(d *schema.Decoder, v any) (any, *schema.Fault) {
	items, ok := v.([]any)
	if !ok {
		return nil, d.WrongType("a list", v)
	}
	if len(items) == 0 {
		return nil, &schema.Fault{Wrong: "doesn't name a chat", Remedy: "remove it if the bot should listen in every chat that it's in; otherwise " + d.Example()}
	}
	seen := map[string]bool{}
	return schema.Each(items, func(item any) (Chat, *schema.Fault) {
		chat, f := decodeChat(d, item)
		if f == nil && seen[chat.Chat] {
			f = &schema.Fault{Wrong: fmt.Sprintf("it contains %q twice", chat.Chat), Remedy: "remove one of them"}
		}
		seen[chat.Chat] = true
		return chat, f
	})
}

// Show converts a list of groups to JSON types.
func (chatList) Show(v any) any {
	list := []any{}
	for _, c := range v.([]Chat) {
		if c.Mention == "" {
			list = append(list, c.Chat)
			continue
		}
		list = append(list, schema.Table{{Key: "chat", Value: c.Chat}, {Key: "mention", Value: c.Mention}})
	}
	return list
}

// decodeChat decodes a chat's id, or a table that contains the id and settings of a chat.
func decodeChat(d *schema.Decoder, v any) (chat Chat, f *schema.Fault) {
	table, ok := v.(map[string]any)
	if !ok {
		table = map[string]any{"chat": v}
	}
	if f := schema.UnknownKey(table, "a chat", "chat", "mention"); f != nil {
		return chat, f
	}
	without := &schema.Fault{Wrong: "a chat has no id", Remedy: d.Example()}
	id, ok := table["chat"]
	if !ok {
		return chat, without
	}
	if chat.Chat, f = d.ID(id); f != nil {
		return chat, f
	}
	if chat.Chat == "" {
		return chat, without
	}
	if said, ok := table["mention"]; ok {
		if chat.Mention, f = d.Text(said); f != nil {
			return chat, f
		}
		if !slices.Contains(mentionValues(), chat.Mention) {
			return chat, &schema.Fault{Wrong: fmt.Sprintf("unknown value %q", said), Remedy: schema.OneOf(chat.Mention, mentionValues())}
		}
	}
	return chat, nil
}

// checkChats reports entries in a channel's list of groups that are not group ids, or that begin
// with the channel's name.
func checkChats(l *loader, path string, platform Platform) {
	listed, _ := l.Value(path).([]Chat)
	for i, c := range listed {
		if _, chat, ok := strings.Cut(c.Chat, ":"); ok {
			l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q names a channel", c.Chat), fmt.Sprintf("write just the chat: %q", chat))
			continue
		}
		if platform.IsGroupID != nil && !platform.IsGroupID(c.Chat) {
			l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q isn't the id of a group on %s", c.Chat, platform.Title), platform.GroupIDRemedy)
		}
	}
}
