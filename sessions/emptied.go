package sessions

// DataAfterDeletion returns what remains of an entry's data when the message with the id messageID is deleted, and
// true. It returns false if the entry contains nothing from that message.
func DataAfterDeletion(e Entry, messageID string) (data any, affected bool) {
	switch e.Kind {
	case KindUser:
		return User{Deleted: true}, e.Cause == messageID
	case KindNotice:
		n, err := Decode[Notice](e)
		text := "Somebody edited an earlier message and has since deleted it."
		switch n.Code {
		case NoticeUnfetched:
			text = "The person who sent a file has deleted it."
		case NoticeEpisode:
			text = textEpisode
		}
		return Notice{Code: n.Code, Text: text, MessageID: n.MessageID}, err == nil && n.MessageID == messageID
	case KindFetched:
		f, err := Decode[Fetched](e)
		return Fetched{Attached: f.Attached, Message: f.Message, Problem: "the person who sent it has deleted it"}, err == nil && f.Message == messageID
	case KindAttached:
		a, err := Decode[Attached](e)
		return Attached{Message: a.Message, Kind: a.Kind, Ref: a.Ref}, err == nil && a.Message == messageID
	}
	return nil, false
}
