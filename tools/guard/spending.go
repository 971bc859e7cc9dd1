package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/target"
)

// The author of a page sees which of its addresses are fetched, in which order and how often. That can carry a message
// to the author, so once something untrusted was read, only a few are fetched without asking.
const (
	maxPerHost         = 4  // requests to one host, and for addresses from one page, search or message, in a conversation
	maxPerTurn         = 8  // requests in a turn
	maxPerConversation = 24 // requests in a conversation
	maxAskedAddresses  = 8  // addresses in a turn that a person wrote in it: one request for each is free
	// requestsPerTask is how many requests a task that is handed to a sub-agent counts as, and how many that sub-agent
	// may make.
	requestsPerTask = 4
)

// The keys under which requests are counted.
const (
	keyAll   = "all"
	keyAsked = "asked"
)

// spendingKey returns the key for a host, a page or an address. The key doesn't reveal which one.
func spendingKey(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + ":" + hex.EncodeToString(sum[:8])
}

// checkSpending decides about a call whose only effect on the outside is that others see the request, in a conversation
// that has read something untrusted. It says to ask a person if the call would exceed a limit; otherwise it returns the
// keys that the call spends.
func (g *Guard) checkSpending(call tools.Call, t tools.Touch) tools.Verdict {
	if !spendsRequests(t) || handsOutTask(t) && g.cfg.SubAgentMayFetch != nil && !g.cfg.SubAgentMayFetch(call) {
		return tools.Verdict{}
	}
	turn, all := g.spent(call)
	keys := spendingOf(call, t, turn)
	if what := exceededLimit(append(turn, keys...), append(all, keys...)); what != "" {
		return askBecauseUntrusted("with this call, there would be " + what)
	}
	return tools.Verdict{Spends: keys}
}

// spendsRequests reports whether a call fetches a page, or hands a task to a sub-agent, which may fetch pages.
func spendsRequests(t tools.Touch) bool {
	_, fetches := t.Subject.(tools.URL)
	return fetches || handsOutTask(t)
}

// handsOutTask reports whether a call hands a task to a sub-agent.
func handsOutTask(t tools.Touch) bool {
	_, does := t.Outward.(tools.HandsOutTask)
	return does
}

// spent returns the keys spent before a call: the recorded ones, and those of pending calls that the model asked for
// just before it.
func (g *Guard) spent(call tools.Call) (inTurn, inAll []string) {
	var before tools.Spending
	if call.Spent != nil {
		before = call.Spent()
	}
	inTurn, inAll = slices.Clone(before.Turn), slices.Clone(before.All)
	for _, name := range before.All {
		if name == tools.UntrustedTask {
			inAll = append(inAll, slices.Repeat([]string{keyAll}, maxPerConversation-requestsPerTask)...)
		}
	}
	for _, ahead := range before.PendingCalls {
		of := call
		of.Name, of.Args, of.Touches = ahead.Name, ahead.Args, ahead.Touches
		if t := of.Touch(); spendsRequests(t) && g.describeOutward(of, t) == "" {
			keys := spendingOf(of, t, inTurn)
			inTurn, inAll = append(inTurn, keys...), append(inAll, keys...)
		}
	}
	return inTurn, inAll
}

// spendingOf returns the keys under which a call that runs without asking is counted against the limits: for a
// fetch, those of its address; for a task, keyAll requestsPerTask times.
func spendingOf(call tools.Call, t tools.Touch, inTurn []string) []string {
	of, fetches := t.Subject.(tools.URL)
	if !fetches {
		return slices.Repeat([]string{keyAll}, requestsPerTask)
	}
	address := string(of)
	var at tools.Sighting
	if call.Seen != nil {
		at = call.Seen(address)
	}
	once := spendingKey(keyAsked, address)
	if at.AskedInThisTurn && !slices.Contains(inTurn, once) && count(inTurn, keyAsked) < maxAskedAddresses {
		return []string{keyAsked, once}
	}
	host := address
	if u, err := target.Parse(address); err == nil {
		host = strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	}
	keys := []string{keyAll, spendingKey("host", host)}
	if at.Source != "" {
		keys = append(keys, spendingKey("in", at.Source))
	}
	return keys
}

// exceededLimit says which limit is exceeded by the keys that were spent in a turn and in the whole conversation; "" if
// none.
func exceededLimit(turn, all []string) string {
	for _, key := range slices.Compact(slices.Sorted(slices.Values(all))) {
		switch n := count(all, key); {
		case strings.HasPrefix(key, "host:") && n > maxPerHost:
			return fmt.Sprintf("more than %d requests to one host", maxPerHost)
		case strings.HasPrefix(key, "in:") && n > maxPerHost:
			return fmt.Sprintf("more than %d requests for addresses from one page, search or message", maxPerHost)
		}
	}
	switch {
	case count(turn, keyAll) > maxPerTurn:
		return fmt.Sprintf("more than %d requests in one turn", maxPerTurn)
	case count(all, keyAll) > maxPerConversation:
		return fmt.Sprintf("more than %d requests in this conversation", maxPerConversation)
	}
	return ""
}

// count returns how many of the keys are key.
func count(keys []string, key string) int {
	n := 0
	for _, k := range keys {
		if k == key {
			n++
		}
	}
	return n
}
