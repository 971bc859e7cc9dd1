package channelstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

var errStore = errors.New("the store is away")

// A recordingStore is where a check publishes messages. Like a bus, it drops messages whose ids it already knows.
type recordingStore struct {
	run *channelRun

	mu         sync.Mutex
	seenIDs    map[string]bool
	messages   []bus.Inbound
	publishing map[string]bool // by chat: whether a message of the chat is being published
}

func newRecordingStore(r *channelRun) *recordingStore {
	return &recordingStore{run: r, seenIDs: map[string]bool{}, publishing: map[string]bool{}}
}

// publish stores a message.
func (s *recordingStore) publish(_ context.Context, in bus.Inbound) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.ID == "" {
		s.run.Error("a message has no id")
	}
	if !s.seenIDs[in.ID] {
		s.seenIDs[in.ID] = true
		s.messages = append(s.messages, in)
	}
	return nil
}

// begin records that a message from a chat is being published until end is called, and fails the test if another
// one from that chat is.
func (s *recordingStore) begin(in bus.Inbound) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chat := in.At.Chat
	if s.publishing[chat] {
		s.run.Errorf("two messages of chat %s are published at once", chat)
	}
	s.publishing[chat] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.publishing[chat] = false
	}
}

func (s *recordingStore) all() []bus.Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// waitFor waits until n messages have been published.
func (s *recordingStore) waitFor(n int) []bus.Inbound {
	s.run.Helper()
	s.run.until(fmt.Sprintf("%d messages", n), func() bool { return len(s.all()) >= n })
	return s.all()
}

// texts returns the texts that were published from an address.
func (s *recordingStore) texts(at bus.Address) (texts []string) {
	for _, in := range s.all() {
		if in.At == at {
			texts = append(texts, in.Text)
		}
	}
	return texts
}

// wantTexts fails the test unless exactly these texts were published from a chat.
func (s *recordingStore) wantTexts(chat int, texts ...string) {
	s.run.Helper()
	if got := s.texts(s.run.platform.Address(chat)); !slices.Equal(got, texts) {
		s.run.Errorf("of chat %d was published %q, want %q", chat, got, texts)
	}
}

func checkAcknowledgement(r *channelRun) {
	const n = 5
	for i := range n {
		r.say(1, fmt.Sprint("m", i))
	}
	kept, open := newRecordingStore(r), make(chan struct{})
	entered := make(chan struct{}, n)
	r.receive(r.channel, func(ctx context.Context, in bus.Inbound) error {
		entered <- struct{}{}
		<-open
		if in.Text == "m0" {
			if got := r.platform.Unacknowledged(); got < n {
				r.Errorf("%d of %d messages are kept while none is published", got, n)
			}
		}
		return kept.publish(ctx, in)
	})
	<-entered
	if got := r.platform.Unacknowledged(); got != n {
		r.Errorf("%d of %d messages are kept while one is being published", got, n)
	}
	close(open)
	for _, in := range kept.waitFor(n) {
		if in.At != r.platform.Address(1) || in.Group || !in.Mentioned || in.From.ID == "" {
			r.Errorf("published as %+v", in)
		}
	}
	kept.wantTexts(1, "m0", "m1", "m2", "m3", "m4")
	r.until("the acknowledgements", func() bool { return r.platform.Unacknowledged() == 0 })
}

func checkFailedPublish(r *channelRun) {
	kept, ids := newRecordingStore(r), map[string]bool{}
	var failures atomic.Int32
	_, unacknowledged := r.MissingFeatures[Acknowledgements]
	r.say(1, "first")
	r.say(1, "second")
	r.receive(r.channel, func(ctx context.Context, in bus.Inbound) error {
		defer kept.begin(in)()
		if in.Text == "first" {
			ids[in.ID] = true
			// If an acknowledgement was sent too early, it has arrived by the third attempt.
			n := failures.Add(1)
			if got := r.platform.Unacknowledged(); !unacknowledged && got < 2 {
				r.Errorf("%d of 2 messages are kept after %d failures to publish the first", got, n-1)
			}
			if n <= 3 {
				return errStore
			}
		}
		return kept.publish(ctx, in)
	})
	kept.waitFor(2)
	kept.wantTexts(1, "first", "second")
	if len(ids) != 1 {
		r.Errorf("the same message has %d ids", len(ids))
	}
}

func checkRestart(r *channelRun) {
	kept, stuck := newRecordingStore(r), make(chan bus.Inbound, 1)
	for _, text := range []string{"published", "not published", "behind it"} {
		r.say(1, text)
	}
	stop := r.receive(r.channel, func(ctx context.Context, in bus.Inbound) error {
		if in.Text == "published" {
			return kept.publish(ctx, in)
		}
		select {
		case stuck <- in:
		default:
		}
		return errStore
	})
	first := <-stuck
	if err := stop(); err != nil {
		r.Errorf("Receive ended with %v", err)
	}
	if n := r.platform.Unacknowledged(); n < 2 {
		r.Errorf("%d messages are kept for the next process, want 2", n)
	}
	r.receive(r.newChannel(), kept.publish)
	again := kept.waitFor(3)
	kept.wantTexts(1, "published", "not published", "behind it")
	if again[1].ID != first.ID {
		r.Errorf("the same message has the ids %s and %s", first.ID, again[1].ID)
	}
	r.until("the acknowledgements", func() bool { return r.platform.Unacknowledged() == 0 })
}

func checkOrder(r *channelRun) {
	const chats, each = 12, 20 // more than Telegram delivers at once
	want := []string{}
	for i := range each {
		want = append(want, fmt.Sprint("m", i))
	}
	say := func(from, to int) { // say makes people in all chats say the numbers in a range
		for i := from; i < to; i++ {
			for chat := range chats {
				r.say(chat+1, want[i])
			}
		}
	}
	say(0, each/2) // before anything receives
	kept := newRecordingStore(r)
	var mu sync.Mutex
	failed := map[string]bool{}
	r.receive(r.channel, func(ctx context.Context, in bus.Inbound) error {
		defer kept.begin(in)()
		mu.Lock()
		fails := in.Text == "m3" && !failed[in.ID]
		failed[in.ID] = true
		mu.Unlock()
		if fails {
			return errStore
		}
		return kept.publish(ctx, in)
	})
	say(each/2, each)
	kept.waitFor(chats * each)
	for chat := range chats {
		kept.wantTexts(chat+1, want...)
	}
}

func checkChatsAreIndependent(r *channelRun) {
	const others = 20
	kept, stuck, open := newRecordingStore(r), make(chan struct{}), make(chan struct{})
	slow := r.platform.Address(1)
	r.receive(r.channel, func(ctx context.Context, in bus.Inbound) error {
		if in.At == slow {
			close(stuck)
			select {
			case <-open:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return kept.publish(ctx, in)
	})
	r.say(1, "hello")
	<-stuck // so that the others' messages come later, and not in one batch with it
	for chat := range others {
		r.say(chat+2, "hello")
	}
	kept.waitFor(others)
	kept.wantTexts(1) // nothing from this chat
	close(open)
	kept.waitFor(others + 1)
}

func checkOutage(r *channelRun) {
	kept := newRecordingStore(r)
	stop := r.receive(r.channel, kept.publish)
	r.say(1, "before")
	kept.waitFor(1)
	r.platform.Down()
	r.say(1, "meanwhile")
	r.platform.Up()
	r.say(1, "after")
	kept.waitFor(3)
	kept.wantTexts(1, "before", "meanwhile", "after")
	if err := stop(); err != nil {
		r.Errorf("Receive ended with %v", err)
	}
}

// checkReceivingLimited makes the rate limit refuse at least three calls, because a channel may have two
// connections, each of which is refused once before it has to wait.
func checkReceivingLimited(r *channelRun) {
	began := time.Now()
	r.platform.Break(Receiving, RateLimited)
	kept := newRecordingStore(r)
	r.receive(r.channel, kept.publish)
	r.until("the third call", func() bool { return r.platform.Calls(Receiving) >= 3 })
	if waited := time.Since(began); waited < RetryAfter {
		r.Errorf("the platform had the third call after %v, and had asked to wait for %v", waited, RetryAfter)
	}
	r.platform.Mend()
	r.say(1, "hello")
	kept.waitFor(1)
}

func checkReceivingRefused(r *channelRun) {
	r.platform.Break(Receiving, AccountRefused)
	ctx, cancel := context.WithTimeout(r.Context(), waitTimeout)
	defer cancel()
	err := r.channel.Receive(ctx, newRecordingStore(r).publish)
	if fault := r.faultOf(string(AccountRefused), err); fault.Fault != channels.Stop {
		r.Errorf("Receive ended with %v, want %s", fault, channels.Stop)
	}
}

func checkReceiveEnds(r *channelRun) {
	r.Run("while nothing is said", func(t *testing.T) {
		r := newChannelRun(t, r.ChannelHarness)
		if err := r.receive(r.channel, newRecordingStore(r).publish)(); err != nil {
			r.Errorf("Receive ended with %v", err)
		}
	})
	r.Run("while a message is being published", func(t *testing.T) {
		r := newChannelRun(t, r.ChannelHarness)
		entered := make(chan struct{}, 1)
		stop := r.receive(r.channel, func(ctx context.Context, _ bus.Inbound) error {
			entered <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		r.say(1, "hello")
		<-entered
		if err := stop(); err != nil {
			r.Errorf("Receive ended with %v", err)
		}
	})
	r.Run("while no message can be published", func(t *testing.T) {
		r := newChannelRun(t, r.ChannelHarness)
		failed := make(chan struct{}, 1)
		stop := r.receive(r.channel, func(context.Context, bus.Inbound) error {
			select {
			case failed <- struct{}{}:
			default:
			}
			return errStore
		})
		r.say(1, "hello")
		<-failed
		if err := stop(); err != nil {
			r.Errorf("Receive ended with %v", err)
		}
	})
	r.Run("while the platform is away", func(t *testing.T) {
		if why, lacks := r.MissingFeatures[Network]; lacks {
			t.Skipf("the channel lacks %s: %s", Network, why)
		}
		r := newChannelRun(t, r.ChannelHarness)
		r.platform.Down()
		if err := r.receive(r.channel, newRecordingStore(r).publish)(); err != nil {
			r.Errorf("Receive ended with %v", err)
		}
	})
}

func checkReceiveUnsupported(r *channelRun) {
	if _, lacks := r.MissingFeatures[Inbound]; !lacks {
		r.Skip("the channel receives")
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitTimeout)
	defer cancel()
	if err := r.channel.Receive(ctx, newRecordingStore(r).publish); err == nil || ctx.Err() != nil {
		r.Errorf("Receive ended with %v: a channel that receives has to pass the checks of receiving", err)
	}
}
