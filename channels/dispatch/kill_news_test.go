package dispatch_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
)

// envKillSubject is set in the environment of a child process that sends messages about a subject.
const envKillSubject = "CHANNELS_KILL_NEWS"

// A subjectFilePlatform is a filePlatform that can edit messages and send files, and on which one chat no
// longer exists.
type subjectFilePlatform struct{ filePlatform }

func (p subjectFilePlatform) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	if to.Chat == "gone" {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "chat_not_found"}
	}
	if to.Chat == "picky" && !strings.Contains(part.Key, "#excuse") {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "too_long"}
	}
	return p.filePlatform.Send(ctx, to, part)
}

func (p subjectFilePlatform) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	part.Key += " replaces " + id
	_, err := p.Send(ctx, to, part)
	return err
}

func (p subjectFilePlatform) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	_, err := p.Send(ctx, to, channels.Part{Key: part.Key + " " + file.Name})
	return part.Key, err
}

func TestKillPointsOfSubjects(t *testing.T) {
	for _, at := range []string{
		"send:begun 1", "send:begun 2", "send:begun 3", "send:begun 4", "send:held 2", "send:held 3", "send:sent 1", "send:sent 2", "send:sent 3", "send:sent 4",
		"send:marked 1", "send:marked 2", "send:marked 3", "send:tied 1", "send:tied 2", "send:failed 1", "send:elsewhere 1", "send:settled 1", "send:settled 2",
	} {
		t.Run(at, func(t *testing.T) { killSubjectAndResume(t, at) })
	}
}

func killSubjectAndResume(t *testing.T, at string) {
	t.Parallel()
	dir := t.TempDir()
	s := newStage(t, dir, bus.Caps{})
	file := subjectMessage("c", "1", "", "look")
	file.File = &bus.File{Name: "report", Data: []byte("x")}
	lost := subjectMessage("d", "gone", "", "lost")
	lost.Fallback = []bus.Address{fallbackAddress}
	s.publish(t, subjectMessage("a", "1", "disk", "full"), subjectMessage("b", "1", "disk", "resolved"), file, lost)
	s.Close()
	killChild(t, envKillDir+"="+dir, envKillAt+"="+at, envKillSubject+"=1")

	s = newStage(t, dir, bus.Caps{})
	defer s.Close()
	platform := subjectFilePlatform{filePlatform{filepath.Join(dir, "sent")}}
	dispatchUntilEmpty(t, s, platform, nil)
	var got []string
	again := map[string]int{}
	for _, line := range platform.readArrived(t)["1"] {
		if len(got) > 0 && got[len(got)-1] == line {
			again[line[:1]]++
			continue
		}
		got = append(got, line)
	}
	if want := "a/0|b/0 replaces a/0|c/0 report"; strings.Join(got, "|") != want {
		t.Errorf("arrived %q, want %q", got, want)
	}
	for _, id := range []string{"a", "b", "c"} {
		p := s.lookup(t, id).Parts[0]
		if p.State != channels.Sent || p.Interrupted < again[id] && p.Edits == "" || id == "b" && p.PlatformID != "a/0" {
			t.Errorf("%s arrived again %d times and is noted as %+v", id, again[id], p)
		}
	}
	if fallen := s.takeFallbacks(t); len(fallen) != 1 || fallen[0].ID != "d~fallback/0" {
		t.Errorf("at the fallback: %+v", fallen)
	}
	if d, send := s.TopicDepth(t, bus.OutboundTopic("c")), s.lookup(t, "d"); d.Dead != 1 || send.State() != channels.Failed {
		t.Errorf("%+v, book: %s", d, fmt.Sprint(send))
	}
}
