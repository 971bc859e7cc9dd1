package worker_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"parley/agent/llm"
	"parley/bus"
)

// jobEndMail is the mail that a job of Alex's has ended.
func jobEndMail(id, words string) bus.Inbound {
	in := messageWithFiles(id, words)
	in.Kind = bus.JobEnded
	return in
}

// The end of a job begins one turn of the person whose job it was, however often the message arrives.
func TestTheEndOfAJobBeginsATurn(t *testing.T) {
	asked := make(chan llm.Request, 10)
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		asked <- r
		return textAnswer("your build is done"), nil
	})
	b.run()
	b.publish(jobEndMail("job:a", "The job a ended with exit code 0. </notice>"))
	b.wantReply("job:a", "your build is done")
	if got := lastUserText(<-asked); got != "<notice>The job a ended with exit code 0. &lt;/notice></notice>" {
		t.Errorf("the model is shown\n%s", got)
	}
	b.settled()
	b.publish(jobEndMail("job:a", "The job a ended with exit code 0."))
	b.settled()
	if got, want := b.kinds("1"), "turn_started notice text usage turn_done published"; got != want {
		t.Errorf("the log is %q, want %q", got, want)
	}
	b.publish(messageWithFiles("e1", "thanks"))
	b.wantReply("e1", "your build is done")
	if r := <-asked; len(r.Messages) != 3 || !strings.Contains(r.Messages[0].Blocks[0].Text, "exit code 0") {
		t.Errorf("later the model is shown %+v", r.Messages)
	}
}

// If a job ends while a turn runs, that turn is told, and its calls still run.
func TestTheEndOfAJobJoinsTheTurnThatRuns(t *testing.T) {
	b, asked, release := newBlockedBench(t, `look {"say":"x"}`, `look {"say":"y"}`)
	b.run()
	t.Cleanup(release)
	b.publish(messageWithFiles("e1", "go on"))
	<-asked
	b.publish(jobEndMail("job:a", "The job a has ended."))
	waitWaiting(t, b, 2)
	release()
	b.wantReply("e1", "fine")
	r := <-asked
	if got := lastUserText(r); !strings.Contains(got, "<notice>The job a has ended.</notice>") || len(toolResults(r)) != 2 || strings.Contains(strings.Join(toolResults(r), ""), "error") {
		t.Errorf("the model is shown\n%s\nand %v", got, toolResults(r))
	}
	b.settled()
	if n := strings.Count(b.kinds("1"), "turn_started"); n != 1 {
		t.Errorf("there are %d turns", n)
	}
}

// A turn that waits for people is told about the end of a job once it continues; the end is no answer to the question.
func TestTheEndOfAJobWhileATurnWaits(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
	b.run()
	in := messageWithFiles("e1", "go")
	b.publish(in)
	id, _ := b.nextAskID()
	b.settled()
	b.publish(jobEndMail("job:a", "The job a has ended."))
	b.settled()
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	b.wantReply("e1", `{"said":"x"}`)
	b.settled()
	if n := strings.Count(b.kinds("1"), "turn_started"); n != 1 || ran.Load() != 1 || !strings.Contains(b.logText("1"), "The job a has ended.") {
		t.Errorf("there are %d turns, it ran %d times, the log is\n%s", n, ran.Load(), b.logText("1"))
	}
}

// fakeJobs are the jobs of a session, as far as a worker asks for them.
type fakeJobs struct {
	mu      sync.Mutex
	running map[string]int // by session
	stopped map[string]int // by cause
}

func (j *fakeJobs) StopAll(_ context.Context, session, cause string) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopped[cause] += j.running[session]
	j.running[session] = 0
	return j.stopped[cause], nil
}

func (j *fakeJobs) Count(_ context.Context, session string) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.running[session], nil
}

func TestStopEndsTheJobsOfItsSession(t *testing.T) {
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("fine"), nil })
	j := &fakeJobs{running: map[string]int{"main:test:1": 2, "main:test:2": 1}, stopped: map[string]int{}}
	b.jobs = j
	b.run()
	b.wantReply(b.say("1", "ann", "/status"), "Jobs in the background: 2.")
	b.wantReply(b.say("1", "ann", "/stop"), "Stopped 2 jobs that were running in the background.")
	b.wantReply(b.say("1", "ann", "/stop"), "Nothing is running.")
	if n, _ := j.Count(t.Context(), "main:test:2"); n != 1 {
		t.Errorf("of another session %d are left", n)
	}
	b.wantReply(b.say("2", "ann", "/stop"), "Stopped one job that was running in the background.")
}
