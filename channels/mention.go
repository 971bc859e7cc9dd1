package channels

// A Mention says which messages in a group are meant for the bot.
type Mention string

// The mentions. In a person's private chat with the bot, every message is meant for the bot.
const (
	// MentionAlways: only messages that address the bot, by its name or by replying to it.
	MentionAlways Mention = "always"
	// MentionThreads: the same as MentionAlways, and all messages in a thread in which the bot
	// takes part.
	MentionThreads Mention = "threads"
	// MentionNever: all messages of the group, whether or not they mention the bot.
	MentionNever Mention = "never"
	// MentionNowhere: no messages, as if the bot were not there.
	MentionNowhere Mention = "nowhere"
)

// A MentionIn returns which messages in a group are meant for the bot. Adapters are given such a function so that
// they neither pass on the other messages nor look anything up for them. Its answers may change while they run.
type MentionIn func(chat string) Mention

// In returns the Mention of a chat; MentionThreads if m is nil.
func (m MentionIn) In(chat string) Mention {
	if m == nil {
		return MentionThreads
	}
	return m(chat)
}
