package sessions

import "parley/tools/plainjson"

// decodeUser does what Decode does. A session that is read has many messages, and most have nothing but a name, a
// text and a time.
func decodeUser(e Entry) (User, error) {
	if u, ok := e.encoded.(User); ok {
		return u, nil
	}
	var u User
	if plainjson.ReadStrings(e.Data, func(name, value []byte) bool {
		switch string(name) {
		case "name":
			u.Name = string(value)
		case "text":
			u.Text = string(value)
		case "sent":
			return u.Sent.UnmarshalText(value) == nil
		case "chat":
			u.Chat = string(value)
		case "schedule":
			u.Schedule = string(value)
		default:
			return false
		}
		return true
	}) {
		return u, nil
	}
	return Decode[User](e)
}

// decodeText does what Decode does, for answers of which there are as many.
func decodeText(e Entry) (Text, error) {
	var t Text
	if plainjson.ReadStrings(e.Data, func(name, value []byte) bool {
		t.Text = string(value)
		return string(name) == "text"
	}) {
		return t, nil
	}
	return Decode[Text](e)
}
