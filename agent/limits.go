package agent

import (
	"cmp"
	"time"

	"parley/sessions/bill"
)

// Limits says how much agents may do for each person.
type Limits struct {
	Turns     int   // how many turns may run at once; doesn't apply to owners
	TurnsHour int   // how many turns may begin in an hour; doesn't apply to owners
	TokensDay int64 // how many tokens may be spent or reserved in a day (UTC) with models without a known price; applies to owners, too
	// TokensAlways applies TokensDay to models with a known price as well.
	TokensAlways bool
	MaxWaiting   int // how many messages a session's mailbox may hold; only /status reads it
	// ModelWait is how long a turn waits, counted from its beginning, for a model that gives no answer; 0 ends
	// the turn at once.
	ModelWait time.Duration
	// The most that models may cost, in micro-dollars: for one person in a day, in one session in a day, for
	// everyone in a day, and for everyone in a month (UTC); 0 means no limit.
	UserDay, SessionDay, Day, Month int64
	// NamedBudgets holds the budgets that replace TokensDay and UserDay for turns that no person asked for. Its keys are
	// the names under which such turns run.
	NamedBudgets map[string]NamedBudget
}

// An NamedBudget limits the turns that run under one name.
type NamedBudget struct {
	Owner
	TokensDay, UserDay int64
}

// Caps returns the caps on the cost of the calls that an agent makes for a person in a session. It leaves out those
// that are 0.
func (l Limits) Caps(person, session string, a *Agent) []bill.Cap {
	var caps []bill.Cap
	userDay := l.UserDay
	if own, ok := l.NamedBudgets[person]; ok {
		userDay = own.UserDay
	}
	for _, c := range []bill.Cap{
		{Subject: bill.Person(person), Limit: userDay}, {Subject: bill.Session(session), Limit: l.SessionDay},
		{Subject: bill.Agent(a.Name), Limit: a.Day}, {Limit: l.Day}, {IsMonthly: true, Limit: l.Month},
	} {
		if c.Limit > 0 {
			caps = append(caps, c)
		}
	}
	return append(caps, a.Caps...)
}

// TokensPerDay returns how many tokens a person may spend in a day; for a name in Own, how many its budget allows.
func (l Limits) TokensPerDay(person string) int64 {
	if own, ok := l.NamedBudgets[person]; ok {
		return own.TokensDay
	}
	return l.TokensDay
}

// TurnsOf returns the name under which the turns of an account with an agent are counted, and how many turns
// there may be at once and in an hour. An agent with limits of its own counts its turns separately.
func (l Limits) TurnsOf(account string, a *Agent) (group string, atOnce, hour int) {
	if a.Turns == 0 && a.TurnsHour == 0 {
		return account, l.Turns, l.TurnsHour
	}
	return account + " " + a.Name, cmp.Or(a.Turns, l.Turns), cmp.Or(a.TurnsHour, l.TurnsHour)
}

// An Owner names the owner of a budget that isn't a person's.
type Owner struct {
	Name          string // in words, for people, in the plural; "" for a person
	MoneySetting  string // the setting that caps money
	TokensSetting string // the setting that limits tokens
}
