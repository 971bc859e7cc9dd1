package telegram_test

import (
	"errors"
	"fmt"
	"testing"

	"parley/channels"
)

func TestMembersOfAGroup(t *testing.T) {
	r := newRig(t)
	s := r.server
	s.AddMembers(-100, "creator", 1)
	s.AddMembers(-100, "administrator", 2)
	s.AddMembers(-100, "member", 3, 4)
	s.AddMembers(-100, "restricted", 5)
	s.AddMembers(-100, "kicked", 6)
	s.RemoveMember(-100, 4)
	for user, want := range map[int]bool{1: true, 2: true, 3: true, 4: false, 5: true, 6: false, 7: false} {
		if in, err := r.IsIn(t.Context(), "-100", fmt.Sprint("tg:", user)); err != nil || in != want {
			t.Errorf("%d is in it: %v, %v", user, in, err)
		}
	}
	if in, err := r.IsIn(t.Context(), "-200", "tg:1"); in || !isSendError(err) {
		t.Errorf("of a group that is not there: %v, %v", in, err)
	}
	if in, err := r.IsIn(t.Context(), "-100", "tg:somebody"); in || !isSendError(err) {
		t.Errorf("of nobody: %v, %v", in, err)
	}
}

func isSendError(err error) bool { _, ok := errors.AsType[*channels.SendError](err); return ok }
