package sessions_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"parley/sessions"
	"parley/tools/plainjson"
)

// FuzzDecodeAny checks that the messages and answers that are read without encoding/json are what that would read,
// and that what it refuses is refused.
func FuzzDecodeAny(f *testing.F) {
	for _, v := range []any{
		sessions.User{Name: "Ann", Text: "what <b>is</b> \"said\"\n& more", Sent: time.Date(2026, 11, 22, 10, 0, 0, 123000, time.UTC)},
		sessions.User{Text: "日本語 🙂", Chat: "ops", Schedule: "s1", Untrusted: true, Quotes: []sessions.Quote{{Text: "x"}}},
		sessions.User{Sent: time.Date(2026, 11, 22, 10, 0, 0, 0, time.FixedZone("", 3600))},
		sessions.Text{Text: "that is done"}, sessions.Text{Text: "x", Provider: json.RawMessage(`{"phase":"final"}`)},
	} {
		raw, err := plainjson.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, raw := range []string{``, `{}`, `null`, `{"Text":"x"}`, `{"text":1}`, `{"text":null}`, `{"text":"a","text":"b"}`, `{"sent":"yesterday"}`, `{"sent":""}`, `{"sent":"2026-11-22T10:00:00,5Z"}`, `{"text":"\u003c"}`, `{"more":"x","text":"y"}`, `{"text":"x"} `, `{"text":"x"`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		user := sessions.Entry{Kind: sessions.KindUser, Data: raw}
		wantUser, wantErr := sessions.Decode[sessions.User](user)
		checkDecoded(t, user, wantUser, wantErr)
		text := sessions.Entry{Kind: sessions.KindText, Data: raw}
		wantText, wantErr := sessions.Decode[sessions.Text](text)
		checkDecoded(t, text, wantText, wantErr)
	})
}

// checkDecoded checks what DecodeAny returns for an entry.
func checkDecoded(t *testing.T, e sessions.Entry, want any, wantErr error) {
	t.Helper()
	got, known, err := sessions.DecodeAny(e)
	if !known || (err != nil) != (wantErr != nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s %q is %+v, %v, want %+v, %v", e.Kind, e.Data, got, err, want, wantErr)
	}
}
