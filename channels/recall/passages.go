package recall

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"time"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/web"
	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/search/sight"
	"parley/tools/recall"
)

// passages returns hits in the form that the model reads.
func (f *Finder) passages(ctx context.Context, who sight.Asker, hits []search.Hit) ([]recall.Passage, error) {
	found := make([]recall.Passage, 0, len(hits))
	names := map[string]string{}
	doubtful, err := f.doubtfulEntries(ctx, hits)
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		where, ok := names[h.Session]
		if !ok {
			if where, err = f.nameOf(ctx, h.Session, h.Session == who.Session); err != nil {
				return nil, err
			}
			names[h.Session] = where
		}
		found = append(found, recall.Passage{
			Text: h.Text, Who: speakerOf(h), When: h.At.UTC().Format(time.RFC3339), Where: where, Link: cmp.Or(h.Link, f.linkTo(h)), Origin: originOf(h), Untrusted: isMarked(who, h, doubtful),
		})
	}
	return found, nil
}

// originOf returns where a hit comes from.
func originOf(h search.Hit) string {
	if h.Episode {
		return recall.Deeds
	}
	switch h.Kind {
	case sessions.KindText:
		return recall.Reply
	case sessions.KindSummary:
		return recall.Summary
	case sessions.KindToolResult:
		return recall.ToolResult
	case sessions.KindFetched, sessions.KindAttached:
		return recall.Attachment
	}
	return recall.Message
}

// speakerOf returns who said the text of a hit, or which tool returned it; "" if nobody in particular did.
func speakerOf(h search.Hit) string {
	switch {
	case h.Tool != "":
		return h.Tool
	case h.Kind == sessions.KindText, h.Kind == sessions.KindSummary, h.Episode:
		return "you"
	case h.Person != "":
		return bus.Person{ID: h.Person, Name: h.Name}.NameAndID()
	}
	return h.Name
}

// nameOf returns the name of a session's chat as people know it; "" if the session is in no chat.
func (f *Finder) nameOf(ctx context.Context, session string, isHere bool) (name string, err error) {
	key, err := sessions.ParseKey(session)
	if err != nil {
		return "", nil //nolint:nilerr // nobody knows where it is
	}
	switch key.Channel {
	case web.Name:
		name = textPage
	case console.Name:
		name = textTerminal
	default:
		chat, known, err := f.cfg.Book.ChatAt(ctx, bus.Address{Channel: key.Channel, Chat: key.Chat})
		if err != nil {
			return "", err
		}
		switch {
		case !known:
			name = key.Channel
		case chat.Group:
			name = cmp.Or(chat.Name, key.Chat) + textOn + key.Channel
		default:
			name = textPrivate + key.Channel
		}
	}
	if isHere {
		name += textHere
	}
	return name, nil
}

// linkTo returns the web address of a hit's place on the page, for hits without a link to a platform; "" if other
// machines can't reach the page.
func (f *Finder) linkTo(h search.Hit) string {
	if f.cfg.Page == nil {
		return ""
	}
	at := f.cfg.Page()
	if at == nil {
		return ""
	}
	return "https://" + at.Host + "/#/chat/" + url.PathEscape(h.Session) + "/" + strconv.FormatInt(h.N, 10)
}
