package guard

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Rate limits how many calls of some tools each person may have within any time of a certain length.
type Rate struct {
	Rule     // names the tools; it has no pattern
	MaxCalls int
	Period   time.Duration
}

// maxRateCalls limits the number in a rate, because a row is stored for each call that it counts, and a person's rows are
// looked through for each call.
const maxRateCalls = 10_000

// ParseRate parses a rate: TOOL N/s, N/m, N/h or N/d.
func ParseRate(text string) (Rate, error) {
	const form = "write TOOL N/UNIT, with s, m, h or d as the unit"
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return Rate{}, errors.New(form)
	}
	rule, err := ParseRule(fields[0])
	switch {
	case err != nil:
		return Rate{}, err
	case rule.pattern != nil:
		return Rate{}, errors.New("a rate counts all calls of a tool: leave the parentheses out")
	}
	number, unit, _ := strings.Cut(fields[1], "/")
	within, known := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[unit]
	if !known {
		return Rate{}, errors.New(form)
	}
	most, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return Rate{}, fmt.Errorf("%q isn't a number: %s", number, form)
	case most < 1:
		return Rate{}, errors.New("it must allow at least 1 call: to forbid all calls, write a deny rule")
	case most > maxRateCalls:
		return Rate{}, fmt.Errorf("it can be at most %d", maxRateCalls)
	}
	return Rate{Rule: rule, MaxCalls: most, Period: within}, nil
}

// Tools returns the names of the tools as they are written in the rate.
func (r Rate) Tools() string { return strings.Join(r.tool, "*") }

// RatesOf returns the rates that limit the calls of one of these tools.
func (g *Guard) RatesOf(tools ...string) []Rate {
	var rates []Rate
	for _, r := range g.rates {
		if slices.ContainsFunc(tools, r.appliesTo) {
			rates = append(rates, r)
		}
	}
	return rates
}
