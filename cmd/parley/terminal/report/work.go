package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/terminal"
	"parley/sessions/bill"
)

// PrintWork prints what the bot is working on now. It leaves out empty lists.
func (s Status) PrintWork(out io.Writer, now time.Time) error {
	work := workPrinter{out: out, now: now}
	head := []string{"SESSION", "PERSON", "AGENT", "FOR", "DOING"}
	if s.Fleet != nil {
		head = append(head, "PROCESS")
	}
	printLimited(&work, s.Turns, "turn", "running", head, func(t api.RunningTurn) []string {
		return []string{t.Session, t.Person, t.Agent, work.age(t.Since), work.doing(t), t.Process}[:len(head)]
	})
	printLimited(&work, s.Waiting, "conversation", "waiting for a worker", []string{"SESSION", "MESSAGES", "FOR", "NEXT"}, func(w api.WaitingSession) []string {
		next := ""
		if w.Next != nil {
			next = moment(*w.Next)
		}
		return []string{w.Session, bill.Grouped(int64(w.Messages)), work.age(w.Since), next}
	})
	printLimited(&work, s.Asks, "request", "waiting for people", []string{"ID", "SESSION", "WHAT", "WHO DECIDES", "FOR", "EXPIRES"}, func(a api.WaitingAsk) []string {
		return []string{a.ID, a.Session, cmp.Or(a.Tool, a.Kind), strings.Join(a.Decides, ", "), work.age(a.Since), moment(a.Expires)}
	})
	printLimited(&work, s.Jobs, "job", "running", []string{"ID", "SESSION", "PERSON", "TOOL", "FOR", "ENDS BY"}, func(j api.RunningJob) []string {
		return []string{j.ID, j.Session, j.Person, j.Tool, work.age(j.Since), moment(j.Deadline)}
	})
	printLimited(&work, s.Schedules, "schedule", "due", []string{"ID", "SESSION", "PERSON", "NEXT"}, func(d api.DueSchedule) []string {
		return []string{d.ID, d.Session, d.Person, moment(d.Next)}
	})
	return work.err
}

// A workPrinter prints tables one after another until one fails.
type workPrinter struct {
	out io.Writer
	now time.Time
	err error
}

// printLimited prints one table below a line that says how many items there are.
func printLimited[T any](p *workPrinter, all api.LimitedList[T], noun, state string, head []string, row func(T) []string) {
	if all.Count == 0 || p.err != nil {
		return
	}
	more := ""
	if len(all.List) < all.Count {
		more = fmt.Sprintf("; here are %s of them", bill.Grouped(int64(len(all.List))))
	}
	fmt.Fprintf(p.out, "\n%s %s%s:\n", count(int64(all.Count), noun), state, more)
	w := table(p.out, head...)
	for _, one := range all.List {
		cells := row(one)
		for i := range cells {
			cells[i] = terminal.Cell(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	p.err = w.Flush()
}

// age returns in words how long ago something happened.
func (p *workPrinter) age(since time.Time) string {
	return max(0, p.now.Sub(since)).Round(time.Second).String()
}

// doing returns in words what a turn is doing now.
func (p *workPrinter) doing(t api.RunningTurn) string {
	if t.Turn == "" {
		return "starting or ending"
	}
	var calls []string
	for _, c := range t.Calls {
		calls = append(calls, cmp.Or(c.Tool, "a tool")+" for "+p.age(c.Since))
	}
	return cmp.Or(strings.Join(calls, ", "), "asking the model")
}
