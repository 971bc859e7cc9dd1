package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
)

var leasePromises = []promise{
	{"tells its holder when mail comes: the way to steer", testSteer},
	{"has Mail return none where there is none, and tells nobody then", testNoMail},
	{"tells its holder once at a time, and no more after stop", testOnMailOneAtATime},
	{"is exclusive until it is settled", testExclusive},
	{"loses no mail that comes as it is settled", testSteerWhileSettling},
	{"is lost when it is held for too long, and the mailbox goes on", testMaxHold},
	{"gives a former holder ErrFenced for everything", testFormerHolderFenced},
	{"has fences that grow, over restarts too, and begin at the clock", testFencesGrow},
}

var settlePromises = []promise{
	{"absorbs up to a number and gives back the rest", testSettleUpTo},
	{"counts claims until something is settled", testCountsAttempts},
	{"counts a claim over a restart", testAttemptsAfterReopen},
	{"does not count what is settled uncounted", testUncounted},
	{"for later keeps the order and delays nobody else", testSettleLater},
	{"for later outlives a restart", testLaterAfterReopen},
	{"does nothing when its context has ended", testSettleAfterContext},
}

func testSteer(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	l := r.claimKey("k")
	last := r.wantMail(l, 0, "a")
	var wg sync.WaitGroup
	wg.Go(func() { r.publish("k", "b") })
	last = r.wantMail(l, last, "b")
	wg.Wait()
	r.publish("k", "c", "d")
	r.wantMail(l, last, "c", "d")
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a", "b", "c", "d")})
	r.wantNothingLeft()
}

func testNoMail(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	l := r.claimKey("k")
	last := r.wantMail(l, 0, "a")
	r.publish("other", "x") // a mailbox that isn't its own
	mail, err := l.Mail(r.Context(), last)
	r.noError("mail", err)
	if len(mail) > 0 {
		r.Errorf("mail is %v, want none", mail)
	}
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	stop := l.OnMail(func() { r.Error("there is no mail") })
	<-ctx.Done()
	r.noError("held", l.Held(r.Context()))
	stop()

	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := AwaitMail(r.Context(), l, last)
		if !errors.Is(err, bus.ErrFenced) {
			r.Errorf("mail after the end: %v", err)
		}
	})
	r.waitIdle()
	r.settle(l, bus.End{Done: last})
	wg.Wait()
}

// testOnMailOneAtATime publishes before OnMail, while its function runs, and after stop. Calls of the function must
// not overlap, and none may come after stop.
func testOnMailOneAtATime(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	l := r.claimKey("k")
	last := r.wantMail(l, 0, "a")
	r.publish("k", "b")
	began, proceed := make(chan struct{}, 9), make(chan struct{})
	var running atomic.Int32
	var over atomic.Bool
	stop := l.OnMail(func() {
		if running.Add(1) > 1 || over.Load() {
			r.Error("it is called while it runs, or after stop")
		}
		began <- struct{}{}
		<-proceed
		running.Add(-1)
	})
	<-began // call of f for b
	r.publish("k", "c", "d")
	proceed <- struct{}{}
	<-began // call of f for c and d
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	select {
	case <-stopped:
		r.Error("stop does not wait for the call under way")
	case <-time.After(20 * time.Millisecond):
	}
	close(proceed)
	<-stopped
	over.Store(true)
	r.publish("k", "e")
	r.waitIdle()
	r.settle(l, bus.End{Done: r.wantMail(l, last, "b", "c", "d", "e")})
	r.wantNothingLeft()
}

func testExclusive(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	l := r.claimKey("k")
	r.publish("k", "b")
	r.publish("other", "c")
	r.finish("other", "c")
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.noError("held", l.Held(r.Context()))
	select {
	case <-l.Lost():
		r.Fatal("the lease is lost")
	default:
	}
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a", "b")})
	r.wantNothingDue(inbound, 50*time.Millisecond)
}

// testSteerWhileSettling publishes while a holder settles: this holder or the next sees the
// message.
func testSteerWhileSettling(r *rig) {
	r.open(Options{})
	for i := range 200 {
		first, second := fmt.Sprint("first", i), fmt.Sprint("second", i)
		r.publish("k", first)
		l := r.claimKey("k")
		last := r.wantMail(l, 0, first)
		var wg sync.WaitGroup
		wg.Go(func() { r.publish("k", second) })
		wg.Go(func() { r.settle(l, bus.End{Done: last}) })
		wg.Wait()
		r.finish("k", second)
	}
	r.wantNothingLeft()
}

// reclaim waits until l is lost and claims its mailbox again.
func (r *rig) reclaim(l bus.Lease) bus.Lease {
	r.Helper()
	again := r.claimKey(l.Claim().Key)
	select {
	case <-l.Lost():
	case <-time.After(patience):
		r.Fatal("the former holder was not told")
	}
	return again
}

func testMaxHold(r *rig) {
	const most = 1500 * time.Millisecond
	r.open(Options{MaxHold: most, Lease: 500 * time.Millisecond})
	r.publish("k", "a")
	start := time.Now()
	hung := r.claimKey("k")
	r.wantMail(hung, 0, "a")
	r.wantNothingDue(inbound, most/2)
	r.noError("held", hung.Held(r.Context()))
	l := r.reclaim(hung)
	if took := time.Since(start); took < most-100*time.Millisecond || took > most+2*time.Second {
		r.Errorf("claimed again after %v, want %v", took, most)
	}
	r.wantAttempts(l, 2)
	r.wantError("settle of the hung one", hung.Settle(r.Context(), bus.End{Done: 1 << 60}), bus.ErrFenced)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a")})
	r.wantNothingLeft()
}

// wantFenced checks that every call with a former lease returns ErrFenced.
func (r *rig) wantFenced(l bus.Lease) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	_, err := l.Mail(ctx, 0)
	r.wantError("mail", err, bus.ErrFenced)
	_, err = l.Mail(ctx, 1<<60)
	r.wantError("mail beyond", err, bus.ErrFenced)
	r.wantError("held", l.Held(ctx), bus.ErrFenced)
	r.wantError("settle", l.Settle(ctx, bus.End{Done: 1 << 60}), bus.ErrFenced)
}

func testFormerHolderFenced(r *rig) {
	r.open(Options{MaxHold: time.Second, Lease: 400 * time.Millisecond})
	r.publish("k", "a", "b")
	settled := r.claimKey("k")
	r.wantMail(settled, 0, "a", "b")
	r.settle(settled, bus.End{})
	r.wantFenced(settled)
	lost := r.claimKey("k")
	r.wantFenced(settled) // even while another process holds it
	l := r.reclaim(lost)
	r.wantFenced(lost)
	r.wantFenced(settled)
	r.wantMail(l, 0, "a", "b")
	r.settle(l, bus.End{Done: 1 << 60}) // only as far as there are messages
	r.wantFenced(lost)
	r.wantNothingLeft()
}

func testFencesGrow(r *rig) {
	r.open(Options{})
	start := time.Now().UnixMicro()
	var last int64
	for i := range 9 {
		key := fmt.Sprint("k", i%2)
		r.publish(key, fmt.Sprint(i))
		l := r.claimKey(key)
		f := l.Claim().Fence
		if f <= last || f < start-time.Minute.Microseconds() || f > time.Now().Add(time.Minute).UnixMicro() {
			r.Fatalf("fence %d after %d, at %d", f, last, time.Now().UnixMicro())
		}
		last = f
		r.settle(l, bus.End{Done: 1 << 60})
		if i%3 == 2 {
			r.reopen()
		}
	}
}

func testSettleUpTo(r *rig) {
	r.open(Options{})
	r.publish("k", "a", "b", "c")
	l := r.claimKey("k")
	first, err := l.Mail(r.Context(), 0)
	r.noError("mail", err)
	last := r.wantMail(l, first[0].Seq, "b", "c")
	r.publish("k", "d")
	r.settle(l, bus.End{Done: last})
	l = r.claimKey("k")
	r.wantAttempts(l, 1)
	r.wantMail(l, 0, "d")
	r.settle(l, bus.End{Done: last}) // nothing: the messages were forgotten before
	l = r.claimKey("k")
	r.wantAttempts(l, 2)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "d")})
	r.wantNothingLeft()
}

func testCountsAttempts(r *rig) {
	r.open(Options{})
	r.publish("k", "a", "b")
	for i := range 3 {
		l := r.claimKey("k")
		r.wantAttempts(l, i+1)
		r.settle(l, bus.End{})
	}
	l := r.claimKey("k")
	r.wantAttempts(l, 4)
	mail, err := l.Mail(r.Context(), 0)
	r.noError("mail", err)
	r.settle(l, bus.End{Done: mail[0].Seq})
	l = r.claimKey("k")
	r.wantAttempts(l, 1)
	r.wantMail(l, 0, "b")
	r.settle(l, bus.End{Dead: 1 << 60})
	r.publish("k", "c")
	r.wantAttempts(r.claimKey("k"), 1)
}

func testAttemptsAfterReopen(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	for i := range 4 {
		l := r.claimKey("k")
		r.wantAttempts(l, i+1)
		if i%2 == 0 {
			r.settle(l, bus.End{})
		}
		r.reopen()
	}
	l := r.claimKey("k")
	r.wantAttempts(l, 5)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a")})
}

func testUncounted(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	r.settle(r.claimKey("k"), bus.End{})
	for range 3 {
		l := r.claimKey("k")
		r.wantAttempts(l, 2)
		r.settle(l, bus.End{Uncounted: true, After: 10 * time.Millisecond})
	}
	r.settle(r.claimKey("k"), bus.End{Uncounted: true})
	r.reopen()
	r.wantAttempts(r.claimKey("k"), 2)
}

func testSettleLater(r *rig) {
	r.open(Options{})
	r.publish("k", "a", "b")
	start := time.Now()
	l := r.claimKey("k")
	mail, err := l.Mail(r.Context(), 0)
	r.noError("mail", err)
	const delay = 400 * time.Millisecond
	r.settle(l, bus.End{Done: mail[0].Seq, After: delay})
	r.publish("k", "c")
	r.publish("other", "x")
	r.finish("other", "x")
	r.wantNothingDue(inbound, delay/4)
	l = r.claimKey("k")
	if took := time.Since(start); took < delay {
		r.Errorf("claimed after %v, want %v", took, delay)
	}
	r.wantAttempts(l, 1)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "b", "c"), After: time.Hour}) // nothing is left that could wait
	r.wantNothingLeft()
	r.publish("k", "d")
	r.finish("k", "d")
}

func testLaterAfterReopen(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	start := time.Now()
	const delay = 800 * time.Millisecond
	r.settle(r.claimKey("k"), bus.End{After: delay})
	r.reopen()
	l := r.claimKey("k")
	if took := time.Since(start); took < delay-10*time.Millisecond {
		r.Errorf("claimed after %v, want %v", took, delay)
	}
	r.wantAttempts(l, 2)
	r.wantMail(l, 0, "a")
}

func testSettleAfterContext(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	l := r.claimKey("k")
	last := r.wantMail(l, 0, "a")
	ended, cancel := context.WithCancel(r.Context())
	cancel()
	if err := l.Settle(ended, bus.End{Done: last}); err == nil {
		r.wantError("held after it was settled", l.Held(r.Context()), bus.ErrFenced)
		return // a bus may settle in spite of the canceled context, but must not report something else than it does
	}
	r.noError("held", l.Held(r.Context()))
	r.settle(l, bus.End{Done: last})
	r.wantNothingLeft()
}
