package transcript

import (
	"slices"

	"parley/agent/journal"
	"parley/sessions"
	"parley/tools"
)

// maxCarried limits how many expenses a summary carries forward. It is far more than any guard allows in one
// conversation.
const maxCarried = 400

// Spent returns what a guard has recorded with the calls of a conversation since it began: the keys of the
// calls in the turn own, and of all calls. The call with the id but doesn't count. Each task whose text was
// written by a model that had read untrusted text adds the key tools.UntrustedTask. A call that began several
// times counts once.
func Spent(records []journal.Record, own, but string) (inTurn, inAll []string) {
	newest, _ := NewestSummary(records)
	inAll = slices.Clone(newest.Allowances)
	for _, e := range expenses(records, but) {
		ofTurn := own != "" && e.turn == own
		if ofTurn {
			inTurn = append(inTurn, e.keys...)
		}
		// The expenses of a turn that /new has left behind count separately.
		if e.entry > newest.Covers || ofTurn && newest.Turn != own {
			inAll = append(inAll, e.keys...)
		}
	}
	return inTurn, inAll
}

// CarriedExpenses returns the expenses that a new summary has to carry forward: all up to the entry that it covers, at most
// maxCarried.
func CarriedExpenses(records []journal.Record, covers int64) []string {
	newest, _ := NewestSummary(records)
	all := slices.Clone(newest.Allowances)
	for _, e := range expenses(records, "") {
		if e.entry > newest.Covers && e.entry <= covers {
			all = append(all, e.keys...)
		}
	}
	return all[:min(len(all), maxCarried)]
}

// An expense is what one entry has used up.
type expense struct {
	entry int64
	turn  string
	keys  []string
}

// expenses returns what the entries of a log have used up, in order, except for the call with the id but.
func expenses(records []journal.Record, but string) []expense {
	var all []expense
	counted := map[string]bool{"": true, but: true}
	for _, r := range records {
		var keys []string
		switch d := r.Data.(type) {
		case sessions.ToolStarted:
			keys = d.Allowances
		case sessions.ToolResult:
			keys = d.Allowances
		case sessions.Delegated:
			keys = d.Allowances
		case sessions.User:
			if d.Untrusted {
				all = append(all, expense{r.N, r.Turn, []string{tools.UntrustedTask}})
			}
		}
		if len(keys) > 0 && !counted[r.Call] {
			counted[r.Call] = true
			all = append(all, expense{r.N, r.Turn, keys})
		}
	}
	return all
}
