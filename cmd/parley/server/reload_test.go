package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"parley/cmd/parley/config"
)

// A follower is a part that accepts new settings, or refuses them.
type follower struct {
	err   error
	taken int
}

func (f *follower) Reload(*config.Config) (func(), error) { return func() { f.taken++ }, f.err }

// If one part can't accept the new settings, no part uses them, and the log names the part.
func TestAReloadNamesThePartThatCannotTakeIt(t *testing.T) {
	s := newTestServer(t, "[agents.main]\n")
	var log bytes.Buffer
	on := s.foundation
	on.log = slog.New(slog.NewTextHandler(&log, nil))
	good, bad := new(follower), &follower{err: errors.New("this is no list")}
	r := &reloading{foundation: on, read: func() (*config.Config, error) { return on.settings.Load(), nil }}
	r.meet([]part{{name: "gateways", is: good}, {name: "early", is: running(nil)}, {name: "skills", is: bad}})

	r.reload()
	if good.taken != 0 || !strings.Contains(log.String(), "part=skills") || !strings.Contains(log.String(), "this is no list") {
		t.Errorf("%d parts have taken what one cannot; the log says %q", good.taken, &log)
	}
	bad.err = nil
	r.reload()
	if good.taken != 1 || bad.taken != 1 {
		t.Errorf("what all can take is taken %d and %d times", good.taken, bad.taken)
	}
}
