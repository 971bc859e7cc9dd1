package judge

import (
	"context"
	"sync"
)

// mostKnown is how many verdicts are remembered.
const mostKnown = 4096

// Answers remembers verdicts, so that a model is asked once about equal questions, also if they come at the same
// time. It forgets them with the process. The zero value is ready for use, by several goroutines at once.
type Answers struct {
	mu    sync.Mutex
	known map[string]*asked
}

// An asked question has a verdict once done is closed, if asking didn't end the run of who asked.
type asked struct {
	done    chan struct{}
	verdict Verdict
	given   bool
}

// Of returns the verdict on the question with a hash: the remembered one, or the one that ask returns. Only a
// model's own verdict is remembered; that there is none counts for all who wait for it.
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

// begin returns the question with that hash. first reports that nobody has asked it, or nobody who remembers the
// answer, so that the caller has to.
func (a *Answers) begin(hash string) (one *asked, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one, ok := a.known[hash]; ok {
		return one, false
	}
	if len(a.known) >= mostKnown || a.known == nil {
		a.known = map[string]*asked{} // who waits for an answer has its question already
	}
	one = &asked{done: make(chan struct{})}
	a.known[hash] = one
	return one, true
}

// end records the verdict on a question, and forgets the question unless a model has given the verdict.
func (a *Answers) end(hash string, one *asked, v Verdict, given bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one.verdict, one.given = v, given
	if (!given || v.Fault != "") && a.known[hash] == one {
		delete(a.known, hash)
	}
	close(one.done)
}
