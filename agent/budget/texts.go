package budget

import (
	"fmt"
	"strings"
	"time"

	"parley/sessions/bill"
)

// budgetPhrases are the phrases that describe a budget to people.
type budgetPhrases struct {
	subject string // says who has used some of it: "You've"
	size    string // says how large it is, after "of" or "than"
	setting string // the setting to change, and its section
}

// phrases returns the phrases that describe the budget.
func (e *OverError) phrases() budgetPhrases {
	c := bill.Cap{}
	if e.Cap != nil {
		c = *e.Cap
	}
	ofPerson := e.Cap != nil && strings.HasPrefix(c.Subject, bill.Person(""))
	named := func(subject, may, setting string) budgetPhrases {
		return budgetPhrases{subject, "the " + e.amount(e.limit()) + " that " + may, setting}
	}
	switch owner := e.Owner.Name; {
	case owner != "" && e.Cap == nil:
		return named(owner+" have", "they can use in a day", e.Owner.TokensSetting)
	case owner != "" && ofPerson:
		return named(owner+" have", "they can spend in a day", e.Owner.MoneySetting)
	case e.Cap == nil:
		return named("You've", "a person can use in a day", "[limits] user_tokens_day")
	case c.IsMonthly:
		return named("People have", "everyone together can spend in a month", "[budget] month")
	case ofPerson:
		return named("You've", "a person can spend in a day", "[budget] user_day")
	case strings.HasPrefix(c.Subject, bill.Session("")):
		return named("This conversation has", "a conversation can spend in a day", "[budget] session_day")
	case strings.HasPrefix(c.Subject, bill.Agent("")):
		return named("I've", "I can spend in a day", "[agents."+strings.TrimPrefix(c.Subject, bill.Agent(""))+"] day")
	}
	return named("People have", "everyone together can spend in a day", "[budget] day")
}

// amount returns an amount from the budget in words.
func (e *OverError) amount(n int64) string {
	if e.Cap == nil {
		return bill.Grouped(n) + " tokens"
	}
	return bill.DollarsToFour(n)
}

// spent returns how much of the budget is spent, to be put before "of" and its size.
func (e *OverError) spent() string {
	if e.Cap == nil {
		return bill.Grouped(e.Spent) // the size says that these are tokens
	}
	return e.amount(e.Spent)
}

// next says how much the next answer could use or cost.
func (e *OverError) next() string {
	if e.Cap == nil {
		return "could use " + e.amount(e.Needed)
	}
	return "could cost " + e.amount(e.Needed)
}

// Words returns the error as a message to people: how much of the budget is left, when they can continue, and which
// setting limits it. Reserved amounts are not called used.
func (e *OverError) Words() string {
	b := e.phrases()
	raise := fmt.Sprintf("My operator can raise that limit: `%s`.", b.setting)
	aside := ""
	if e.Reserved > 0 {
		aside = fmt.Sprintf(", with another %s set aside for answers in progress", e.amount(e.Reserved))
	}
	c := bill.Cap{}
	if e.Cap != nil {
		c = *e.Cap
	}
	opens := c.NextPeriod(e.At)
	then := fmt.Sprintf("I can go on after %s UTC (in %s).", opens.Format("January 2, 15:04"), waitText(opens.Sub(e.At)))
	used := fmt.Sprintf("%s used %s of %s%s.", b.subject, e.spent(), b.size, aside)
	switch {
	case e.Spent >= e.limit() && e.limit() > 0:
		return fmt.Sprintf("%s used up %s. %s %s", b.subject, b.size, then, raise)
	case e.Needed > e.limit():
		return fmt.Sprintf("One answer here %s, which is more than %s, so I can't answer. Waiting won't change that. %s", e.next(), b.size, raise)
	case e.FitsLater():
		return fmt.Sprintf("%s One more answer %s, and I haven't finished the answers in progress. Ask again in a while. %s", used, e.next(), raise)
	}
	return fmt.Sprintf("%s One more answer %s. %s %s", used, e.next(), then, raise)
}

// WaitWords tells people that the call waits until others have finished, how long it waits at most, and how to
// stop the wait.
func (e *OverError) WaitWords(until time.Time, stop string) string {
	b := e.phrases()
	return fmt.Sprintf("%s used %s of %s, with another %s set aside for answers in progress. I'll wait for them until %s UTC and then answer; %s makes me stop waiting right away. My operator can raise that limit: `%s`.",
		b.subject, e.spent(), b.size, e.amount(e.Reserved), until.UTC().Format("2006-01-02 15:04"), stop, b.setting)
}

// waitText returns a duration in words, for people.
func waitText(d time.Duration) string {
	switch d = max(d.Round(time.Minute), time.Minute); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}
