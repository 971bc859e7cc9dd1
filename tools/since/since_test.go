package since_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/since"
)

func TestSince(t *testing.T) {
	now := time.Date(2026, 5, 6, 15, 30, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"": "0001-01-01T00:00:00Z", "today": "2026-05-06T00:00:00Z", "Yesterday ": "2026-05-05T00:00:00Z",
		"Monday": "2026-05-04T00:00:00Z", "wednesday": "2026-05-06T00:00:00Z", "last Thursday": "2026-04-30T00:00:00Z",
		"2026-05-01": "2026-05-01T00:00:00Z", "2026-05-01T09:00:00Z": "2026-05-01T09:00:00Z", "2026-05-01T09:00:00+02:00": "2026-05-01T07:00:00Z",
		"2026-05-01 09:00": "2026-05-01T09:00:00Z", "24h": "2026-05-05T15:30:00Z", "7d": "2026-04-29T15:30:00Z",
		"someday": "", "-1h": "", "0d": "", "d": "", "2026-13-01": "",
	} {
		got, err := since.Parse("until", text, now)
		if want != "" && (err != nil || got.UTC().Format(time.RFC3339) != want) {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
		if wrong, ok := errors.AsType[*tools.Error](err); want == "" && (!ok || wrong.Code != tools.InvalidArgs || !strings.HasPrefix(wrong.Message, `until "`+text+`" isn't a time`)) {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
}
