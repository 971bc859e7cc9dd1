package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

// fileAndDependent returns a message with a file, and a message that has another text if the file does not
// arrive.
func fileAndDependent() (ahead, request bus.Outbound) {
	ahead = bus.Outbound{ID: "q#call", To: bus.Address{Channel: "c", Chat: "1"}, Session: "main:c:1", Ahead: true, At: time.Now(), File: &bus.File{Name: "call.txt", Data: []byte("all of it")}}
	request = bus.Outbound{ID: "q#ask", To: ahead.To, Session: ahead.Session, Subject: "q", Text: "may I?", Buttons: []bus.Button{{Label: "Yes", Says: "/yes"}}, At: time.Now()}
	request.Otherwise = &bus.Otherwise{Unsent: ahead.ID, Text: "not here", Buttons: []bus.Button{{Label: "No", Says: "/no"}}}
	return ahead, request
}

// A message that depends on a file is sent only after the file was sent or given up, with the text that is true
// then.
func TestAMessageGetsItsAlternativeTextWithoutItsFile(t *testing.T) {
	isFile := func(part channels.Part) bool { return part.File != "" }
	tests := map[string]struct {
		onSend  func(ctx context.Context, part channels.Part) (bool, error)
		noFiles bool
		policy  dispatch.Policy
		alone   bool // the message with the file was never published
		after   time.Duration
		want    string
	}{
		"arrived": {want: "may I?"},
		"arrived at last": {after: time.Minute, want: "may I?", onSend: func() func(context.Context, channels.Part) (bool, error) {
			tries := 0
			return func(_ context.Context, part channels.Part) (bool, error) {
				if tries++; isFile(part) && tries < 4 {
					return false, &channels.SendError{Fault: channels.Retry, Code: "busy"}
				}
				return true, nil
			}
		}()},
		"refused": {want: "not here", onSend: func(_ context.Context, part channels.Part) (bool, error) {
			if isFile(part) {
				return false, &channels.SendError{Fault: channels.Rejected, Code: "too_large"}
			}
			return true, nil
		}},
		"never accepted": {after: time.Hour, want: "not here", onSend: func(_ context.Context, part channels.Part) (bool, error) {
			if isFile(part) {
				return false, &channels.SendError{Fault: channels.Retry, Code: "busy"}
			}
			return true, nil
		}},
		"nobody knows": {policy: dispatch.Policy{OnUnknown: "drop"}, after: time.Hour, want: "not here", onSend: func(_ context.Context, part channels.Part) (bool, error) {
			if isFile(part) {
				return false, errors.New("cut off")
			}
			return true, nil
		}},
		"never published":          {alone: true, want: "not here"},
		"a platform without files": {noFiles: true, want: "not here"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			withDispatcher(t, func(s *testStage, d *dispatch.Dispatcher) {
				s.Platform.ChannelLimits.Length = 100
				d.Channel, d.Policy = channelstest.ButtonChannel{EditingChannel: &channelstest.EditingChannel{MemoryChannel: s.Platform, Caption: 50}}, test.policy
				if test.noFiles {
					d.Channel = s.Platform
				}
				if test.onSend != nil {
					s.Platform.OnSend = func(ctx context.Context, _ bus.Address, part channels.Part) (bool, error) {
						return test.onSend(ctx, part)
					}
				}
			}, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				ahead, request := fileAndDependent()
				if !test.alone {
					s.publish(t, ahead)
				}
				s.publish(t, request)
				sleep(test.after)
				synctest.Wait()
				var said []channelstest.Arrival
				for _, a := range s.Platform.Sent() {
					if !isFile(a.Part) {
						said = append(said, a)
					}
				}
				if len(said) != 1 || said[0].Part.Text != test.want {
					t.Fatalf("said %+v, want %q", said, test.want)
				}
				label := map[string]string{"may I?": "Yes", "not here": "No"}[test.want]
				if !test.noFiles && (len(said[0].Part.Buttons) != 1 || said[0].Part.Buttons[0].Label != label) {
					t.Errorf("the buttons are %+v", said[0].Part.Buttons)
				}
				if dead := s.TopicDepth(t, bus.OutboundTopic("c")).Dead; dead != 0 {
					t.Errorf("%d dead letters", dead)
				}
				if notices := s.TopicDepth(t, bus.InboundTopic).Waiting; notices != 0 {
					t.Errorf("the session was told %d times", notices)
				}
			})
		})
	}
}

// A double is edited once, and only if it is not the message that shows the subject.
func TestADoublePostedMessageIsEdited(t *testing.T) {
	withButtons(t, nil, func(t *testing.T, s *testStage) {
		s.publish(t, questionWithButton("a", "ask", "may I?"))
		synctest.Wait()
		shown := s.Platform.Sent()[0].ID
		double := subjectMessage("b", "1", "ask", "approved")
		double.Double = "stray"
		same := subjectMessage("c", "1", "ask", "approved")
		same.Double = shown
		s.publish(t, double, same, subjectMessage("d", "1", "", "bye"))
		synctest.Wait()
		sent := s.Platform.Sent()
		if len(sent) != 3 || !sent[1].Edit || sent[1].ID != "stray" || sent[1].Part.Text != "approved" || len(sent[1].Part.Buttons) != 0 || sent[2].Part.Text != "bye" {
			t.Errorf("sent %+v", sent)
		}
	})
}
