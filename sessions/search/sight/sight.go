// Package sight decides which conversations an agent may search on somebody's behalf.
//
// The rules know no platform and no database: what they need to know about chats comes from Facts. A chat
// about which something is unknown counts as hidden.
package sight

import (
	"context"
	"slices"
	"strings"

	"parley/sessions"
)

// MaxAskedGroups is the most chats about which platforms are asked for one search. Any further candidates are
// hidden.
const MaxAskedGroups = 20

// A Place is a chat of a channel.
type Place struct{ Channel, Chat string }

// A Chat is what is known about a place.
type Chat struct {
	Known bool // whether people talk to the bot there at all
	Group bool // whether others read along
	// Person is the person, as CHANNEL:USER, whose private chat with the bot it is; "" in a group, or if
	// that was never recorded.
	Person string
}

// Facts provide what is known about chats.
type Facts interface {
	// Chat returns what is known about a place; the zero Chat if nothing is known.
	Chat(ctx context.Context, at Place) (Chat, error)
	// IsIn reports whether the platform currently lists a person as a member of a group. An error says
	// that this is unknown at the moment.
	IsIn(ctx context.Context, at Place, person string) (bool, error)
	// IsClosed reports whether a thread of a group can be read by only some of the group's members.
	IsClosed(ctx context.Context, at Place, thread string) (bool, error)
}

// An Asker is the person who wants to find something, and the place where they ask.
type Asker struct {
	// Session is the key of the conversation in which they ask. Its agent searches.
	Session string
	// Private says that nobody else reads that conversation.
	Private bool
	// Accounts are the accounts of the asker, as CHANNEL:USER.
	Accounts []string
}

// A View lists what an asker may see.
type View struct {
	Sessions []string // the keys of the sessions, in the order of the candidates
	// Unknown says that for some of the candidates this could not be found out at the moment.
	Unknown bool
}

// ViewOf returns in which of the candidate sessions an asker may find what was said. The rules are:
//
//   - The conversation itself is seen.
//   - Sessions of another agent are hidden, and so are those that are nobody's chat: a sub-agent's, a
//     webhook's, the heartbeat's. Where the asker talks in one of these, nothing else is seen.
//   - A session that one person has alone in a group is seen by that person.
//   - A private chat is seen by the one whose chat it is, and only from a private chat.
//   - A group is seen by those whom the platform names as its members now, and in the group itself.
//   - A thread that only some of a group's members read is seen in the thread itself.
//
// The error is that of ctx.
func ViewOf(ctx context.Context, facts Facts, who Asker, candidates []string) (View, error) {
	j := viewJudge{facts: facts, who: who, chats: map[Place]fact[Chat]{}, members: map[Place]fact[bool]{}}
	var seen View
	for _, key := range candidates {
		if slices.Contains(seen.Sessions, key) {
			continue
		}
		f := j.sees(ctx, key)
		if err := ctx.Err(); err != nil {
			return View{}, err
		}
		if f.value && !f.unknown {
			seen.Sessions = append(seen.Sessions, key)
		}
		seen.Unknown = seen.Unknown || f.unknown
	}
	return seen, nil
}

// A fact is an answer from Facts, which may be unknown.
type fact[T any] struct {
	value   T
	unknown bool
}

func factOf[T any](value T, err error) fact[T] { return fact[T]{value, err != nil} }

// A viewJudge decides on the candidates of one search.
type viewJudge struct {
	facts   Facts
	who     Asker
	chats   map[Place]fact[Chat]
	members map[Place]fact[bool] // whether the asker is a member
	asked   int                  // how many groups platforms were asked about
}

// sees reports whether the asker may see a session.
func (j *viewJudge) sees(ctx context.Context, key string) (seen fact[bool]) {
	if key == j.who.Session {
		return fact[bool]{value: true}
	}
	from, err := sessions.ParseKey(j.who.Session)
	if err != nil {
		return seen
	}
	to, err := sessions.ParseKey(key)
	if err != nil || to.Agent != from.Agent || to.User != "" && !j.isAsker(to.Channel+":"+to.User) {
		return seen
	}
	here, there := Place{from.Channel, from.Chat}, Place{to.Channel, to.Chat}
	around, chat := j.chat(ctx, here), j.chat(ctx, there)
	switch {
	case around.unknown || chat.unknown:
		seen.unknown = true
	case !around.value.Known || !chat.value.Known: // at least one of them is no known chat
	case here != there && !j.isAlone(around.value): // others read along where the asker asks
	case !chat.value.Group:
		seen.value = j.isAlone(around.value) && (here == there || j.isAsker(chat.value.Person))
	default:
		seen = j.seesGroup(ctx, here, there, to.Thread)
	}
	return seen
}

// seesGroup reports whether the asker may see the sessions of a group, or of a thread in it.
func (j *viewJudge) seesGroup(ctx context.Context, here, there Place, thread string) (seen fact[bool]) {
	if here != there {
		if seen = j.isMember(ctx, there); !seen.value || seen.unknown {
			return seen
		}
	}
	if thread == "" {
		return fact[bool]{value: true}
	}
	closed, err := j.facts.IsClosed(ctx, there, thread)
	return factOf(!closed, err)
}

// isAlone reports whether the asker is alone with the bot where they ask.
func (j *viewJudge) isAlone(here Chat) bool {
	return j.who.Private && !here.Group && (here.Person == "" || j.isAsker(here.Person))
}

// isAsker reports whether an account is the asker's.
func (j *viewJudge) isAsker(account string) bool {
	return account != "" && slices.Contains(j.who.Accounts, account)
}

// chat looks up what is known about a place, once.
func (j *viewJudge) chat(ctx context.Context, at Place) fact[Chat] {
	known, ok := j.chats[at]
	if !ok {
		known = factOf(j.facts.Chat(ctx, at))
		j.chats[at] = known
	}
	return known
}

// isMember returns whether one of the asker's accounts is a member of a group. It asks the platform only the first
// time, and about at most MaxAskedGroups groups; it is unknown about the others, and if the platform can't tell.
func (j *viewJudge) isMember(ctx context.Context, at Place) fact[bool] {
	in, ok := j.members[at]
	if ok {
		return in
	}
	var accounts []string
	for _, account := range j.who.Accounts {
		if strings.HasPrefix(account, at.Channel+":") {
			accounts = append(accounts, account)
		}
	}
	if len(accounts) > 0 {
		j.asked++
	}
	for _, account := range accounts {
		one := fact[bool]{unknown: true}
		if j.asked <= MaxAskedGroups {
			one = factOf(j.facts.IsIn(ctx, at, account))
		}
		if one.value && !one.unknown {
			in = one
			break
		}
		in.unknown = in.unknown || one.unknown
	}
	j.members[at] = in
	return in
}
