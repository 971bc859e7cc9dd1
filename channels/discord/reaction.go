package discord

// A reaction is an emoji that a person has added to a message, or has removed from it.
type reaction struct {
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	Message string `json:"message_id"`
	Guild   string `json:"guild_id"`
	Author  string `json:"message_author_id"` // who wrote the message; Discord says so only when the reaction is added
	Member  *struct {
		member
		User *user `json:"user"`
	} `json:"member"`
	Emoji struct {
		ID   string `json:"id"` // the id of a server's own emoji; "" for all others
		Name string `json:"name"`
	} `json:"emoji"`
}

// mayConcernBot reports whether a person (not the bot me) has reacted to a message that may be the bot's. When a
// reaction is removed, Discord does not say who wrote the message.
func (r *reaction) mayConcernBot(me string, removed bool) bool {
	bot := r.User == me || r.Member != nil && r.Member.User != nil && r.Member.User.Bot
	return !bot && (removed || r.Author == me) && isID(r.User) && isID(r.Channel) && isID(r.Message) && r.Emoji.Name != ""
}
