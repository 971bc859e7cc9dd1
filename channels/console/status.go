package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/bus"
)

// setBusy sets whether an answer is expected. The caller holds s.mu, as for all methods below.
func (s *screen) setBusy(busy bool) {
	s.answerExpected = busy
	line := ""
	if busy {
		line = workingText
		if t := s.turns[s.latestTurn]; t != nil && !t.isOver {
			line += usageText(t.usage)
		}
	}
	if s.status != line {
		s.status = line
		s.display.showStatus(line)
	}
}

// showModelNews shows what an event says about model calls: why an answer is late, and what the turn has used so
// far.
func (s *screen) showModelNews(t *turn, e bus.Event) {
	switch {
	case e.Retry != nil:
		s.finishBlock()
		s.display.print(passage{text: bullet + retryText(*e.Retry)})
	case e.Compaction != nil:
		s.finishBlock()
		s.display.print(passage{text: fmt.Sprintf("%sthe model now sees less history: about %d tokens instead of %d", bullet, e.Compaction.After, e.Compaction.Before)})
	case e.Usage != nil:
		t.addUsage(*e.Usage)
		s.setBusy(s.answerExpected)
	}
}

// retryText returns the line that says that a model is asked again, or that another one is asked in its place.
func retryText(r bus.Retry) string {
	when := "right away"
	if wait := time.Duration(r.AfterMS) * time.Millisecond; wait >= time.Second {
		when = "in " + wait.Round(time.Second).String()
	}
	from := "the model"
	if r.From != "" {
		from = oneLine(r.From)
	}
	if r.To != "" && r.To != r.From {
		return fmt.Sprintf("%s isn't answering: asking %s %s", from, oneLine(r.To), when)
	}
	return fmt.Sprintf("%s isn't answering: asking it again %s (try %d)", from, when, r.Attempt)
}

// addUsage adds the tokens and the cost of one call to the turn's.
func (t *turn) addUsage(u bus.Usage) {
	sum := &t.usage
	sum.Input, sum.Cached, sum.Output = sum.Input+u.Input, sum.Cached+u.Cached, sum.Output+u.Output
	sum.Estimated = sum.Estimated || u.Estimated
	if u.Microdollars != nil {
		cost := *u.Microdollars
		if sum.Microdollars != nil {
			cost += *sum.Microdollars
		}
		sum.Microdollars = &cost
	}
}

// usageText returns, in parentheses, what a turn has used; "" if that is nothing.
func usageText(u bus.Usage) string {
	if u.Input+u.Output == 0 {
		return ""
	}
	about := ""
	if u.Estimated {
		about = "about "
	}
	text := fmt.Sprintf("%s%d tokens read", about, u.Input)
	if u.Cached > 0 {
		text += fmt.Sprintf(", %d of them from the cache", u.Cached)
	}
	text += fmt.Sprintf(", %d written", u.Output)
	if u.Microdollars != nil {
		text += ", $" + dollars(*u.Microdollars)
	}
	return " (" + text + ")"
}

// dollars formats an amount with two decimals; amounts below a cent get as many as necessary.
func dollars(micro int64) string {
	if micro >= 10_000 {
		return strconv.FormatFloat(float64(micro)/1e6, 'f', 2, 64)
	}
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64), "0"), ".")
}
