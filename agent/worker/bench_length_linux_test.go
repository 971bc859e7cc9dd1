package worker_test

import (
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/agent/sessioncache"
	"parley/agent/transcript"
	"parley/sessions"
)

// logLengths are the lengths of logs, in entries, that benchmarks compare: a message and its answer are six.
func logLengths() []int { return []int{12, 150, 300, 1800} }

// BenchmarkTurnByLength has 20 chats talk with a worker that keeps them in memory, until their logs have so
// many entries, and measures the processor time of a message then: of the bus, the store, all that is ours,
// and a model that costs nothing. "us/entry" is what of it the log's length makes.
func BenchmarkTurnByLength(b *testing.B) {
	const chats, rounds = 20, 10
	used, n := map[int]time.Duration{}, 0
	for b.Loop() {
		n++
		x := newBench(b, nil)
		x.agent.Model, x.limit.TurnsHour, x.limit.TokensDay, x.limit.Turns = instantModel(b, openai.APIChat), 1<<30, 1<<50, 1000
		x.agent.ContextTokens = 1 << 30
		stop := x.runWith(sessioncache.New(sessioncache.Bounds{}))
		said := 0
		round := func() {
			said++
			for chat := range chats {
				x.say(strconv.Itoa(chat), "ann", fmt.Sprint("what is to be said in message ", said))
				if chat%10 == 9 {
					for range 10 {
						x.wantReply("", "that is done")
					}
				}
			}
		}
		for _, length := range logLengths() {
			for said < length/6 {
				round()
			}
			before := processorTime(b)
			for range rounds {
				round()
			}
			used[length] += processorTime(b) - before
		}
		stop()
	}
	each := func(length int) float64 { return float64(used[length].Microseconds()) / float64(n*rounds*chats) }
	for _, length := range logLengths() {
		b.ReportMetric(each(length), fmt.Sprint("cpu-us-at-", length))
	}
	first, last := logLengths()[0], logLengths()[len(logLengths())-1]
	b.ReportMetric((each(last)-each(first))/float64(last-first), "us/entry")
}

// conversationLog returns a log with that many entries as it is kept in memory: messages and short answers.
func conversationLog(entries int) []journal.Record {
	var records []journal.Record
	for n := range entries / 6 {
		turn, at := fmt.Sprint("telegram:12345:", n), int64(6*n)
		add := func(i int64, kind sessions.Kind, data any) *journal.Record {
			e := journal.NewEntry(turn, kind, data)
			e.N, e.At = at+i, time.Unix(1_800_000_000+at, 0)
			records = append(records, journal.NewRecord(e, data))
			return &records[len(records)-1]
		}
		add(1, sessions.KindTurnStarted, journal.FinishedTurn{})
		said := add(2, sessions.KindUser, sessions.User{Name: "Alex Example", Text: fmt.Sprint("what is to be said in message ", n), Sent: time.Unix(1_800_000_000+at, 0)})
		said.Cause, said.Person = turn, "telegram:12345"
		add(3, sessions.KindText, sessions.Text{Text: fmt.Sprint("you said what is to be said in message ", n)})
		add(5, sessions.KindTurnDone, sessions.TurnDone{})
	}
	return records
}

// BenchmarkPreparation measures the work between the log and the model's answer at several lengths of the log:
// rendering the messages, counting their tokens, and building the request.
func BenchmarkPreparation(b *testing.B) {
	for _, entries := range logLengths() {
		b.Run(strconv.Itoa(entries), func(b *testing.B) {
			m, records, offered := instantModel(b, openai.APIChat), conversationLog(entries), toolSpecs()
			own := records[len(records)-1].Turn
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				r := &llm.Request{System: "You are Parley.", Tools: offered, Messages: transcript.Render(records, own, nil)}
				for range 4 { // whether it fits, for failover, for the reservation, and to learn from the answer
					if transcript.Estimate(r) == 0 {
						b.Fatal(io.ErrUnexpectedEOF)
					}
				}
				if _, err := m.Generate(b.Context(), r, func(llm.Delta) {}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us")
		})
	}
}
