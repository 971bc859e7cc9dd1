package judge

import (
	"context"
	"sync"
)

// maxVerdicts is how many verdicts are remembered.
const maxVerdicts = 4096

// Answers remembers verdicts, so that a model is asked once about equal questions, also if they come at the same
// time. It forgets them with the process. The zero value is ready for use, by several goroutines at once.
type Answers struct {
	mu    sync.Mutex
	known map[string]*asked
}

// An asked is a question that somebody is asking, or that a model has answered. done is closed once asking has ended. Only then
// the rest may be read.
type asked struct {
	done    chan struct{}
	verdict Verdict
	given   bool // there is a verdict, perhaps with a fault; otherwise asking has ended the run of whoever asked
}

// Of returns the verdict on the question with a hash: the remembered one, or the one that ask returns. Only a
// model's own verdict is remembered. One with a fault counts for all who wait for it, and is then forgotten.
func (a *Answers) Of(ctx context.Context, hash string, ask func() (Verdict, error)) (Verdict, error) {
	for {
		one, first := a.begin(hash)
		if first {
			return a.askFirst(hash, one, ask)
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return Verdict{}, context.Cause(ctx)
		}
		if one.given {
			v := one.verdict
			v.Known, v.Took = true, 0
			return v, nil
		}
	}
}

// askFirst asks a question for everybody who waits for its verdict.
func (a *Answers) askFirst(hash string, one *asked, ask func() (Verdict, error)) (v Verdict, err error) {
	defer func() { a.end(hash, one, v, err == nil && v.Decision != "") }()
	return ask()
}

// begin returns the question with that hash. first reports that nobody is asking it and that its verdict isn't remembered, so
// that the caller has to ask.
func (a *Answers) begin(hash string) (one *asked, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one, ok := a.known[hash]; ok {
		return one, false
	}
	if len(a.known) >= maxVerdicts || a.known == nil {
		a.known = map[string]*asked{} // whoever waits for a verdict has the question already
	}
	one = &asked{done: make(chan struct{})}
	a.known[hash] = one
	return one, true
}

// end records the verdict on a question, if one is given, and forgets the question unless the verdict is a model's own.
func (a *Answers) end(hash string, one *asked, v Verdict, given bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one.verdict, one.given = v, given
	if (!given || v.Fault != "") && a.known[hash] == one {
		delete(a.known, hash)
	}
	close(one.done)
}
