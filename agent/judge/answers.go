package judge

import (
	"context"
	"sync"
)

// maxVerdicts limits how many questions and verdicts are remembered; at that number, all are forgotten.
const maxVerdicts = 4096

// Answers remembers verdicts, so that a model is asked once about equal questions, even if they come at the same time.
// It forgets them with the process. The zero value is ready for use, by several goroutines at once.
type Answers struct {
	mu    sync.Mutex
	known map[string]*question
}

// A question is being asked, or has been answered by a model. done is closed when asking has ended; the other fields
// may be read only after that.
type question struct {
	done       chan struct{}
	verdict    Verdict
	hasVerdict bool // there is a verdict, perhaps with a fault; otherwise the run that asked has ended with an error
}

// VerdictFor returns the verdict on the question with a hash: the remembered one, or the result of ask. Only a model's
// own verdict is remembered. A verdict with a fault is given to all who wait for it, and then forgotten.
func (a *Answers) VerdictFor(ctx context.Context, hash string, ask func() (Verdict, error)) (Verdict, error) {
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
		if one.hasVerdict {
			v := one.verdict
			v.Remembered, v.Took = true, 0
			return v, nil
		}
	}
}

// askFirst asks a question for all who wait for its verdict.
func (a *Answers) askFirst(hash string, one *question, ask func() (Verdict, error)) (v Verdict, err error) {
	defer func() { a.end(hash, one, v, err == nil && v.Decision != "") }()
	return ask()
}

// begin returns the question with that hash. first reports that nobody is asking it and that its verdict isn't
// remembered, so the caller has to ask.
func (a *Answers) begin(hash string) (one *question, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one, ok := a.known[hash]; ok {
		return one, false
	}
	if len(a.known) >= maxVerdicts || a.known == nil {
		a.known = map[string]*question{} // those who wait for a verdict have their question already
	}
	one = &question{done: make(chan struct{})}
	a.known[hash] = one
	return one, true
}

// end records the verdict on a question, if there is one, and forgets the question unless the verdict is a model's own.
func (a *Answers) end(hash string, one *question, v Verdict, given bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one.verdict, one.hasVerdict = v, given
	if (!given || v.Fault != "") && a.known[hash] == one {
		delete(a.known, hash)
	}
	close(one.done)
}
