package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
	"parley/channels/files"
	"parley/sessions/outgoing"
)

// testFiles stores the files that messages name.
type testFiles struct{ *outgoing.Store }

func (k testFiles) Read(f bus.FileRef) ([]byte, error) {
	content, err := k.Store.Read(outgoing.File{Ref: f.Ref, SHA256: f.SHA256, Size: f.Size})
	if errors.Is(err, outgoing.ErrMissing) {
		return nil, files.ErrMissing
	}
	return content, err
}

func (k testFiles) Refer(session, message string, files []bus.FileRef) error {
	return k.Store.Refer(outgoing.Reference{Ref: files[0].Ref, Session: session, Message: message})
}

func (k testFiles) Release(message string, files []bus.FileRef) error {
	return k.Store.Release(files[0].Ref, message)
}

// addFiles stores files, each named after its content, and returns the message with references to them.
func (s *testStage) addFiles(t *testing.T, out bus.Outbound, contents ...string) bus.Outbound {
	t.Helper()
	for _, content := range contents {
		f, err := s.files.Store.Keep(t.Context(), out.Session, out.ID, strings.NewReader(content), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		out.Files = append(out.Files, bus.FileRef{Name: content + ".txt", Size: f.Size, SHA256: f.SHA256, Ref: f.Ref})
	}
	if err := s.files.Refer(out.Session, out.ID, out.Files); err != nil {
		t.Fatal(err)
	}
	return out
}

// listStoredFiles lists the stored files that are still to be sent.
func (s *testStage) listStoredFiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, outgoing.Folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// acceptFiles makes the stage's platform accept files.
func acceptFiles(s *testStage, d *dispatch.Dispatcher) *channelstest.EditingChannel {
	p := &channelstest.EditingChannel{MemoryChannel: s.Platform, Caption: 50}
	d.Channel = p
	return p
}

func TestFilesFollowTheirTextAndAreReleased(t *testing.T) {
	var p *channelstest.EditingChannel
	withDispatcher(t, func(s *testStage, d *dispatch.Dispatcher) { p = acceptFiles(s, d) }, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, s.addFiles(t, newOutbound("a", "1", "two charts"), "one", "two"), s.addFiles(t, newOutbound("b", "1", ""), "three"), newOutbound("c", "1", "done"))
		synctest.Wait()
		wantShown(t, p, "1", "two charts", " with one.txt", " with two.txt", " with three.txt", "done")
		for _, a := range p.Sent() {
			if a.File != nil && string(a.File.Data)+".txt" != a.File.Name {
				t.Errorf("%s holds %q", a.File.Name, a.File.Data)
			}
			if a.File != nil && a.Part.File != a.File.Name {
				t.Errorf("the part of %s says %q", a.File.Name, a.Part.File)
			}
		}
		if send := s.lookup(t, "a"); send.State() != channels.Sent || len(send.Parts) != 3 || send.Parts[0].File || !send.Parts[1].File || !send.Parts[2].File {
			t.Errorf("book: %+v", send)
		}
		if kept := s.listStoredFiles(t); len(kept) != 0 {
			t.Errorf("kept after they were sent: %v", kept)
		}
	})
}

// A process that was paused while it sent a file records that the file was sent, but does not release it. The
// process that holds the message by now may be about to send the file, and releases it after reading the
// record.
func TestAfterALostLeaseTheFileIsNotReleased(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStageWithMaxHold(t, dir, 10*time.Second)
		defer s.Close()
		d := &dispatch.Dispatcher{Name: "c", Bus: s.Bus, Book: s.Book, Files: s.files, Log: s.Logger()}
		p := acceptFiles(s, d)
		s.Platform.OnSend = func(ctx context.Context, _ bus.Address, _ channels.Part) (bool, error) {
			err := s.Bus.Pause(ctx, bus.OutboundTopic("c"), time.Minute) // keeps other processes from taking over the message for now
			time.Sleep(20 * time.Second)                                 // longer than any lease
			return true, err
		}
		r := startDispatcher(t, d)
		s.publish(t, s.addFiles(t, newOutbound("a", "1", ""), "one"))
		sleep(30 * time.Second)
		if send := s.lookup(t, "a"); send.State() != channels.Sent {
			t.Errorf("book: %+v", send)
		}
		if kept := s.listStoredFiles(t); len(kept) != 1 {
			t.Errorf("kept after the lease was lost: %v", kept)
		}
		sleep(2 * time.Minute)
		wantShown(t, p, "1", " with one.txt")
		if kept := s.listStoredFiles(t); len(kept) != 0 {
			t.Errorf("kept in the end: %v", kept)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

// A file that is missing, or that the platform refuses, holds up neither its text nor the other files. The
// people and the session are told once.
func TestAMessageGoesOnWithoutAFile(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *testStage, bus.Outbound){
		"missing": func(t *testing.T, s *testStage, out bus.Outbound) {
			path := filepath.Join(s.dir, outgoing.Folder, filepath.FromSlash(out.Files[0].Ref), out.Files[0].SHA256)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"refused": func(_ *testing.T, s *testStage, _ bus.Outbound) {
			s.Platform.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
				if part.File == "one.txt" {
					return false, &channels.SendError{Fault: channels.Rejected, Code: "too_large"}
				}
				return true, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p *channelstest.EditingChannel
			withDispatcher(t, func(s *testStage, d *dispatch.Dispatcher) { p = acceptFiles(s, d) }, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				out := s.addFiles(t, newOutbound("a", "1", "two charts"), "one", "two")
				spoil(t, s, out)
				s.publish(t, out, newOutbound("b", "1", "done"))
				synctest.Wait()
				why := map[string]string{"missing": "it's no longer there", "refused": "the platform refused it (too_large)"}[name]
				wantShown(t, p, "1", "two charts", " with two.txt", "done", "(I couldn't send the file one.txt: "+why+".)")
				mail := s.TakeMail(t)
				if len(mail) != 1 || mail[0].Kind != bus.Notice || strings.ReplaceAll(mail[0].Text, "`", "") != "The file one.txt of a message to c:1 was not delivered: "+why+"." {
					t.Errorf("the session was told %+v", mail)
				}
				send := s.lookup(t, "a")
				code := map[string]string{"missing": "file:file_missing", "refused": "file:too_large"}[name]
				if send.State() != channels.Failed || send.Parts[1].State != channels.Failed || send.Parts[1].Code != code || send.Parts[2].State != channels.Sent {
					t.Errorf("book: %+v", send)
				}
				if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 0 || d.Waiting != 0 {
					t.Errorf("left: %+v", d)
				}
				if kept := s.listStoredFiles(t); len(kept) != 0 {
					t.Errorf("kept: %v", kept)
				}
			})
		})
	}
}

// If a chat no longer exists, the message goes to its fallback with its files, which are released once it has
// arrived there.
func TestFilesGoToTheFallback(t *testing.T) {
	var p *channelstest.EditingChannel
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		p = acceptFiles(s, d)
		s.Platform.OnSend = func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
			if to.Chat == "gone" {
				return false, &channels.SendError{Fault: channels.Rejected, Code: "chat_not_found"}
			}
			return true, nil
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		out := newOutbound("a", "gone", "a chart")
		out.Fallback = []bus.Address{{Channel: "c", Chat: "2"}}
		s.publish(t, s.addFiles(t, out, "one"))
		synctest.Wait()
		shown := p.Shown("2")
		if len(shown) != 2 || !strings.Contains(shown[0], "a chart") || shown[1] != " with one.txt" {
			t.Errorf("the fallback shows %q", shown)
		}
		if kept := s.listStoredFiles(t); len(kept) != 0 {
			t.Errorf("kept: %v", kept)
		}
		letters, err := s.Bus.DeadLetters(t.Context(), bus.OutboundTopic("c"), "", 10)
		if err != nil || len(letters) != 1 {
			t.Fatalf("dead letters %+v, %v", letters, err)
		}
		// When the message is replayed, it arrives without the file and says so.
		s.Platform.OnSend = nil
		if _, err := s.Bus.Replay(t.Context(), bus.OutboundTopic("c"), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if shown := p.Shown("gone"); len(shown) != 2 || shown[0] != "a chart" || !strings.Contains(shown[1], "I couldn't send the file") {
			t.Errorf("replayed it shows %q", shown)
		}
	})
}

func TestAChannelWithoutFilesShowsTheirNames(t *testing.T) {
	withDispatcher(t, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		out := s.addFiles(t, newOutbound("a", "1", "a chart"), "one", "two")
		out.Files[1].Path = "charts/two.txt"
		s.publish(t, out)
		synctest.Wait()
		wantTexts(t, s, "1", "a chart\n\n(I couldn't attach the file one.txt (3 bytes) here.)\n\n(The file charts/two.txt (3 bytes) is in the workspace.)")
		if kept := s.listStoredFiles(t); len(kept) != 0 {
			t.Errorf("kept: %v", kept)
		}
	})
}

// If a file can't be read at the moment, the message waits, and nobody is told.
func TestAFileThatCannotBeReadIsTriedAgain(t *testing.T) {
	var p *channelstest.EditingChannel
	withDispatcher(t, func(s *testStage, d *dispatch.Dispatcher) { p = acceptFiles(s, d) }, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		out := s.addFiles(t, newOutbound("a", "1", "a chart"), "one")
		path := filepath.Join(s.dir, outgoing.Folder, filepath.FromSlash(out.Files[0].Ref))
		if err := os.Rename(path, path+"x"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/nowhere/else", path); err != nil { // a link that leads out of the store's folder
			t.Fatal(err)
		}
		s.publish(t, out)
		synctest.Wait()
		wantShown(t, p, "1", "a chart")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"x", path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		wantShown(t, p, "1", "a chart", " with one.txt")
		if mail := s.TakeMail(t); len(mail) != 0 {
			t.Errorf("the session was told %+v", mail)
		}
	})
}

// Wherever a dispatcher is killed, each text and each file arrives once if the platform can be asked.
// Otherwise, it arrives again only if the book has recorded that. No file stays in the store.
func TestKillPointsOfFiles(t *testing.T) {
	var points []string
	for _, name := range []string{"send:begun", "send:held", "send:sent", "send:marked"} {
		for n := range 4 {
			points = append(points, fmt.Sprint(name, " ", n+1))
		}
	}
	for _, at := range append(points, "send:leftout 1", "send:released 1", "send:released 2", "send:settled 1") {
		t.Run(at, func(t *testing.T) { killFilesAndResume(t, at) })
	}
}

func killFilesAndResume(t *testing.T, at string) {
	t.Parallel()
	dir := t.TempDir()
	s := newStage(t, dir, bus.Caps{})
	without := s.addFiles(t, newOutbound("b", "1", "b"), "gone")
	if err := os.RemoveAll(filepath.Join(dir, outgoing.Folder, filepath.FromSlash(without.Files[0].Ref))); err != nil {
		t.Fatal(err)
	}
	s.publish(t, s.addFiles(t, newOutbound("a", "1", "a"), "one", "two"), without, s.addFiles(t, newOutbound("c", "1", ""), "three"), newOutbound("d", "1", "d"))
	s.Close()
	killChild(t, envKillDir+"="+dir, envKillAt+"="+at, envKillSubject+"=1")

	s = newStage(t, dir, bus.Caps{})
	defer s.Close()
	platform := subjectFilePlatform{filePlatform{filepath.Join(dir, "sent")}}
	dispatchUntilEmpty(t, s, platform, nil)
	got, again := []string{}, 0
	for _, line := range platform.readArrived(t)["1"] {
		if slices.Contains(got, line) {
			again++
			continue
		}
		got = append(got, line)
	}
	if want := "a/0|a/1 one.txt|a/2 two.txt|b/0|c/0 three.txt|d/0|b#file/1/0"; strings.Join(got, "|") != want {
		t.Errorf("arrived %q, want %q", strings.Join(got, "|"), want)
	}
	noted := 0
	for _, id := range []string{"a", "b", "c", "d", "b#file/1"} {
		for _, p := range s.lookup(t, id).Parts {
			noted += p.Interrupted
			if p.State != channels.Sent && p.Code != "file:file_missing" {
				t.Errorf("book: %s: %+v", id, p)
			}
		}
	}
	if again > noted || again > 1 {
		t.Errorf("%d parts arrived again and %d are noted", again, noted)
	}
	if mail := s.TakeMail(t); len(mail) != 1 || !strings.Contains(mail[0].Text, "gone.txt") {
		t.Errorf("the session was told %+v", mail)
	}
	if kept := s.listStoredFiles(t); len(kept) != 0 {
		t.Errorf("kept: %v", kept)
	}
}

// A text that is too long for a chat is sent as a file, with its beginning in the chat. It is sent as messages
// if the platform accepts no files, or if the text is not from a session.
func TestALongTextIsSentAsAFile(t *testing.T) {
	var whole strings.Builder
	for n := range 100 {
		fmt.Fprintf(&whole, "Line %d of many that are said.\n\n", n)
	}
	text := strings.TrimSpace(whole.String())
	for name, c := range map[string]struct {
		refused, may, told bool
		wantFile           bool
	}{
		"taken":           {may: true, told: true, wantFile: true},
		"refused":         {may: true, told: true, refused: true},
		"an older serves": {told: true},
		"of a program":    {may: true},
	} {
		t.Run(name, func(t *testing.T) {
			var p *channelstest.EditingChannel
			setup := func(s *testStage, d *dispatch.Dispatcher) {
				p = acceptFiles(s, d)
				s.Platform.ChannelLimits.Length = 100
				d.MayShorten = func(context.Context) bool { return c.may }
				s.Platform.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
					if part.File == "message.md" && c.refused {
						return false, &channels.SendError{Fault: channels.Rejected, Code: "no_files"}
					}
					return true, nil
				}
			}
			withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				out := newOutbound("a", "1", text)
				if !c.told {
					out.Session, out.Turn = "", ""
				}
				s.publish(t, out)
				synctest.Wait()
				sent := p.Sent()
				said := strings.Join(s.Platform.Texts("1"), "\n\n")
				if c.wantFile {
					last := sent[len(sent)-1]
					if len(sent) != 4 || last.File == nil || last.File.Name != "message.md" || string(last.File.Data) != text {
						t.Fatalf("sent %d parts, the last is %+v", len(sent), last)
					}
					if !strings.HasPrefix(said, "Line 0 of many") || !strings.Contains(sent[2].Part.Text, "There's more") {
						t.Errorf("the chat shows %q", said)
					}
					return
				}
				if c.refused {
					if !strings.Contains(said, "There's more") || s.lookup(t, "a").Parts[3].Code != "file:no_files" {
						t.Errorf("book: %+v", s.lookup(t, "a"))
					}
					said = said[strings.LastIndex(said, "Line 0 of many"):]
				}
				if said != text {
					t.Errorf("the chat shows %q", said)
				}
			})
		})
	}
}
