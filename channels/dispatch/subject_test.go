package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

// subjectMessage returns a program's message about a subject.
func subjectMessage(id, chat, subject, text string) bus.Outbound {
	return bus.Outbound{ID: id, To: bus.Address{Channel: "c", Chat: chat}, Text: text, Subject: subject, Origin: "ci", At: time.Now()}
}

// withEditing runs a test with a dispatcher on a platform that can edit messages and send files.
func withEditing(t *testing.T, setup func(*channelstest.EditingChannel), run func(*testing.T, *testStage, *channelstest.EditingChannel)) {
	t.Helper()
	var p *channelstest.EditingChannel
	withDispatcher(t, func(s *testStage, d *dispatch.Dispatcher) {
		p = &channelstest.EditingChannel{MemoryChannel: s.Platform, Caption: 50}
		s.Platform.ChannelLimits.Length = 100
		if setup != nil {
			setup(p)
		}
		d.Channel = p
	}, func(t *testing.T, s *testStage, _ *runningDispatcher) { run(t, s, p) })
}

func wantShown(t *testing.T, p *channelstest.EditingChannel, chat string, want ...string) {
	t.Helper()
	if got := p.Shown(chat); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("chat %s shows %q, want %q", chat, got, want)
	}
}

func TestANewTextReplacesTheEarlierOneAboutItsSubject(t *testing.T) {
	withEditing(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		other := subjectMessage("o", "1", "disk", "another's disk")
		other.Origin = "cd"
		s.publish(t, subjectMessage("a", "1", "disk", "disk is filling"), other, subjectMessage("b", "1", "net", "net is down"), subjectMessage("c", "1", "", "hello"))
		s.publish(t, subjectMessage("d", "2", "disk", "disk elsewhere"), subjectMessage("e", "1", "disk", "disk is full"), subjectMessage("f", "1", "disk", "resolved"))
		synctest.Wait()
		wantShown(t, p, "1", "resolved", "another's disk", "net is down", "hello")
		wantShown(t, p, "2", "disk elsewhere")
		if got := p.Texts("1"); strings.Join(got, "|") != "disk is filling|another's disk|net is down|hello|disk is full|resolved" {
			t.Errorf("arrived %q", got)
		}
		first, last := s.lookup(t, "a"), s.lookup(t, "f")
		if last.State() != channels.Sent || last.Parts[0].Edits == "" || last.Parts[0].PlatformID != first.Parts[0].PlatformID {
			t.Errorf("book: %+v after %+v", last, first)
		}
	})
}

func TestAMessageThatCannotReplaceIsPostedUnderTheEarlierOne(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("Nine words make a sentence that is quite short. ", 3))
	withEditing(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		s.publish(t, subjectMessage("a", "1", "disk", "disk"), subjectMessage("b", "1", "disk", long), subjectMessage("c", "1", "disk", "resolved"))
		synctest.Wait()
		shown := p.Shown("1")
		if len(shown) != 3 || shown[0] != "resolved" || !strings.HasSuffix(shown[1], " under id1") || !strings.HasSuffix(shown[2], " under id1") {
			t.Errorf("shown %q", shown)
		}
	})
}

func TestWithoutEditingANewTextIsPostedUnderTheFirst(t *testing.T) {
	withDispatcher(t, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, subjectMessage("a", "1", "disk", "disk is filling"), subjectMessage("b", "1", "disk", "disk is full"), subjectMessage("c", "1", "disk", "resolved"))
		synctest.Wait()
		sent := s.Platform.Sent()
		if len(sent) != 3 || sent[0].Part.Under != "" || sent[1].Part.Under != sent[0].ID || sent[2].Part.Under != sent[0].ID {
			t.Errorf("sent %+v", sent)
		}
	})
}

func TestAMessageThatCannotBeEditedAnymoreGetsAReply(t *testing.T) {
	gone := &channels.SendError{Fault: channels.Rejected, Code: "too_old"}
	setup := func(p *channelstest.EditingChannel) {
		p.OnEdit = func(id string) error {
			if id == "id1" {
				return gone
			}
			return nil
		}
	}
	withEditing(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		s.publish(t, subjectMessage("a", "1", "disk", "filling"), subjectMessage("b", "1", "disk", "full"), subjectMessage("c", "1", "disk", "resolved"))
		synctest.Wait()
		wantShown(t, p, "1", "filling", "resolved")
		if sent := p.Sent(); sent[1].Part.Under != "id1" || sent[1].Edit || !sent[2].Edit {
			t.Errorf("sent %+v", sent)
		}
		// A message that was deleted can't even get a reply.
		s.Platform.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
			if part.Under != "" || part.Text == "again" && part.Key != "d/0" {
				return false, gone
			}
			return true, nil
		}
		p.OnEdit = func(string) error { return gone }
		s.publish(t, subjectMessage("d", "1", "disk", "again"))
		synctest.Wait()
		wantShown(t, p, "1", "filling", "resolved", "again")
		if send := s.lookup(t, "d"); send.State() != channels.Sent || send.Parts[0].Edits+send.Parts[0].Under != "" {
			t.Errorf("book: %+v", send)
		}
		p.OnEdit = nil
		s.publish(t, subjectMessage("e", "1", "disk", "over"))
		synctest.Wait()
		wantShown(t, p, "1", "filling", "resolved", "over")
	})
}

func TestAnEditWithUnknownOutcomeIsRepeated(t *testing.T) {
	setup := func(p *channelstest.EditingChannel) {
		p.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
			if part.Key == "b/0" && len(p.Texts("1")) < 3 {
				return true, &channels.SendError{Fault: channels.Unknown, Code: "cut_off"}
			}
			return true, nil
		}
	}
	withEditing(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		s.publish(t, subjectMessage("a", "1", "disk", "filling"), subjectMessage("b", "1", "disk", "full"))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantShown(t, p, "1", "full")
		if send := s.lookup(t, "b"); send.State() != channels.Sent || send.Parts[0].Interrupted != 0 || len(p.Sent()) != 4 {
			t.Errorf("book: %+v after %d arrivals", send, len(p.Sent()))
		}
	})
}

func TestPartsOfMessagesWithFiles(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("some words ", 7))                               // fits into a message, but not into a caption
	long := strings.TrimSpace(strings.Repeat("Nine words make a sentence that is short. ", 4)) // needs two messages
	file := &bus.File{Name: "re`port.txt", Data: make([]byte, 12_345)}
	with := func(out bus.Outbound) bus.Outbound {
		out.File = file
		return out
	}
	for name, c := range map[string]struct {
		out  bus.Outbound
		want []string // the text of each part, with + if the part carried the file
	}{
		"caption":                {with(subjectMessage("a", "1", "", "look")), []string{"look+"}},
		"too long for a caption": {with(subjectMessage("a", "1", "", words)), []string{words, "+"}},
		"several messages":       {with(subjectMessage("a", "1", "", long)), []string{"", "", "+"}},
		"no text":                {with(subjectMessage("a", "1", "", "")), []string{"+"}},
		"of a subject":           {with(subjectMessage("a", "1", "disk", "look")), []string{"look", "+"}},
	} {
		t.Run(name, func(t *testing.T) {
			withEditing(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
				s.publish(t, c.out, subjectMessage("after", "1", "", "after"))
				synctest.Wait()
				sent := p.Sent()
				if len(sent) != len(c.want)+1 || sent[len(sent)-1].Part.Text != "after" {
					t.Fatalf("arrived: %+v", sent)
				}
				for i, want := range c.want {
					text, filed := strings.CutSuffix(want, "+")
					if a := sent[i]; filed != (a.File != nil) || text != a.Part.Text && (text != "" || filed) {
						t.Errorf("part %d is %q with file %v, want %q", i, a.Part.Text, a.File != nil, want)
					}
				}
			})
		})
	}
	t.Run("where none can be sent", func(t *testing.T) {
		withDispatcher(t, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
			s.publish(t, with(subjectMessage("a", "1", "", "look")), with(subjectMessage("b", "1", "", "")))
			synctest.Wait()
			line := "(I couldn't attach the file report.txt (12.3 kB) here.)"
			wantTexts(t, s, "1", "look\n\n"+line, line)
		})
	})
	t.Run("rejected", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) {
			p.OnSend = failFirstSends("1", false, nil, &channels.SendError{Fault: channels.Rejected, Code: "too_big"})
		}
		withEditing(t, setup, func(t *testing.T, s *testStage, _ *channelstest.EditingChannel) {
			s.publish(t, with(subjectMessage("a", "1", "", words)))
			synctest.Wait()
			if d, send := s.TopicDepth(t, bus.OutboundTopic("c")), s.lookup(t, "a"); d.Dead != 1 || send.State() != channels.Failed || send.Parts[0].State != channels.Sent {
				t.Errorf("%+v, book: %+v", d, send)
			}
		})
	})
}
