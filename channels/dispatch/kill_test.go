package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/dispatch"
)

// A filePlatform is a platform that outlives its process: it writes each message as a line to a file.
type filePlatform struct{ path string }

func (p filePlatform) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

func (p filePlatform) Send(_ context.Context, to bus.Address, part channels.Part) (string, error) {
	f, err := os.OpenFile(p.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintln(f, to.Chat, part.Key)
	return part.Key, closeAndJoin(err, f)
}

func closeAndJoin(err error, f *os.File) error {
	if closed := f.Close(); err == nil {
		return closed
	}
	return err
}

func (filePlatform) Limits() channels.Limits { return channels.Limits{Length: 64} }

// readArrived returns the keys of the parts that arrived in each chat, in order of arrival.
func (p filePlatform) readArrived(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(p.path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		chat, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[chat] = append(all[chat], key)
	}
	return all
}

// A findingFilePlatform can also find parts that were sent.
type findingFilePlatform struct {
	filePlatform
	t *testing.T
}

func (p findingFilePlatform) FindSent(_ context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	for _, key := range p.readArrived(p.t)[to.Chat] {
		if key == part.Key {
			return key, true, nil
		}
	}
	return "", false, nil
}

const (
	envKillDir = "CHANNELS_KILL_DIR"
	envKillAt  = "CHANNELS_KILL_AT" // POINT N: kill the process when it reaches the point for the Nth time
)

// dispatchUntilEmpty dispatches until no messages wait.
func dispatchUntilEmpty(t *testing.T, s *testStage, ch channels.Channel, point func(string)) {
	t.Helper()
	settled := make(chan struct{}, 1)
	r := startDispatcher(t, &dispatch.Dispatcher{
		Name: "c", Channel: ch, Bus: s.Bus, Book: s.Book, Subjects: s.Book, Drafts: s.Book, Files: s.files, Log: s.Logger(), SessionAt: sessionAt,
		// One address at a time, so that a kill interrupts only one send.
		Policy: dispatch.Policy{MaxAddresses: 1},
		Point: func(name string) {
			if point != nil {
				point(name)
			}
			if name == "send:settled" {
				select {
				case settled <- struct{}{}:
				default:
				}
			}
		},
	})
	for d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting+d.Leased > 0; d = s.TopicDepth(t, bus.OutboundTopic("c")) {
		<-settled
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// TestKilledChild is not a test: it runs in the child process that TestKillPoints kills.
func TestKilledChild(t *testing.T) {
	dir, at := os.Getenv(envKillDir), os.Getenv(envKillAt)
	if dir == "" {
		t.Skip("run by TestKillPoints")
	}
	var point string
	var n int64
	if _, err := fmt.Sscan(at, &point, &n); err != nil {
		t.Fatal(err)
	}
	var ch channels.Channel = filePlatform{filepath.Join(dir, "sent")}
	if os.Getenv(envKillSubject) != "" {
		ch = subjectFilePlatform{filePlatform{filepath.Join(dir, "sent")}}
	}
	var passed atomic.Int64
	die := func(name string) {
		if name == point && passed.Add(1) == n {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			select {} // until the signal arrives
		}
	}
	s := newStage(t, dir, bus.Caps{})
	if where := os.Getenv(envKillStreams); where != "" {
		url, thread, _ := strings.Cut(where, " ")
		draftUntilKilled(t, s, newSlackChannel(t, url), paneSpeaker(s, thread), die)
		return
	}
	if os.Getenv(envKillDrafts) != "" {
		draftUntilKilled(t, s, draftFilePlatform{subjectFilePlatform{filePlatform{filepath.Join(dir, "sent")}}}, s.Speaker("t", "1"), die)
		return
	}
	dispatchUntilEmpty(t, s, ch, die)
}

func TestKillPoints(t *testing.T) {
	for _, point := range []struct {
		name     string
		arrivals int // how many times a part arrives that arrives more than once
		noted    int // the number of interrupted sends in the book
	}{
		{"send:begun", 0, 1}, {"send:held", 0, 1}, {"send:sent", 1, 1}, {"send:marked", 0, 0}, {"send:settled", 0, 0},
	} {
		for _, n := range []int{1, 2} {
			for _, tracing := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d tracing %v", point.name, n, tracing), func(t *testing.T) {
					arrivals, noted := point.arrivals, point.noted
					if tracing {
						arrivals, noted = 0, 0
					}
					killAndResume(t, fmt.Sprint(point.name, " ", n), tracing, arrivals, noted)
				})
			}
		}
	}
}

// killChild runs a child process until it kills itself.
func killChild(t *testing.T, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledChild$")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err == nil || !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("child was not killed at %v: %v\n%s", env, err, out)
	}
}

func killAndResume(t *testing.T, at string, tracing bool, wantArrivals, wantNoted int) {
	t.Parallel()
	dir := t.TempDir()
	s := newStage(t, dir, bus.Caps{})
	text := strings.Repeat("Some words that take room. ", 5)
	for i := range 3 {
		s.publish(t, newOutbound(fmt.Sprint("a", i), "1", text), newOutbound(fmt.Sprint("b", i), "2", text))
	}
	s.Close()
	killChild(t, envKillDir+"="+dir, envKillAt+"="+at)
	s = newStage(t, dir, bus.Caps{})
	defer s.Close()
	file := filePlatform{filepath.Join(dir, "sent")}
	var ch channels.Channel = file
	if tracing {
		ch = findingFilePlatform{file, t}
	}
	dispatchUntilEmpty(t, s, ch, nil)

	again, noted := 0, 0
	arrived := file.readArrived(t)
	for chat, prefix := range map[string]string{"1": "a", "2": "b"} {
		var want, got []string
		for i := range 3 {
			send := s.lookup(t, fmt.Sprint(prefix, i))
			if send.State() != channels.Sent || len(send.Parts) < 2 {
				t.Errorf("book: %+v", send)
			}
			for n, p := range send.Parts {
				want = append(want, fmt.Sprintf("%s/%d", send.ID, n))
				noted += p.Interrupted
			}
		}
		for _, key := range arrived[chat] {
			if len(got) > 0 && got[len(got)-1] == key {
				again++
				continue
			}
			got = append(got, key)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("chat %s got %v, want %v", chat, got, want)
		}
	}
	if again != wantArrivals || noted != wantNoted {
		t.Errorf("%d parts arrived again and %d sends are noted as interrupted, want %d and %d", again, noted, wantArrivals, wantNoted)
	}
}
