package sessions_test

import (
	"testing"

	"parley/sessions"
)

// Only entries that mark the memory are hidden from people.
func TestMarksMemory(t *testing.T) {
	for code, want := range map[string]bool{sessions.NoticeMemory: true, "operator": false, "": false} {
		e, err := sessions.NewEntry("t", sessions.KindNotice, sessions.Notice{Code: code, Text: "said"})
		if err != nil {
			t.Fatal(err)
		}
		if e.MarksMemory() != want {
			t.Errorf("a notice with the code %q marks memory: %t", code, !want)
		}
	}
	said, err := sessions.NewEntry("t", sessions.KindText, sessions.Text{Text: sessions.NoticeMemory})
	if err != nil || said.MarksMemory() {
		t.Errorf("a text marks memory, %v", err)
	}
}
