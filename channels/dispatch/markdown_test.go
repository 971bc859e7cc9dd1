package dispatch_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
	"parley/channels/markup"
)

const table = "| a | b |\n| --- | --- |\n| 1 | 2 |"

// withMarkdownPlatform runs a test on a platform that shows some Markdown better than its own markup.
func withMarkdownPlatform(t *testing.T, length int, setup func(*testStage), run func(*testing.T, *testStage, *runningDispatcher)) {
	t.Helper()
	withDispatcher(t, func(s *testStage, d *dispatch.Dispatcher) {
		s.Platform.ChannelLimits = channels.Limits{Dialect: markup.SlackMrkdwn, Length: length, EditBytes: length, Markdown: true}
		d.Channel = channelstest.ButtonChannel{EditingChannel: &channelstest.EditingChannel{MemoryChannel: s.Platform, Caption: 50}}
		if setup != nil {
			setup(s)
		}
	}, run)
}

func TestPartsCarryTheirMarkdown(t *testing.T) {
	withMarkdownPlatform(t, 4000, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, subjectMessage("a", "1", "x", "# One\n\n"+table), subjectMessage("b", "1", "x", "# Two"), newOutbound("c", "1", "plain *text*"))
		synctest.Wait()
		sent := s.Platform.Sent()
		if len(sent) != 3 || sent[0].Part.Markdown != "# One\n\n"+table || !strings.HasPrefix(sent[0].Part.Text, "*One*") {
			t.Fatalf("sent %+v", sent)
		}
		if edit := sent[1]; !edit.Edit || edit.Part.Markdown != "# Two" || edit.Part.Text != "*Two*" {
			t.Errorf("then %+v", edit)
		}
		if plain := sent[2].Part; plain.Markdown != "" {
			t.Errorf("what is no better as Markdown is %+v", plain)
		}
	})
}

func TestEachPartOfASplitMessageHasItsOwnMarkdown(t *testing.T) {
	withMarkdownPlatform(t, 300, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "| name | number |\n| --- | --- |\n"+strings.Repeat("| someone | 1 |\n", 40)))
		synctest.Wait()
		rows := 0
		for _, a := range s.Platform.Sent() {
			rows += strings.Count(a.Part.Markdown, "someone")
			if !strings.HasPrefix(a.Part.Markdown, "| name | number |\n| --- | --- |\n| someone") {
				t.Errorf("a part is %q", a.Part.Markdown)
			}
		}
		if rows != 40 {
			t.Errorf("%d rows", rows)
		}
	})
}

// The book does not store Markdown, so the process that continues a message makes it again.
func TestMarkdownOutlivesTheProcess(t *testing.T) {
	setup := func(s *testStage) {
		s.Platform.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Stop, Code: "401"})
	}
	withMarkdownPlatform(t, 4000, setup, func(t *testing.T, s *testStage, r *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "# One\n\n"+table))
		r.err = <-r.ended
		r.once.Do(r.stop)
		if known := s.lookup(t, "a").Parts[0]; known.State != channels.Queued || !strings.HasPrefix(known.Text, "*One*") {
			t.Errorf("book: %+v", known)
		}
		again := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: s.Platform, Bus: s.Bus, Book: s.Book, Log: s.Logger()})
		time.Sleep(time.Minute)
		synctest.Wait()
		if sent := s.Platform.Sent(); len(sent) != 1 || sent[0].Part.Markdown != "# One\n\n"+table {
			t.Errorf("sent %+v", sent)
		}
		if err := again.end(); err != nil {
			t.Error(err)
		}
	})
}
