package channels

// A Mention says when what people say in a group is meant for the bot.
type Mention string

// The mentions. In a chat of one person with the bot everything is meant for it.
const (
	// MentionAlways: it has to be addressed each time, by name or by a reply to it.
	MentionAlways Mention = "always"
	// MentionThreads: that, and what is said in a thread that it takes part in.
	MentionThreads Mention = "threads"
	// MentionNever: everything that is said there.
	MentionNever Mention = "never"
	// MentionNowhere: nothing, as if it were not there.
	MentionNowhere Mention = "nowhere"
)

// MentionIn tells what holds in a group. Adapters are given one, so that they hand on
// nothing, and look nothing up, about what is not meant for the bot. It may change
// while they run.
type MentionIn func(chat string) Mention

// In is what holds in that chat; MentionThreads where nobody has said.
func (m MentionIn) In(chat string) Mention {
	if m == nil {
		return MentionThreads
	}
	return m(chat)
}
